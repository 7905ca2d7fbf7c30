/**
 * Records, beside the snapshot, what is out of order at this moment, and that a worker is alive.
 *
 *   noticed                            stored
 *   a part fails, for the first time   nothing yet: a single failure is retried
 *   it fails for some seconds, or a    an outage, with the time of the first failure
 *   run failed because of it
 *   that part works again              the outage has ended; it is kept for half an hour
 *   a worker has the mirror            its sign of life, every few seconds
 *
 * A part ends its own outage only: a reading of the templates proves nothing about the contacts.
 * A probe, which only looks whether a part can be reached, ends what a probe found.
 *
 * The file keeps its size and is written in place, so that it can be written on a full disk. What
 * cannot be written is known to this process only. Its loss costs nothing: the next seconds write
 * it anew.
 */
import { checkedJson } from '../domain/stored-json.ts';
import { closeSync, constants, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { z } from 'zod';

/** The parts that may fail, worst first. */
export const outageParts = [
  'disk',
  'redis',
  'key',
  'platform',
  'contacts',
  'templates',
  'schedule',
  'clock',
] as const;
/** `key`: the platform's API key; `schedule`: overdue runs; `clock`: not the platform's time. */
export type OutagePart = (typeof outageParts)[number];

const outage = z.object({
  part: z.enum(outageParts),
  /** The first failure, and the last one; in milliseconds since the epoch. */
  since: z.number(),
  seenAt: z.number(),
  endedAt: z.number().optional(),
  reason: z.string(),
  fix: z.string(),
  /** Whether a probe found it, and not only the work itself. */
  isAway: z.boolean(),
});
/** A part that fails, or that failed until `endedAt`. */
export type Outage = z.output<typeof outage>;

const health = checkedJson(
  'the health file',
  z.object({
    worker: z
      .object({
        /** When this worker began to serve the mirror, and when it last said so. */
        since: z.number(),
        seenAt: z.number(),
        /** Set if it has left the mirror in order. */
        endedAt: z.number().optional(),
        /** Set while it opens the mirror anew, because its configuration has changed. */
        reopens: z.literal(true).optional(),
      })
      .nullable(),
    outages: z.array(outage),
  }),
);
export type Health = ReturnType<typeof health.decode>;

/** How long a worker may be silent before it counts as dead, in milliseconds. */
export const silentMs = 30_000;
/** How long a part fails before it counts as an outage, in milliseconds. */
const surelyMs = 5_000;
/** How long an outage is kept that has ended. */
const keptMs = 30 * 60_000;
const storeEachMs = 5_000;

const sizeBytes = 8_192;
const reasonLength = 400;

/** Nothing is known if there is no file. */
export function readHealth(path: string): Health {
  try {
    return health.decode(readFileSync(fileOf(path), 'utf8'));
  } catch {
    // It is being written right now, or was cut by a crash.
    return { worker: null, outages: [] };
  }
}

interface Failing {
  reason: string;
  fix?: string | undefined;
}

/**
 * How certain a failure is. `maybe`: it counts once it lasts. `probe`: the same, and a later probe
 * may end it. `surely`: it counts at once.
 */
type Certainty = 'maybe' | 'probe' | 'surely';

/** Nothing here throws. */
export interface OutageNotes {
  failed(part: OutagePart, failing: Failing, certainty: Certainty): void;
  /** Ends the outage of the part. A probe ends only what a probe has found. */
  works(part: OutagePart, isProbe?: boolean): void;
}

export interface OutageRecord extends OutageNotes {
  /** Turns each failure that has not ended into an outage, because a run has failed. */
  confirm(): void;
  outages(): Outage[];
  beat(): void;
  /** `reopens`: the worker opens the mirror anew at once. */
  leave(reopens?: boolean): void;
  /** `listener` is called whenever an outage begins or ends. */
  listen(listener: () => void): void;
}

/** Creates the record of the mirror with the snapshot at `path`. */
export function recordOutages(path: string, now: () => number): OutageRecord {
  const known = new Map<OutagePart, Outage>();
  /** Failures that are no outage yet. */
  const pending = new Map<OutagePart, Outage>();
  let ended: Outage[] = [];
  let worker: Health['worker'] = null;
  let isStored = false;
  let isServing = false;
  let storedAt = 0;
  let heard: () => void = () => undefined;
  const read = (): void => {
    const stored = readHealth(path);
    worker ??= stored.worker;
    known.clear();
    ended = stored.outages.filter(({ endedAt }) => endedAt !== undefined);
    for (const one of stored.outages) if (one.endedAt === undefined) known.set(one.part, one);
  };
  const store = (): void => {
    storedAt = now();
    ended = ended.filter(({ endedAt = 0 }) => storedAt - endedAt < keptMs);
    isStored = write(path, { worker, outages: [...known.values(), ...ended] });
  };
  const begin = (one: Outage): void => {
    pending.delete(one.part);
    const isNew = !known.has(one.part);
    known.set(one.part, one);
    if (isNew || now() - storedAt >= storeEachMs) store();
    if (isNew) heard();
  };
  read();
  return {
    failed(part, { reason, fix = '' }, certainty) {
      const before = known.get(part) ?? pending.get(part);
      const at = now();
      const told = before && certainty === 'probe' && !before.isAway ? before : { reason, fix };
      const since = before?.since ?? at;
      const isAway = certainty === 'probe' || (before?.isAway ?? false);
      const words = { reason: told.reason.slice(0, reasonLength), fix: told.fix };
      const one = { part, since, seenAt: at, ...words, isAway };
      const isSure = known.has(part) || certainty === 'surely' || at - since >= surelyMs;
      if (isSure) begin(one);
      else pending.set(part, one);
    },
    works(part, isProbe = false) {
      const before = known.get(part) ?? pending.get(part);
      if (!before || (isProbe && !before.isAway)) return;
      pending.delete(part);
      if (!known.delete(part)) return;
      ended = [...ended.filter((one) => one.part !== part), { ...before, endedAt: now() }];
      store();
      heard();
    },
    confirm: () => [...pending.values()].forEach(begin),
    outages: () => outageParts.flatMap((part) => known.get(part) ?? []),
    beat() {
      const at = now();
      // A command that had the mirror in between may have found out more.
      if (isStored) read();
      const isSame = worker && worker.endedAt === undefined && at - worker.seenAt <= silentMs;
      const since = isSame && worker ? worker.since : at;
      worker = { since, seenAt: at };
      isServing = true;
      store();
    },
    leave(reopens = false) {
      if (!worker || !isServing) return;
      isServing = false;
      worker = reopens ? { ...worker, seenAt: now(), reopens } : { ...worker, endedAt: now() };
      store();
    },
    listen: (listener) => void (heard = listener),
  };
}

/** Writes in place. Returns whether that was possible. */
function write(path: string, told: Health): boolean {
  const text = Buffer.from(health.encode(told));
  const bytes = Buffer.alloc(Math.max(sizeBytes, text.length), ' ');
  text.copy(bytes);
  try {
    const file = openSync(fileOf(path), constants.O_RDWR + constants.O_CREAT, 0o600);
    try {
      writeSync(file, bytes, 0, bytes.length, 0);
      ftruncateSync(file, bytes.length);
    } finally {
      closeSync(file);
    }
    return true;
  } catch {
    return false;
  }
}

function fileOf(path: string): string {
  return `${path}-health`;
}
