/** The whole engine against the whole emulator in one process: no socket, no wall clock. */
import {
  createEmulator,
  type Emulator,
  type EmulatorOptions,
} from '../../src/emulator/emulator.ts';
import { seeded } from '../../src/emulator/random.ts';
import type { Send } from '../../src/model/exchange.ts';
import type { Guards } from '../../src/plan/guard.ts';
import type { Summary } from '../../src/plan/summary.ts';
import { ledgerInMemory } from '../../src/snapshot/ledger-file.ts';
import type { Ledger } from '../../src/snapshot/ledger.ts';
import { openSnapshot, type Snapshot } from '../../src/snapshot/snapshot.ts';
import type { Certificate, Source } from '../../src/source/source.ts';
import type { Mirror, RunOptions } from '../../src/sync/mirror.ts';
import { createBeside } from '../../src/sync/beside.ts';
import { run } from '../../src/sync/run.ts';
import { watch, type Sighting } from '../../src/sync/sentinel.ts';
import { virtualClock, type VirtualClock } from '../clock.ts';
import { toSend } from '../emulator/wire.ts';
import { channels, mirrorOf, type Policy } from './mirror.ts';

export interface Stage {
  clock: VirtualClock;
  emulator: Emulator;
  snapshot: Snapshot;
  ledger: Ledger;
  /** The CRM: edit these between runs. */
  people: Record<string, unknown>[];
  templates: Record<string, unknown>[];
  certificate: Certificate;
  sync(options?: Partial<RunOptions>): Promise<Summary>;
  /** Brings in line whoever stands under this id, beside whatever runs; of a snapshot on disk. */
  one(id: string): Promise<Summary>;
  /** One look of the sentinel, likewise. */
  look(): Promise<Sighting>;
  /** Requests since the last call that were to change something. */
  writes(): ReturnType<Emulator['world']['requests']>;
  /** What was recorded is gone; the ledger is not. */
  loseSnapshot(): void;
  close(): void;
}

export interface StageOptions {
  seed?: number;
  limits?: string[];
  /** More about the platform: its quirks, its faults, its algorithm. */
  platform?: Pick<EmulatorOptions, 'quirks' | 'faults' | 'algorithm' | 'channels'>;
  policy?: Policy;
  guards?: Partial<Guards>;
  /** The file of the snapshot; without it, in memory. */
  path?: string;
  /** Stands between the client and the emulator. */
  wire?: (send: Send) => Send;
  /** What the CRM has said of one record is heard once this is over. */
  heard?: (id: string) => Promise<void>;
}

export function createStage(options: StageOptions = {}): Stage {
  const clock = virtualClock();
  const random = seeded(options.seed ?? 1);
  const emulator = createEmulator({
    clock,
    random,
    apiKey: 'key',
    channels: channels.map((id) => ({ id, name: id })),
    limits: options.limits ?? ['*=1000000/1'],
    ...options.platform,
  });
  const { path } = options;
  const snapshot = path === undefined ? openSnapshot('', { inMemory: true }) : openSnapshot(path);
  const kept = { snapshot, ledger: ledgerInMemory() };
  const beside = createBeside();
  const direct = toSend(emulator, { clock });
  const send = options.wire?.(direct) ?? direct;
  const stage: Pick<Stage, 'people' | 'templates' | 'certificate'> = {
    people: [],
    templates: [],
    certificate: { complete: true, reading: 'all' },
  };
  let asked = 0;

  const mirror = (on: Snapshot = whole.snapshot): Mirror =>
    mirrorOf({
      send,
      snapshot: on,
      beside,
      ledger: on === whole.snapshot ? whole.ledger : whole.ledger.beside(),
      clock,
      random,
      policy: options.policy ?? {},
      ...(options.guards && { guards: options.guards }),
      contacts: sourceOf(stage, 'people', options.heard),
      templates: sourceOf(stage, 'templates'),
    });

  const how = {
    writes: true,
    only: undefined,
    stop: new AbortController().signal,
    abort: new AbortController().signal,
    progress: () => undefined,
  };
  const whole: Stage = Object.assign(stage, kept, {
    clock,
    emulator,
    sync: async (overrides: Partial<RunOptions> = {}) => {
      await clock.advance(1_000);
      return clock.run(run(mirror(), { mode: 'full', ...how, ...overrides }));
    },
    one: async (id: string) => {
      const own = whole.snapshot.beside();
      const mode = { record: id };
      return run(mirror(own), { ...how, mode, only: 'contacts' }).finally(() => own.close());
    },
    look: async () => {
      const own = whole.snapshot.beside();
      return watch(mirror(own), how).finally(() => own.close());
    },
    writes: () => {
      const requests = emulator.world.requests();
      const fresh = requests.slice(asked);
      asked = requests.length;
      return fresh.filter(({ method }) => method !== 'GET');
    },
    loseSnapshot: () => {
      whole.snapshot.close();
      whole.snapshot = openSnapshot('', { inMemory: true });
    },
    close: () => {
      whole.snapshot.close();
      whole.ledger.close();
    },
  });
  return whole;
}

function sourceOf(
  stage: Pick<Stage, 'people' | 'templates' | 'certificate'>,
  which: 'people' | 'templates',
  heard?: (id: string) => Promise<void>,
): Source & Required<Pick<Source, 'one'>> {
  return {
    async *read() {
      yield stage[which].map((value, at) => ({ where: `record ${at + 1}`, value }));
      return { ...stage.certificate };
    },
    still: (reading) => stage.certificate.reading === reading,
    one: async (id: string) => {
      const found = stage[which].find((record) => record['id'] === id);
      const value = found && { ...found };
      await heard?.(id);
      return value && { where: `record ${id}`, value };
    },
  };
}
