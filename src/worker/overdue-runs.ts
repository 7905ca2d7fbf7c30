/**
 * Notices runs of the schedule that are overdue, by the schedule and the clock of this machine
 * alone: whatever Redis does with the runs that it stores, it cannot hide that none comes.
 *
 *   the time of a run has passed                                  nothing yet
 *   by more than a minute, and no run of its queue is in          an outage of the schedule
 *   progress, nor one by another process, and nobody has paused
 *   the mirror
 *   a run has been made, and none is overdue                      the outage has ended
 */
import { dueAfter } from '../config/schema/cron-pattern.ts';
import type { Clock } from '../domain/clock.ts';
import { instant } from '../compose/output/format-values.ts';
import type { OutageRecord } from '../store/health-file.ts';
import { dueIn, type Schedule, type Tick, tickWords } from '../compose/queues/run-schedule.ts';

/** A run is overdue after this time. */
const lateMs = 60_000;
/** After this time without a look, Redis may have been away, and gets time to hand out runs. */
const gapMs = 90_000;

type Run = (tick: Tick, dueMs: number) => Promise<'over' | 'elsewhere'>;

/** What the watch needs. */
interface WatchOptions {
  schedule: Schedule;
  outages: Pick<OutageRecord, 'failed' | 'works'>;
  clock: Pick<Clock, 'now'>;
  /** Returns whether the mirror is paused, or another process makes a run. */
  isHalted(): boolean;
}

/** Creates the watch. Nothing is due before `watched`. */
export function watchOverdue({ schedule, outages, clock, isHalted }: WatchOptions) {
  const due = new Map<Tick, number>();
  const busy = new Set<Tick>();
  let hasRun = false;
  let lookedAt = 0;
  let fromMs = 0;
  const nextOf = (tick: Tick, pattern: string): number => {
    const next = dueAfter(pattern, schedule.timezone, clock.now());
    return Math.min(next, due.get(tick) ?? next);
  };
  const begin = (): void => {
    for (const { tick, pattern } of dueIn(schedule)) due.set(tick, nextOf(tick, pattern));
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
    /** Looks; called every few seconds while the worker has the mirror and Redis is there. */
    look(): void {
      const at = clock.now();
      // The clock may have been set, too: a time that was far ahead is none any more.
      if (at < lookedAt || at - lookedAt > gapMs) {
        fromMs = at;
        if (due.size > 0) begin();
      }
      lookedAt = at;
      const late = [...due].filter(([, ms]) => at - Math.max(ms, fromMs) > lateMs);
      if (late.length === 0 && hasRun) outages.works('schedule', true);
      const kept = late.filter(([tick]) => !isBusy(tick));
      if (kept.length === 0 || isHalted()) return;
      const words = kept.map(([tick, ms]) => `${tickWords(tick)} was due at ${instant(ms)}`);
      outages.failed('schedule', { reason: words.join(', ') }, 'probe');
    },
  };
}
