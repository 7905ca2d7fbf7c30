/** Cron patterns and time zones of a schedule. */
import { CronExpressionParser } from 'cron-parser';

/** Returns whether a text is a cron pattern: five fields, or six that begin with seconds. */
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

/**
 * Returns the last time but one that a pattern was due before `now`. Times are milliseconds since
 * the epoch.
 */
export function dueBefore(pattern: string, timezone: string, now: number): number {
  const due = CronExpressionParser.parse(pattern, { currentDate: new Date(now), tz: timezone });
  due.prev();
  return due.prev().getTime();
}

/**
 * Returns the next time that a pattern is due after `now`. Times are milliseconds since the epoch.
 */
export function dueAfter(pattern: string, timezone: string, now: number): number {
  const due = CronExpressionParser.parse(pattern, { currentDate: new Date(now), tz: timezone });
  return due.next().getTime();
}

/** Returns whether a text is the IANA name of a time zone. */
export function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).format(0) !== '';
  } catch {
    return false;
  }
}

/** Returns the milliseconds between the next two times that a pattern names after `now`. */
export function intervalOf(
  pattern: string,
  { timezone, now }: { timezone: string; now: number },
): number {
  const times = CronExpressionParser.parse(pattern, { tz: timezone, currentDate: new Date(now) });
  const next = times.next().getTime();
  return times.next().getTime() - next;
}
