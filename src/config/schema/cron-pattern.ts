/** Handles the cron patterns and time zones of a schedule. */
import { CronExpressionParser } from 'cron-parser';

/**
 * Returns whether a text is a cron pattern, with five fields, or six fields that begin with
 * seconds.
 */
export function isPattern(pattern: string): boolean {
  const fields = fieldsIn(pattern);
  if (fields < 5 || fields > 6) return false;
  try {
    CronExpressionParser.parse(pattern);
    return true;
  } catch {
    return false;
  }
}

function fieldsIn(pattern: string): number {
  return pattern.trim().split(/\s+/).length;
}

interface MirrorEntry {
  mirror: string;
  entry: string;
}

/**
 * Returns a pattern with a time in the place of each `H`, so that many mirrors with the same
 * pattern do not run at the same moment. The same `mirror` and `entry` always get the same time.
 */
export function spread(pattern: string, { mirror, entry }: MirrorEntry): string {
  if (!/\bH\b/i.test(pattern)) return pattern;
  const times = CronExpressionParser.parse(pattern, { hashSeed: `${mirror} ${entry}` });
  return times.stringify(fieldsIn(pattern) === 6);
}

/**
 * Returns the second-to-last time before `now` at which a pattern was due. Times are milliseconds
 * since the epoch.
 */
export function dueBefore(pattern: string, timezone: string, now: number): number {
  const due = CronExpressionParser.parse(pattern, { currentDate: new Date(now), tz: timezone });
  due.prev();
  return due.prev().getTime();
}

/**
 * Returns the next time after `now` at which a pattern is due. Times are milliseconds since the
 * epoch.
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

/** Returns the milliseconds between the next two times after `now` at which a pattern is due. */
export function intervalOf(
  pattern: string,
  { timezone, now }: { timezone: string; now: number },
): number {
  const times = CronExpressionParser.parse(pattern, { tz: timezone, currentDate: new Date(now) });
  const next = times.next().getTime();
  return times.next().getTime() - next;
}
