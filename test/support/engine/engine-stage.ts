import { byGuard } from '../../../src/domain/guard-classes.ts';
import type { AbsenceRules } from '../../../src/records/contact/consent/absent-people.ts';
import type { Clock, Random } from '../../../src/domain/clock.ts';
import type { Answer, Request, Send } from '../../../src/domain/exchange.ts';
import type { Guards } from '../../../src/domain/guards/guard-limits.ts';
import type { Platform } from '../../../src/platform/api-client.ts';
import type { DoNotContactList } from '../../../src/store/memory/do-not-contact.ts';
import { openSnapshot } from '../../../src/store/open-snapshot.ts';
import type { Snapshot } from '../../../src/store/snapshot.ts';
import type { ReportResult, WriteBack, Certificate, Source } from '../../../src/sources/source.ts';
import { createPersonLocks, type PersonLocks } from '../../../src/engine/context/person-locks.ts';
import type { Mirror, RunOptions } from '../../../src/engine/context/mirror-context.ts';
import { expect, onTestFinished } from 'vitest';
import {
  createEmulator,
  type Emulator,
  type EmulatorOptions,
} from '../../../src/emulator/emulator.ts';
import { seeded } from '../../../src/emulator/shared/seeded-random.ts';
import type { Summary } from '../../../src/engine/report/run-summary.ts';
import { type Memory, memoryWithoutFile } from '../../../src/store/memory/memory.ts';
import { allow } from '../../../src/engine/erasure/person-decisions.ts';
import { eraseTold, type Erased } from '../../../src/engine/erasure/privacy-deletions.ts';
import { run } from '../../../src/engine/run.ts';
import { type Sighting, watch } from '../../../src/engine/watch/unsubscribe-watch.ts';
import { type VirtualClock, virtualClock, scratchFolder } from '../waiting.ts';
import { toSend } from '../emulator/emulator-stage.ts';
import { assembleTypes } from '../records/record-types.ts';
import { join } from 'node:path';
import type { OptOutReport } from '../../../src/domain/opt-out-report.ts';

// One mirror of people and templates, put together for a platform in the same process.

export const channels = ['ch_news', 'ch_product'];

/**
 * As a configuration without a word about them has them, but that everybody may be opted out, and
 * every template changed: few tests are about that.
 */
export const limits: Guards = {
  ...byGuard((_, { defaults: { percent, floor } }) => ({ percent, floor })),
  opt_out: { percent: 100, floor: 20, holdForMs: 72 * 3_600_000 },
  template: { percent: 100, floor: 3 },
};

export interface Policy {
  absent?: 'keep' | 'opt_out';
  deletes?: 'off' | 'created' | 'owned';
  missing?: 'respect' | 'recreate';
  resubscribe?: 'never' | 'newer';
  templates?: 'keep' | 'overwrite';
  absentTemplates?: 'keep' | 'archive';
  /** Of a channel, the one it took over from. */
  replaces?: Record<string, string>;
}

export interface Parts {
  send: Send;
  snapshot: Snapshot;
  memory: Memory;
  /** By default as the memory has it. */
  ledger?: DoNotContactList;
  audit?: Mirror['audit'];
  clock: Clock;
  random: Random;
  apiKey?: string;
  policy: Policy;
  guards?: Partial<Guards>;
  absence?: Partial<AbsenceRules>;
  /** How the contacts are read. */
  manner?: string;
  rules?: Mirror['rules'];
  windows?: Mirror['windows'];
  canary?: Mirror['canary'];
  approvers?: Mirror['approvers'];
  /** Who gets a test of changed templates. */
  testTo?: readonly string[] | undefined;
  timezone?: string;
  contacts: Source;
  templates: Source;
  pageSizes?: Mirror['pageSizes'];
  beside?: PersonLocks;
  returns?: WriteBack;
  /** What the mirror has in the place of its client. */
  platformAs?(platform: Platform): Platform;
}

