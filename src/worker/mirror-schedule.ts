/**
 * The schedule of a mirror: stored in Redis, kept whole there, and removed. What happens to its
 * runs is noticed by the schedule and the clock of this machine alone: whatever Redis does with the
 * runs that it stores, it cannot hide that none comes.
 *
 *   the time of a run has passed                                  nothing yet
 *   by more than a minute, and no run of its queue is in          an outage of the schedule
 *   progress, nor one by another process, and nobody has paused
 *   the mirror
 *   a run has been made, and none is overdue                      the outage has ended
 *   a run has failed                                              repeated at growing delays
 *
 * There is one repetition at a time for each entry of the schedule: a run that the schedule starts
 * meanwhile takes its place.
 */
import type { Clock } from '../domain/clock.ts';
import { isExpected, renderProblem, Unavailable } from '../domain/errors.ts';
import {
  dueAfter,
  dueIn,
  type Schedule,
  type Tick,
  tickWords,
} from '../config/schema/cron-pattern.ts';
import { systemClock } from '../http/system-clock.ts';
import type { OutageNotes } from '../store/health-file.ts';
import type { Shell } from '../compose/process-shell.ts';
import { explain } from '../compose/output/failure-report.ts';
import type { RunQueue } from '../compose/queues/run-queue.ts';
import type { Connections } from '../compose/queues/shared-connections.ts';
import { instant } from '../compose/output/format-values.ts';
import { type Attention, redisAway, redisEvicts } from '../views/status/attention.ts';
import { nothingDue, type Workable } from './mirror-folder.ts';

/** How long a mirror that leaves waits for Redis to remove its schedule. */
const unfollowMs = 10_000;

/** Returns the entries that were missing in Redis. Throws Unavailable if Redis refuses them. */
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

/** How often the schedule is compared with Redis: a dozen commands. With a reason, soon. */
const checkMs = 300_000;
const soonMs = 30_000;

/** Knows what is wrong with the schedule in Redis, and mends it there. */
export function keepSchedule(
  queue: RunQueue,
  config: Workable,
  { stop, note }: Shell,
  { connections, clock }: { connections: Connections; clock: Clock },
) {
  const { away: lost, node } = connections;
  const say = (what: string): void => note(`crm-mirror: ${config.mirror}: ${what}`);
  /** Why Redis refuses the schedule, and the policy by which it drops keys, if it does. */
  let refusal: string | undefined;
  let evicts: string | undefined;
  let since = clock.monotonic();
  let wholeAt = Number.NEGATIVE_INFINITY;
  let known = 0;
  const away = (): string | undefined => lost() ?? refusal;
  const refused = (reason: string | undefined): void => {
    if (reason === refusal) return;
    if (away() === undefined) since = clock.monotonic();
    refusal = reason;
    say(
      reason
        ? `${reason}; the schedule waits for it`
        : 'Redis is there again, the schedule goes on',
    );
  };
  const mend = async (): Promise<void> => {
    wholeAt = Number.NEGATIVE_INFINITY;
    known = node.doubts();
    const mended = await follow(queue, config);
    if (mended.length > 0) {
      const reason = `Redis had lost a part of the schedule (${mended.map(tickWords).join(', ')})`;
      const fix = 'it is stored again; see that nothing removes keys of crm-mirror from this Redis';
      say(renderProblem({ reason, fix }));
    }
    evicts = await queue.evictsBy();
    refused(undefined);
    if (evicts === undefined) wholeAt = clock.monotonic();
  };
  return {
    away,
    /** Returns the lines about Redis: that it drops keys, or has been away for that long. */
    faults(ms: number): Attention[] {
      const [why, forMs] = [away(), clock.monotonic() - since];
      const sinceAt = new Date(clock.now() - forMs).toISOString();
      return [
        ...(why === undefined || forMs < ms ? [] : [redisAway(why, sinceAt)]),
        ...(evicts === undefined ? [] : [redisEvicts(evicts)]),
      ];
    },
    /** To be called when the connection is lost, or back. */
    changed(): void {
      if (refusal === undefined) since = clock.monotonic();
      refusal = undefined;
    },
    /** Mends the schedule while it `isOurs`, with a line about what was lost, until `stop`. */
    async keep(isOurs: () => boolean, isLate: () => boolean): Promise<void> {
      while (!stop.aborted) {
        const isOld = clock.monotonic() - wholeAt >= checkMs;
        const isDue = isOld || isLate() || node.doubts() !== known;
        if (isDue && isOurs() && lost() === undefined) {
          await mend().catch((error: unknown) => {
            if (!stop.aborted) refused(explain(error).problem.reason);
          });
        }
        await clock.sleep(soonMs, stop).catch(() => undefined);
      }
    },
  };
}

