/** The times of cron patterns, spread over the mirrors, and their intervals; and time zones. */
import { CronExpressionParser } from 'cron-parser';
import { offsetAt } from '../../domain/values/local-time.ts';

/** Returns whether a text is a cron pattern with five fields, or six that begin with seconds. */
export function isPattern(pattern: string): boolean {
  if (![5, 6].includes(fieldsIn(pattern))) return false;
  try {
    CronExpressionParser.parse(pattern);
    return true;
  } catch {
    return false;
  }
}

const fieldsIn = (pattern: string): number => pattern.trim().split(/\s+/).length;

/** Puts a time for each `H`, by `mirror` and `entry`, so that not all mirrors run at once. */
export function spread(
  pattern: string,
  { mirror, entry }: { mirror: string; entry: string },
): string {
  if (!/\bH\b/i.test(pattern)) return pattern;
  const times = CronExpressionParser.parse(pattern, { hashSeed: `${mirror} ${entry}` });
  return times.stringify(fieldsIn(pattern) === 6);
}

/** Returns the second-to-last time before `now` (epoch milliseconds) at which a pattern was due. */
export function dueBefore(pattern: string, timezone: string, now: number): number {
  const zone = zoneOf(timezone);
  // The clock may have been put back a moment ago, so that a time of day ahead of it has passed.
  const local = now + Math.max(zone.offset(now), zone.offset(now - longestShiftMs));
  const due = parse(pattern, local);
  const before: number[] = [];
  while (before.length < 2) {
    const at = zone.instant(due.prev().getTime());
    if (at < now && at !== before[0]) before.push(at);
  }
  return before[1] ?? now;
}

/**
 * Returns the next time after `now` at which a pattern is due. Times are milliseconds since the
 * epoch.
 *
 *   the clock is      a pattern of every hour     another pattern
 *   put forward       goes on with the next       a time of day that does not exist is due at the
 *                     time of day                 first moment after it
 *   put back          is due in both passes       a time of day that exists twice: at the first
 */
export function dueAfter(pattern: string, timezone: string, now: number): number {
  const zone = zoneOf(timezone);
  const due = parse(pattern, now + zone.offset(now));
  if (due.fields.hour.values.length === hoursOfDay) return dueByTheHour(pattern, zone, now + 1);
  for (;;) {
    const at = zone.instant(due.next().getTime());
    if (at > now) return at;
  }
}

const hoursOfDay = 24;
/** No clock is put back by more; the Troll station in Antarctica changes by two hours. */
const longestShiftMs = 3 * 3_600_000;

function dueByTheHour(pattern: string, zone: Zone, from: number): number {
  const offset = zone.offset(from);
  const at =
    parse(pattern, from - 1 + offset)
      .next()
      .getTime() - offset;
  if (zone.offset(at) === offset) return at;
  return dueByTheHour(pattern, zone, zone.change(from, at));
}

/** Reads a pattern by the time of day. Every one exists, as the days of UTC have no change. */
function parse(pattern: string, local: number) {
  return CronExpressionParser.parse(pattern, { currentDate: new Date(local), tz: 'UTC' });
}

type Zone = ReturnType<typeof zoneOf>;

/** Returns the clock of a zone. Moments and times of day are in epoch milliseconds. */
function zoneOf(timezone: string) {
  const offset = (at: number): number => offsetAt(at, timezone);
  const change = (before: number, after: number): number => {
    const first = offset(before);
    let [low, high] = [before, after];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (offset(middle) === first) low = middle;
      else high = middle;
    }
    return high;
  };
  return {
    offset,
    change,
    /** Returns the moment of a time of day: the first of two, or the first after a missing one. */
    instant(local: number): number {
      const [before, after] = [offset(local - dayMs), offset(local + dayMs)];
      const [early, late] = [local - Math.max(before, after), local - Math.min(before, after)];
      if (early + offset(early) === local) return early;
      return late + offset(late) === local ? late : change(early, late);
    },
  };
}

const dayMs = 86_400_000;

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
  const next = dueAfter(pattern, timezone, now);
  return dueAfter(pattern, timezone, next) - next;
}

/** The runs that a schedule may contain. The sentinel runs in parallel with them. */
export const runTicks = ['full', 'fast', 'templates'] as const;
export const lookTicks = ['sentinel'] as const;
export const ticks = [...runTicks, ...lookTicks];
export type Tick = (typeof ticks)[number];

/** Returns what an entry is called in text. */
export function tickWords(tick: Tick): string {
  return tick === 'sentinel' ? 'unsubscribe check' : tick;
}

/** Defines when the entries are due. */
export interface Schedule {
  patterns: Readonly<Record<Tick, string | undefined>>;
  timezone: string;
}

/** Returns the entries that have a pattern. */
export function dueIn({ patterns }: Schedule): { tick: Tick; pattern: string }[] {
  return ticks.flatMap((tick) => {
    const pattern = patterns[tick];
    return pattern === undefined ? [] : [{ tick, pattern }];
  });
}