export function mirrorOf(parts: Parts): Mirror {
  const {
    snapshot,
    memory,
    ledger: doNotContact = memory.list(),
    clock,
    random,
    policy,
    apiKey = 'key',
  } = parts;
  const { pageSizes = [100, 83] } = parts;
  const { gate, platform, contact, template } = assembleTypes({
    ...parts,
    fields: {
      id: 'id',
      email: 'email',
      deleted: 'deleted',
      unsubscribed: 'unsubscribed',
      consentAt: 'consent_at',
      channels: channels.map((id) => ({ id, subscription: id, replaces: policy.replaces?.[id] })),
    },
    absence: { deletes: policy.deletes ?? 'off', ...parts.absence },
  });
  return {
    name: 'test',
    contacts: { ...contact, source: parts.contacts, manner: parts.manner ?? 'as it is' },
    templates: { ...template, source: parts.templates },
    returns: parts.returns,
    snapshot,
    account: { mirror: 'test', url: 'https://platform.test', apiKey, platform },
    memory,
    doNotContact,
    audit: parts.audit,
    locks: parts.beside ?? createPersonLocks(),
    notes: [],
    clock,
    random,
    timeoutMs: 10_000,
    pageSizes,
    keepMs: 90 * 86_400_000,
    guards: { ...limits, ...parts.guards },
    rules: parts.rules ?? [],
    windows: parts.windows ?? [],
    canary: parts.canary,
    approvers: parts.approvers,
    timezone: parts.timezone ?? 'UTC',
    reserve: 0,
    requests: gate.counts,
    limits: gate.limits,
    platformNow: gate.platformNow,
  };
}

// The whole engine against the whole emulator in one process: no socket, no wall clock.

export interface Stage {
  clock: VirtualClock;
  emulator: Emulator;
  snapshot: Snapshot;
  memory: Memory;
  ledger: DoNotContactList;
  /** The CRM: edit these between runs. */
  people: Record<string, unknown>[];
  templates: Record<string, unknown>[];
  certificate: Certificate;
  /** Ids of the people that were changed, in their order: what a CRM that tells changes goes by. */
  changed: string[];
  /** What the CRM was asked for people: all, since a cursor, or one. */
  asked: string[];
  sync(options?: Partial<RunOptions>): Promise<Summary>;
  /** Runs an event about the CRM record with this id, beside other runs; needs a file. */
  one(id: string): Promise<Summary>;
  /** The CRM says that it has erased this record, likewise. */
  erase(id: string): Promise<Erased>;
  /** `allow`, likewise. */
  allow(key: string): Promise<unknown>;
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
  absence?: Partial<AbsenceRules>;
  /** What asks for an approval, and in which time zone; may change between runs. */
  rules?: Mirror['rules'];
  windows?: Mirror['windows'];
  /** What is changed first; may change between runs. */
  canary?: Mirror['canary'];
  /** Who has to sign approvals. */
  approvers?: Mirror['approvers'];
  /** Who gets a test of changed templates. */
  testTo?: readonly string[];
  timezone?: string;
  /** How the contacts are read; may change between runs. */
  manner?: string;
  /** With how many people at most a fast run compares its reading in memory. */
  mostCompared?: number;
  /** By how much our clock is ahead of the platform's, in milliseconds; may change at any time. */
  ahead?: () => number;
  /** The file of the snapshot; without it, in memory. */
  path?: string;
  /** Stands between the client and the emulator. */
  wire?: (send: Send) => Send;
  /** Whether the CRM tells what changed. */
  tellsChanges?: boolean;
  /** How it is told who left. */
  returns?: WriteBack;
  /** So many changes it tells once more, as one of them may have been seen late. */
  overlap?: number;
  /** Records that cannot be read one by one, by id. */
  unreadable?: ReadonlySet<string>;
  /** It knows nobody by their id. */
  hasNoOne?: boolean;
  /** What the CRM has said of one record is heard once this is over. */
  heard?: (id: string) => Promise<void>;
}

