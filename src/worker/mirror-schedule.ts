/** Stores the schedule of a mirror in Redis, and removes it. */
import { isExpected, renderProblem, Unavailable } from '../domain/errors.ts';
import { systemClock } from '../http/system-clock.ts';
import type { Shell } from '../cli/compose/process-shell.ts';
import { explain } from '../cli/output/failure-report.ts';
import type { RunQueue } from './queues/run-queue.ts';
import type { Workable } from './workable-config.ts';

/** How long a mirror that leaves waits for Redis to remove its schedule. */
const unfollowMs = 10_000;

/** Stores this schedule in Redis. Throws Unavailable if Redis refuses it. */
export async function follow(queue: RunQueue, { file, schedule }: Workable): Promise<void> {
  try {
    await queue.follow(schedule);
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
