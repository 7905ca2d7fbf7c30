/** What a schedule is written in. */
import { CronExpressionParser } from 'cron-parser';

/** Five fields, or six with the seconds first. */
export function isPattern(pattern: string): boolean {
  const fields = pattern.trim().split(/\s+/).length;
  if (fields < 5 || fields > 6) return false;
  try {
    CronExpressionParser.parse(pattern);
    return true;
  } catch {
    return false;
  }
}

/** The last time but one at which it was due, in milliseconds since the epoch. */
export function dueBefore(pattern: string, timezone: string, now: number): number {
  const due = CronExpressionParser.parse(pattern, { currentDate: new Date(now), tz: timezone });
  due.prev();
  return due.prev().getTime();
}

/** The next time at which it is due, in milliseconds since the epoch. */
export function dueAfter(pattern: string, timezone: string, now: number): number {
  const due = CronExpressionParser.parse(pattern, { currentDate: new Date(now), tz: timezone });
  return due.next().getTime();
}

/** By its IANA name. */
export function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).format(0) !== '';
  } catch {
    return false;
  }
}

/** Milliseconds between the next two times that a pattern names after `now`. */
export function intervalOf(
  pattern: string,
  { timezone, now }: { timezone: string; now: number },
): number {
  const times = CronExpressionParser.parse(pattern, { tz: timezone, currentDate: new Date(now) });
  const next = times.next().getTime();
  return times.next().getTime() - next;
}