/** Makes a stage; a test that plays many closes each itself. */
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
  const memory = memoryWithoutFile();
  const kept = { snapshot, memory, ledger: memory.list() };
  const beside = createPersonLocks();
  const direct = toSend(emulator, { clock });
  const send = options.wire?.(direct) ?? direct;
  const stage: Crm = {
    people: [],
    templates: [],
    certificate: { complete: true, reading: 'all' },
    changed: [],
    asked: [],
  };
  let asked = 0;

  const mirror = (on: Snapshot = whole.snapshot): Mirror => ({
    mostCompared: options.mostCompared,
    ...mirrorOf({
      policy: {},
      ...options,
      send,
      snapshot: on,
      beside,
      memory,
      ledger: on === whole.snapshot ? whole.ledger : memory.list(),
      clock: { ...clock, now: () => clock.now() + (options.ahead?.() ?? 0) },
      random,
      contacts: {
        ...sourceOf(stage, 'people', options),
        ...(options.tellsChanges && changesOf(stage, options)),
      },
      templates: sourceOf(stage, 'templates', {}),
    }),
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
      const own = whole.snapshot.sibling();
      const mode = { record: id };
      return run(mirror(own), { ...how, mode, only: 'contacts' }).finally(() => own.close());
    },
    erase: async (id: string) => {
      const own = whole.snapshot.sibling();
      const { stop: signal, abort } = how;
      return eraseTold(mirror(own), id, { signal, abort }).finally(() => own.close());
    },
    allow: async (key: string) => {
      const own = whole.snapshot.sibling();
      const { stop: signal, abort } = how;
      const on = mirror(own);
      const { contacts } = on;
      if (!contacts) throw new Error('no people');
      const asking = { contacts, key, reason: 'asked for it', by: 'operator' };
      return allow(on, asking, { signal, abort }).finally(() => own.close());
    },
    look: async () => {
      const own = whole.snapshot.sibling();
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
      memory.close();
    },
  });
  return whole;
}

/** Opens a stage for one test, and closes it when the test has finished. */
export function openStage(options: StageOptions = {}): Stage {
  const stage = createStage(options);
  onTestFinished(() => stage.close());
  return stage;
}

type Crm = Pick<Stage, 'people' | 'templates' | 'certificate' | 'changed' | 'asked'>;

function sourceOf(
  stage: Crm,
  which: 'people' | 'templates',
  { heard, tellsChanges, hasNoOne, overlap, unreadable }: StageOptions,
): Source & Required<Pick<Source, 'one'>> {
  return {
    async *read() {
      if (which === 'people') stage.asked.push('all');
      const cursor = cursorOf(stage, overlap);
      yield stage[which].map((value, at) => ({ where: `record ${at + 1}`, value }));
      return { ...stage.certificate, ...(tellsChanges && { cursor }) };
    },
    still: (reading) => stage.certificate.reading === reading,
    one: async (id: string) => {
      if (which === 'people') stage.asked.push(`one ${id}`);
      const found = hasNoOne ? undefined : stage[which].find((record) => record['id'] === id);
      const value = found && { ...found };
      await heard?.(id);
      const where = `record ${id}`;
      if (unreadable?.has(id)) return { where, broken: 'cannot be read', fix: 'correct it' };
      return value && { where: `record ${id}`, value };
    },
  };
}

/** A cursor is how many changes there were. One of more than that is none it knows. */
function changesOf(stage: Crm, options: StageOptions): Required<Pick<Source, 'changes'>> {
  return {
    async *changes(since) {
      stage.asked.push(`since ${since}`);
      const cursor = cursorOf(stage, options.overlap, Number(since));
      if (Number(since) > stage.changed.length) return 'lost';
      for (const id of stage.changed.slice(Number(since))) {
        const value = stage.people.find((record) => record['id'] === id);
        if (value) yield [{ where: `record ${id}`, value: { ...value } }];
      }
      return { ...stage.certificate, cursor };
    },
  };
}

function cursorOf({ changed }: Crm, overlap = 0, since = 0): string {
  return String(Math.max(since, changed.length - overlap));
}

// Two people of a CRM and the process that keeps their mirror, for runs side by side.

export const ann = 'ann@example.com';

