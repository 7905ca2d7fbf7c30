/** Stores the schedule of a mirror in Redis, keeps it whole there, and removes it. */
import type { Clock } from '../domain/clock.ts';
import { isExpected, renderProblem, Unavailable } from '../domain/errors.ts';
import { systemClock } from '../http/system-clock.ts';
import type { Shell } from '../compose/process-shell.ts';
import { explain } from '../compose/output/failure-report.ts';
import type { RunQueue } from '../compose/queues/run-queue.ts';
import { type Tick, tickWords } from '../compose/queues/run-schedule.ts';
import type { Workable } from './workable-config.ts';

/** How long a mirror that leaves waits for Redis to remove its schedule. */
const unfollowMs = 10_000;

/**
 * Stores this schedule in Redis. Returns the entries that were missing there. Throws Unavailable if
 * Redis refuses it.
 */
export async function follow(queue: RunQueue, { file, schedule }: Workable): Promise<Tick[]> {
  try {
    return await queue.follow(schedule);
  } catch (error) {
    if (isExpected(error)) throw error;
    const why = error instanceof Error ? error.message : String(error);
    throw new Unavailable(`${file}: Redis refuses the schedule (${why})`, {
      fix: 'mend its access, then start again',
      acted: 'no',
      cause: error,
    });
  }
}

/** How often the schedule is compared with what Redis has of it. */
const checkMs = 30_000;

/** What a check of the schedule finds. */
export interface CheckedSchedule {
  /** Returns whether this worker has the mirror, and Redis is there. */
  isDue(): boolean;
  /** Called with why Redis refuses the schedule, or undefined if it has all of it. */
  refused(why: string | undefined): void;
  /** Called with the policy by which Redis drops keys, or undefined if it drops none. */
  evicts(policy: string | undefined): void;
  clock: Clock;
}

/** Mends the schedule in Redis as long as the worker serves it, with a line about what was lost. */
export async function keepWhole(
  queue: RunQueue,
  config: Workable,
  { stop, note }: Pick<Shell, 'stop' | 'note'>,
  { isDue, refused, evicts, clock }: CheckedSchedule,
): Promise<void> {
  const mend = async (): Promise<void> => {
    const lost = await follow(queue, config);
    if (lost.length > 0) note(`crm-mirror: ${config.mirror}: ${lostWords(lost)}`);
    evicts(await queue.evictsBy());
    refused(undefined);
  };
  const failed = (error: unknown): void => {
    if (!stop.aborted) refused(explain(error).problem.reason);
  };
  while (!stop.aborted) {
    if (isDue()) await mend().catch(failed);
    await clock.sleep(checkMs, stop).catch(() => undefined);
  }
}

function lostWords(lost: readonly Tick[]): string {
  const reason = `Redis had lost a part of the schedule (${lost.map(tickWords).join(', ')})`;
  const fix = 'it is stored again; see that nothing removes keys of crm-mirror from this Redis';
  return renderProblem({ reason, fix });
}

const nothingDue = { full: undefined, fast: undefined, templates: undefined, sentinel: undefined };

/** Removes the schedule from Redis. Prints why if Redis does not do it in time. */
export async function unfollow(queue: RunQueue, { mirror }: Workable, shell: Shell): Promise<void> {
  const late = new AbortController();
  const given = systemClock.sleep(unfollowMs, AbortSignal.any([shell.stop, late.signal]));
  const done = queue.follow({ patterns: nothingDue, timezone: 'UTC' }).then(() => true);
  try {
    if (await Promise.race([done, given.then(() => false)])) return;
    shell.note(`crm-mirror: ${mirror}: ${staysWords('Redis is away')}`);
  } catch (error) {
    if (!shell.stop.aborted)
      shell.note(`crm-mirror: ${mirror}: ${staysWords(explain(error).text)}`);
  } finally {
    done.catch(() => undefined);
    late.abort();
    given.catch(() => undefined);
  }
}

function staysWords(why: string): string {
  const reason = `the schedule stays in Redis (${why})`;
  return renderProblem({ reason, fix: 'nothing is run by it: no worker serves this mirror' });
}
