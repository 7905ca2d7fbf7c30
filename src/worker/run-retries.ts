/**
 * Repeats a scheduled run that failed, at growing delays, so that a mirror does not wait for its
 * next full run once what failed works again. There is one repetition at a time for each entry of
 * the schedule: a run that the schedule starts meanwhile takes its place.
 */
import type { Clock } from '../domain/clock.ts';
import type { Tick } from '../compose/queues/run-schedule.ts';

const minuteMs = 60_000;

/** The delays after the first failures in a row; the last one counts for all that follow. */
const delaysMs = [minuteMs, 2 * minuteMs, 5 * minuteMs, 15 * minuteMs] as const;
const longestMs = delaysMs[3];

/** The repetitions of one mirror. */
export interface RunRetries {
  /** Has a run made at once, unless it was repeated or made before. */
  begin(tick: Tick): void;
  /** Has a run that failed repeated later. */
  failed(tick: Tick): void;
  /** Ends the repetitions of a run that went well. */
  wentWell(tick: Tick): void;
  close(): void;
}

/** `run` returns `elsewhere` if it could not begin, and is then called again a minute later. */
export function createRunRetries(
  clock: Pick<Clock, 'sleep'>,
  run: (tick: Tick) => Promise<'over' | 'elsewhere'>,
): RunRetries {
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
    begin(tick) {
      if (!waits.has(tick)) wait(tick, 0);
    },
    failed(tick) {
      const count = failures.get(tick) ?? 0;
      failures.set(tick, count + 1);
      wait(tick, delaysMs[count] ?? longestMs);
    },
    wentWell(tick) {
      failures.delete(tick);
      waits.get(tick)?.abort();
    },
    close: () => waits.forEach((over) => over.abort()),
  };
}