export const record = (id: string, email: string, wished = 'yes') => ({
  id,
  email,
  ch_news: wished,
});

/** In a folder that is gone when the test has finished. */
export function stageOf(options: StageOptions = {}): Stage {
  const folder = scratchFolder();
  const stage = openStage({ path: join(folder, 'snapshot.sqlite'), ...options });
  stage.people.push(record('1', ann), record('2', 'bob@example.com'));
  return stage;
}

/** A run about the one who stands under this id. */
export const alone = async (stage: Stage, id: string): Promise<Summary> =>
  stage.clock.run(stage.one(id));

export const sent = (stage: Stage): string[] =>
  stage.writes().map((write) => `${write.subscription} ${write.email}`);

export function wish(stage: Stage, id: string, value: string): void {
  for (const person of stage.people) if (person['id'] === id) person['ch_news'] = value;
}

// A CRM that tells what changed, and two people who are on the platform.

const bob = 'bob@example.com';
export const cid = 'cid@example.com';

/** It was read wholly, and nothing is left to do. */
export async function settled(options: StageOptions = {}): Promise<Stage> {
  const stage = openStage({ tellsChanges: true, ...options });
  stage.people.push(record('1', ann), record('2', bob));
  expect(await stage.sync()).toMatchObject({ status: 'done' });
  stage.asked.length = 0;
  stage.writes();
  return stage;
}

/** Edits the record of this id, as the CRM does: it is told with the changes. */
export function edit(stage: Stage, id: string, news: Record<string, unknown>): void {
  const found = stage.people.find((person) => person['id'] === id);
  if (found) Object.assign(found, news);
  else stage.people.push({ id, ...news });
  stage.changed.push(id);
}

export const fast = async (stage: Stage) => stage.sync({ mode: 'fast' });

export const shown = (stage: Stage, email: string, channel = 'ch_news') =>
  stage.emulator.world.contact(email)?.channels.find(({ id }) => id === channel)?.subscription;

/** A platform that can be told to fail whatever changes something. */
export function failing() {
  const state: { how: 'well' | 'refuses' | 'is away' | 'breaks' } = { how: 'well' };
  const answer = (status: number): Answer => {
    const error = { code: 'bad_request', message: 'no' };
    return { status, headers: {}, body: JSON.stringify({ error }) };
  };
  const wire = (send: Send): Send => {
    return async (request: Request, signal) => {
      if (request.method === 'GET' || state.how === 'well') return send(request, signal);
      if (state.how === 'breaks') throw new TypeError('a bug');
      return answer(state.how === 'refuses' ? 400 : 503);
    };
  };
  return { state, wire };
}

export const told: ReportResult = { is: 'told' };

/** A CRM that keeps what it is told, and can be made to fail. */
export function hearing(over: Partial<WriteBack> = {}) {
  const heard: OptOutReport[] = [];
  const returns: WriteBack = {
    most: 10,
    takes: () => true,
    async *tell(batch) {
      for (const one of batch) {
        heard.push(one);
        yield told;
      }
    },
    look: () => 'kept',
    ...over,
  };
  return { heard, returns };
}

export const listing = ({ method, path }: Request): boolean =>
  method === 'GET' && !path.includes('search=');

/** Runs about everybody that are held up at an answer to what `stops`. */
export function dammed(stops: (request: Request) => boolean) {
  let dam: Record<'met' | 'gate', PromiseWithResolvers<void>> | undefined;
  const wire =
    (send: Send): Send =>
    async (request, signal) => {
      const answer = await send(request, signal);
      if (!dam || !stops(request)) return answer;
      dam.met.resolve();
      await dam.gate.promise;
      return answer;
    };
  /** Begins such a run, which stands still from then on until it is opened. */
  const hold = async (stage: Stage) => {
    const gate = Promise.withResolvers<void>();
    const met = Promise.withResolvers<void>();
    dam = { met, gate };
    const all = stage.sync();
    await met.promise;
    const open = (): void => {
      dam = undefined;
      gate.resolve();
    };
    return { all, open };
  };
  return { wire, hold };
}