/** Removes the schedule from Redis. Prints why if Redis does not do it in time. */
export async function unfollow(queue: RunQueue, { mirror }: Workable, shell: Shell): Promise<void> {
  const stays = (why: string): void => {
    const reason = `the schedule stays in Redis (${why})`;
    const fix = 'nothing is run by it: no worker serves this mirror';
    shell.note(`crm-mirror: ${mirror}: ${renderProblem({ reason, fix })}`);
  };
  const late = new AbortController();
  const given = systemClock.sleep(unfollowMs, AbortSignal.any([shell.stop, late.signal]));
  const done = queue.follow(nothingDue).then(() => true);
  try {
    if (await Promise.race([done, given.then(() => false)])) return;
    stays('Redis is away');
  } catch (error) {
    if (!shell.stop.aborted) stays(explain(error).text);
  } finally {
    done.catch(() => undefined);
    late.abort();
    given.catch(() => undefined);
  }
}

const lateMs = 60_000;
/** After this time without a look, Redis may have been away, and gets time to hand out runs. */
const gapMs = 90_000;

type Run = (tick: Tick, dueMs: number) => Promise<'over' | 'elsewhere'>;

/** Nothing is due before `watched`. `isHalted`: the mirror is paused, or runs elsewhere. */
export function watchOverdue(
  schedule: Schedule,
  outages: OutageNotes,
  now: () => number,
  isHalted: () => boolean,
) {
  const due = new Map<Tick, number>();
  const busy = new Set<Tick>();
  let hasRun = false;
  let isLate = false;
  let lookedAt = 0;
  let fromMs = 0;
  const begin = (): void => {
    for (const { tick, pattern } of dueIn(schedule)) {
      const next = dueAfter(pattern, schedule.timezone, now());
      due.set(tick, Math.min(next, due.get(tick) ?? next));
    }
  };
  const isBusy = (tick: Tick): boolean =>
    [...busy].some((one) => (one === 'sentinel') === (tick === 'sentinel'));
  return {
    /** Returns this function, which makes the runs that are due, so that they are noticed. */
    watched(run: Run): Run {
      begin();
      return async (tick, dueMs) => {
        const before = due.get(tick);
        due.delete(tick);
        begin();
        busy.add(tick);
        const end = await run(tick, dueMs).finally(() => busy.delete(tick));
        if (end === 'over') hasRun = true;
        else if (before !== undefined) due.set(tick, before);
        return end;
      };
    },
    isLate: () => isLate,
    /** Looks; called every few seconds while the worker has the mirror and Redis is there. */
    look(): void {
      const at = now();
      // The clock may have been set, too: a time that was far ahead is none any more.
      if (at < lookedAt || at - lookedAt > gapMs) {
        fromMs = at;
        if (due.size > 0) begin();
      }
      lookedAt = at;
      const late = [...due].filter(([, ms]) => at - Math.max(ms, fromMs) > lateMs);
      if (late.length === 0 && hasRun) outages.works('schedule', true);
      const kept = late.filter(([tick]) => !isBusy(tick));
      isLate = kept.length > 0 && !isHalted();
      if (!isLate) return;
      const words = kept.map(([tick, ms]) => `${tickWords(tick)} was due at ${instant(ms)}`);
      outages.failed('schedule', { reason: words.join(', ') }, 'probe');
    },
  };
}

const minuteMs = 60_000;

/** The delays after the first failures in a row; the last one counts for all that follow. */
const delaysMs = [minuteMs, 2 * minuteMs, 5 * minuteMs, 15 * minuteMs] as const;
const longestMs = delaysMs[3];

export type RunRetries = ReturnType<typeof createRunRetries>;

/** Repeats runs that failed. `run` returns `elsewhere` if it could not begin: again in a minute. */
export function createRunRetries(clock: Clock, run: (tick: Tick) => Promise<'over' | 'elsewhere'>) {
  const waits = new Map<Tick, AbortController>();
  const failures = new Map<Tick, number>();
  const wait = (tick: Tick, delayMs: number): void => {
    waits.get(tick)?.abort();
    const over = new AbortController();
    waits.set(tick, over);
    const repeat = async (): Promise<void> => {
      await clock.sleep(delayMs, over.signal);
      if ((await run(tick)) === 'elsewhere' && !over.signal.aborted) wait(tick, minuteMs);
    };
    repeat().catch(() => undefined);
  };
  return {
    /** Has a run made at once, unless it was repeated or made before. */
    begin(tick: Tick): void {
      if (!waits.has(tick)) wait(tick, 0);
    },
    failed(tick: Tick): void {
      const count = failures.get(tick) ?? 0;
      failures.set(tick, count + 1);
      wait(tick, delaysMs[count] ?? longestMs);
    },
    wentWell(tick: Tick): void {
      failures.delete(tick);
      waits.get(tick)?.abort();
    },
    close: (): void => waits.forEach((over) => over.abort()),
  };
}
