/** Asks Redis for the next runs of a mirror, and whether it may lose what waits in it. */
import type { Config } from '../../config/config.ts';
import { isExpected } from '../../domain/errors.ts';
import { instant } from '../../compose/output/format-values.ts';
import type { QueueView } from '../../compose/queues/run-queue.ts';
import type { Tick } from '../../config/schema/cron-pattern.ts';
import { type Attention, redisEvicts } from './attention.ts';
import type { CurrentStatus } from './status-document.ts';

export interface Due {
  run: Tick;
  at: string;
}

/** The next runs, soonest first, as Redis has them. */
export interface NextRuns {
  due: readonly Due[];
  /** Why they are not known; undefined if they are. */
  unknown: string | undefined;
}

/** Returns the next runs; none if no worker serves the mirror, because nobody begins them. */
export async function readNextRuns(
  { due }: { due: QueueView['due'] },
  worker: CurrentStatus['worker'],
): Promise<NextRuns> {
  if (worker?.is !== 'alive') return { due: [], unknown: undefined };
  try {
    const found = await due();
    const next = found.map(({ tick, at }) => ({ run: tick, at: instant(at) }));
    return { due: next, unknown: undefined };
  } catch (error) {
    if (!isExpected(error)) throw error;
    return { due: [], unknown: error.message };
  }
}

/** Returns the next runs, and what is wrong with the Redis of the configuration. */
export async function askRedis(
  { redis: url, mirror }: Config,
  worker: CurrentStatus['worker'],
): Promise<NextRuns & { faults: Attention[] }> {
  if (url === undefined) return { due: [], unknown: undefined, faults: [] };
  // Loading the module takes as long as everything else together.
  const { viewQueues } = await import('../../compose/queues/run-queue.ts');
  const view = viewQueues(mirror, { url });
  try {
    const next = await readNextRuns(view, worker);
    const evicted = await view.evictsBy().catch(() => undefined);
    return { ...next, faults: evicted === undefined ? [] : [redisEvicts(evicted)] };
  } finally {
    view.close();
  }
}
