/**
 * Observes what a run would meet: copies the files of the mirror, and reads the CRM and the
 * platform as a plan does. It only reads, takes no lease and writes no file of the mirror.
 *
 * Each source is read once, and gives the same records to every run of a rehearsal. The CRM is
 * really read, but only when a run asks for something that was not read before.
 *
 * A rehearsal has two ways to a platform: the real one, which is only read, and an emulator.
 */
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { assemble } from '../../compose/assemble-mirror.ts';
import {
  copiesOf,
  movePaused,
  type MirrorFiles,
  createTemporaryFolder,
} from '../../compose/mirror-files.ts';
import { connect } from '../../compose/platform-connection.ts';
import type { Shell } from '../../compose/process-shell.ts';
import { runNow } from '../../app/run/run-command.ts';
import type { Config } from '../../config/config.ts';
import type { Random, Clock } from '../../domain/clock.ts';
import type { StatedLimit } from '../../domain/route-limit.ts';
import { median } from '../../domain/values/counted.ts';
import { factsIn } from '../../engine/context/platform-knowledge.ts';
import type { Progress, RunOptions } from '../../engine/context/mirror-context.ts';
import { seenLimits } from '../../engine/decide/plan-summary.ts';
import type { Summary } from '../../engine/report/run-summary.ts';
import { createSend } from '../../http/send-request.ts';
import { systemClock } from '../../http/system-clock.ts';
import type { PlatformFacts } from '../../records/platform-facts.ts';
import { backUp } from '../../store/database/database-backup.ts';
import { type PlatformView, watched } from './platform-view.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import type { Certificate, ReadRequest, Source, SourceRecord } from '../../sources/source.ts';
import { Unavailable } from '../../domain/errors.ts';
import type { Answer, Send } from '../../domain/exchange.ts';
import type { Emulator } from '../../emulator/emulator.ts';

export interface Original {
  config: Config;
  summary: Summary;
  view: PlatformView;
  readings: ReturnType<typeof createReadings>;
  facts: PlatformFacts;
  limits: Readonly<Record<string, StatedLimit>>;
  /** How far the platform's clock is ahead. */
  aheadMs: number;
  latencyMs: number;
  /** How long reading both sides took. */
  readMs: number;
  /** The requests that were sent to the platform. All of them only read. */
  reads: number;
}

interface Observing {
  shell: Shell;
  only: RunOptions['only'];
  copies: number;
  random: Random;
  progress(progress: Progress): void;
}

/** Steps up to which latency is rounded, so that a slightly later answer changes no rehearsal. */
const latencySteps = [20, 50, 100, 200, 500];

/** The platform states whole seconds; less than that is no difference. */
const sameTimeMs = 2000;

/** Observes the mirror for `use`, with a copy of its files for each rehearsal until that ends. */
export async function observeOriginal<T>(
  config: Config,
  { shell, only, copies, progress, random }: Observing,
  use: (
    original: Original,
    copies: readonly WorkingCopy[],
    names: { snapshot: Snapshot },
  ) => Promise<T>,
): Promise<T> {
  const view: PlatformView = { contacts: new Map(), templates: new Map() };
  const readings = createReadings();
  const took: number[] = [];
  const { url, timeoutMs } = config.platform;
  const network = createSend({ url, timeoutMs, userAgent: 'crm-mirror' });
  const reading = onlyReads(network.send);
  const transport = { send: reading.send, close: network.close };
  const { mirror, close } = await assemble(config, shell, {
    writes: false,
    standIns: {
      clock: systemClock,
      random,
      connect: (read, on) =>
        watched(connect(read, on, { transport, record: ({ ms }) => void took.push(ms) }), view),
      sourceFor: (name, source) => readings.of(name, source, async (real) => real),
    },
  });
  const made: WorkingCopy[] = [];
  try {
    const { snapshot } = mirror;
    for (let n = 0; n < copies; n += 1) {
      made.push(await copyForRehearsal({ config, snapshot }, shell.stop));
    }
    const startMs = systemClock.monotonic();
    const summary = await runNow(mirror, shell, { mode: 'full', writes: false, only, progress });
    const platformNow = mirror.platformNow();
    const aheadMs = platformNow === undefined ? 0 : platformNow - systemClock.now();
    const stated = Object.entries(mirror.limits()).filter(
      ([, { limit, windowMs }]) => limit && windowMs,
    );
    const original: Original = {
      config,
      summary,
      view,
      readings,
      facts: factsIn(snapshot),
      limits: { ...seenLimits(snapshot.meta), ...Object.fromEntries(stated) },
      aheadMs: Math.abs(aheadMs) < sameTimeMs ? 0 : aheadMs,
      latencyMs: latencySteps.find((step) => median(took) <= step) ?? 1000,
      readMs: systemClock.monotonic() - startMs,
      reads: reading.count(),
    };
    return await use(original, made, { snapshot });
  } finally {
    for (const one of made) one.remove();
    await close();
  }
}

