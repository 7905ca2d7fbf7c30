/** Reads from Redis what only Redis knows: when runs are due, and whether it may lose them. */
import type { Config } from '../../config/config.ts';
import { isExpected } from '../../domain/errors.ts';
import type { QueueView } from '../../compose/queues/queue-view.ts';
import type { Tick } from '../../compose/queues/run-schedule.ts';
import { instant } from '../../compose/output/format-values.ts';
import type { Attention } from './attention.ts';
import type { CurrentStatus } from './mirror-status.ts';
import { redisEvicts } from './process-faults.ts';

/** The next run of one entry of the schedule. */
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

type Served = Pick<CurrentStatus, 'worker'>;

/** Returns the next runs; none if no worker serves the mirror, because nobody begins them. */
export async function readNextRuns(
  { due }: Pick<QueueView, 'due'>,
  { worker }: Served,
): Promise<NextRuns> {
  if (worker?.is !== 'alive') return { due: [], unknown: undefined };
  try {
    const found = await due();
    return {
      due: found.map(({ tick, at }) => ({ run: tick, at: instant(at) })),
      unknown: undefined,
    };
  } catch (error) {
    if (!isExpected(error)) throw error;
    return { due: [], unknown: error.message };
  }
}

/** Returns the next runs, and what is wrong with the Redis of the configuration. */
export async function askRedis(
  { redis: url, mirror }: Config,
  served: Served,
): Promise<NextRuns & { faults: Attention[] }> {
  if (url === undefined) return { due: [], unknown: undefined, faults: [] };
  // Loading the module takes as long as everything else together.
  const { viewQueues } = await import('../../compose/queues/queue-view.ts');
  const view = viewQueues({ url, mirror });
  try {
    const next = await readNextRuns(view, served);
    const evicted = await view.evictsBy().catch(() => undefined);
    return { ...next, faults: evicted === undefined ? [] : [redisEvicts(evicted)] };
  } finally {
    view.close();
  }
}
