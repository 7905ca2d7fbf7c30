/**
 * Stores the progress of the run that is under way in the snapshot, where `status` of another
 * process finds it. The entry names no person. A process that is killed leaves it behind: it only
 * counts while a process has the lease, and only if that process wrote it, which the fencing token
 * shows.
 */
import { z } from 'zod';
import type { Mirror } from '../../engine/context/mirror-context.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import type { Measured } from './progress-meter.ts';

const name = 'running';

const stored = z.object({
  token: z.number(),
  mode: z.enum(['full', 'fast']),
  /** The command that runs, and the id of its process. */
  command: z.string(),
  pid: z.number(),
  /** When the run began, and when this was stored; in milliseconds since the epoch. */
  since: z.number(),
  at: z.number(),
  phase: z.enum(['reading', 'listing', 'deciding', 'applying']),
  kind: z.string(),
  done: z.number(),
  total: z.number().nullable(),
  share: z.number().nullable(),
  perSecond: z.number().nullable(),
  leftMs: z.number().nullable(),
  limit: z.object({ route: z.string(), limit: z.number(), windowMs: z.number() }).nullable(),
});

/** The progress of the run that is under way, as it was last stored. */
export type RunInProgress = z.infer<typeof stored>;

const beginning = {
  phase: 'reading',
  kind: 'contact',
  done: 0,
  total: null,
  share: null,
  perSecond: null,
  leftMs: null,
  limit: null,
} as const;

/** Stores that a run begins. Never throws: without the entry, only `status` knows less. */
export function enterRun(
  { snapshot, clock }: Pick<Mirror, 'snapshot' | 'clock'>,
  about: Pick<RunInProgress, 'mode' | 'command'>,
): { store(measured: Omit<Measured, 'quietMs'>): void; end(): void } {
  const { meta, transaction } = snapshot;
  const since = clock.now();
  const token = snapshot.generation();
  const attempt = (work: () => void): void => {
    try {
      transaction(work);
    } catch {
      // The run itself notices a snapshot that cannot be written, and reports it.
    }
  };
  const store = (measured: Omit<Measured, 'quietMs'>): void => {
    const { phase, kind, done, total, share, perSecond, leftMs, limit } = measured;
    const now = { phase, kind, done, total, share, perSecond, leftMs, limit };
    const entry: RunInProgress = {
      ...now,
      ...about,
      token,
      pid: process.pid,
      since,
      at: clock.now(),
    };
    attempt(() => meta.set(name, JSON.stringify(entry)));
  };
  store(beginning);
  return { store, end: () => attempt(() => meta.drop(name)) };
}

/**
 * Returns the progress of the run that the holder of the lease does now; undefined if it does none.
 * An entry of another version counts as none.
 */
export function runInProgress(
  { meta, generation }: Pick<Snapshot, 'meta' | 'generation'>,
  leased: boolean,
): RunInProgress | undefined {
  const text = leased ? meta.get(name) : undefined;
  if (text === undefined) return undefined;
  const { data } = stored.safeParse(JSON.parse(text));
  return data?.token === generation() ? data : undefined;
}
