/**
 * Lists what no status contains, because only the process that serves or shows a mirror notices it:
 * Redis is away or may lose data, or the snapshot cannot be read. All functions are pure.
 */
import { explain } from '../../compose/output/failure-report.ts';
import { exitCode } from '../../compose/output/exit-codes.ts';
import { isExpected } from '../../domain/errors.ts';
import type { Attention } from './attention.ts';
import { outageWords } from './mirror-health.ts';

/** Returns the line about Redis; `why` says that it is away. */
export function redisAway(why: string, since: string | null): Attention {
  return {
    since,
    code: 'redis_away',
    text: `${why}: no run of the schedule starts, and no event is accepted`,
    fix: outageWords.redis.fix,
  };
}

/** Returns the line about a Redis that drops keys when its memory is full. */
export function redisEvicts(policy: string): Attention {
  return {
    since: null,
    code: 'redis_evicts',
    text:
      `Redis throws away what waits in it when its memory is full (maxmemory-policy ${policy}): ` +
      'runs of the schedule and events can be lost',
    fix: 'set maxmemory-policy noeviction, or give the worker a Redis of its own',
  };
}

/**
 * Returns the line about a snapshot that cannot be read, or undefined if the error is a bug, or
 * says that another process has it locked now.
 */
export function unreadable(error: unknown): Attention | undefined {
  const { problem, code, text } = explain(error);
  const isBug = !isExpected(error) && text.includes('this is a bug');
  if (isBug || code === exitCode('busy')) return undefined;
  const { reason, fix = 'look at the file, its disk and its permissions' } = problem;
  const what = `the snapshot cannot be read, so nothing is known of this mirror: ${reason}`;
  return { code: 'snapshot_unreadable', text: what, fix, since: null };
}