export interface WorkingCopy extends MirrorFiles {
  remove(): void;
}

/** Copies the snapshot, and the memory with its key: all, or none and the error. */
export async function copyForRehearsal(
  original: Parameters<typeof copiesOf>[0],
  signal: AbortSignal,
): Promise<WorkingCopy> {
  const folder = createTemporaryFolder('rehearsal');
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    const snapshot = join(folder, 'snapshot.sqlite');
    const memory = { path: `${snapshot}-memory`, keyFile: `${snapshot}-memory-key` };
    const to = { snapshot, memory: memory.path, key: memory.keyFile };
    await backUp(copiesOf(original, to, { signal }));
    // A pause of the mirror does not hold up the rehearsal.
    if (existsSync(snapshot)) movePaused(snapshot, () => undefined);
    return { snapshot, memory, remove };
  } catch (error) {
    remove();
    throw error;
  }
}

type End = Certificate | 'lost';
/** The readings that have ended: their batches, and what the source said of each. */
type Keep = Map<string, { batches: SourceRecord[][]; end: End }>;

/** Waits for real work, during which no virtual time passes. */
type Hold = <T>(real: Promise<T>) => Promise<T>;

/** Creates an empty store of the readings of all sources of a rehearsal. */
export function createReadings() {
  const known: Keep = new Map();
  return {
    /** Returns a source that is read when first asked, and never changes during the rehearsal. */
    of: (name: string, source: Source, hold: Hold): Source => {
      const { changes, one } = source;
      const read = (what: readonly string[], from: () => AsyncGenerator<SourceRecord[], End>) =>
        replay(known, { key: JSON.stringify([name, ...what]), from, hold });
      return {
        async *read(request) {
          const end = yield* read(request.fields, () => source.read(request));
          if (end === 'lost') throw new Error('only a reading of changes can be lost');
          return end;
        },
        ...(source.still && { still: () => true }),
        ...(changes && {
          changes: (since: string, request: ReadRequest) =>
            read(['since', since, ...request.fields], () => changes(since, request)),
        }),
        ...(one && { one: async (id: string, request: ReadRequest) => hold(one(id, request)) }),
      };
    },
  };
}

async function* replay(
  known: Keep,
  { key, from, hold }: { key: string; from(): AsyncGenerator<SourceRecord[], End>; hold: Hold },
): AsyncGenerator<SourceRecord[], End> {
  const kept = known.get(key);
  if (kept) {
    yield* kept.batches;
    return kept.end;
  }
  const batches: SourceRecord[][] = [];
  const reading = from();
  try {
    for (;;) {
      const next = await hold(reading.next());
      if (next.done === true) {
        known.set(key, { batches, end: next.value });
        return next.value;
      }
      batches.push(next.value);
      yield next.value;
    }
  } finally {
    await hold(reading.return({ complete: false, reading: '', why: '', fix: '' }));
  }
}

/** Refuses every request that could change something on the platform. `count` counts the others. */
export function onlyReads(send: Send) {
  let sent = 0;
  const only: Send = async (request, signal) => {
    if (request.method !== 'GET') {
      throw new Error(`a rehearsal only reads the platform, and this is a ${request.method}`);
    }
    sent += 1;
    return send(request, signal);
  };
  return { send: only, count: () => sent };
}

/**
 * Returns what sends requests to the emulator, on which its faults occur. `latencyMs`: how long one
 * travels with its response; after `timeoutMs` it has none.
 */
export function sendInProcess(
  receive: Emulator['receive'],
  clock: Clock,
  latencyMs: number,
  timeoutMs: number,
): Send {
  const lost = (why: string) => new Unavailable(`the platform ${why}`, { acted: 'maybe' });
  const travel = async (ms: number, signal: AbortSignal | undefined): Promise<void> => {
    try {
      await clock.sleep(Math.min(ms, timeoutMs), signal);
    } catch {
      throw lost('was left before its answer was complete: asked to stop');
    }
    if (ms >= timeoutMs) throw lost(`did not answer within ${timeoutMs} ms`);
  };
  return async (request, signal): Promise<Answer> => {
    signal?.throwIfAborted();
    await travel(latencyMs, signal);
    const headers = { ...request.headers, 'user-agent': 'crm-mirror' };
    const delivery = receive({ ...request, headers });
    if (delivery.is === 'whole') {
      if (delivery.delayMs > 0) await travel(delivery.delayMs, signal);
      return delivery.answer;
    }
    if (delivery.is === 'silence') await travel(timeoutMs, signal);
    throw lost('cut the connection');
  };
}
