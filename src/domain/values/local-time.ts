/**
 * Converts times into the local time of a time zone, and reads dates and times that a CRM writes in
 * its own format and time zone.
 *
 *   yyyy        the year              HH          the hour, 00 to 23
 *   MM, M       the month             mm          the minute
 *   dd, d       the day               ss          the second
 *
 * A space stands for one or more spaces. Text in '…' and every other character that is no letter
 * stand for themselves. One letter of M and d accepts one or two digits.
 */

/** The days of a week, in the form in which the configuration names them. */
export const weekdays = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'] as const;
export type Weekday = (typeof weekdays)[number];

export interface LocalTime {
  weekday: Weekday;
  /** 0 to 23. */
  hour: number;
  /** The minutes since midnight, as the clock shows them: 0 to 1439. */
  minuteOfDay: number;
}

/** Returns the local time at `at` (epoch milliseconds). Throws RangeError for an unknown zone. */
export function localTime(at: number, timezone: string): LocalTime {
  const local = new Date(at + offsetAt(at, timezone));
  const hour = local.getUTCHours();
  const weekday = weekdays[(local.getUTCDay() + 6) % 7] ?? 'Mon';
  return { weekday, hour, minuteOfDay: hour * 60 + local.getUTCMinutes() };
}

/** One for each zone, because creating a format is slow. */
const offsets = new Map<string, Intl.DateTimeFormat>();

/** Returns how far the clock of a zone is ahead of UTC at `at`, both in milliseconds. */
export function offsetAt(at: number, timezone: string): number {
  const format =
    offsets.get(timezone) ??
    new Intl.DateTimeFormat('en', { timeZone: timezone, timeZoneName: 'longOffset' });
  offsets.set(timezone, format);
  const name = format.formatToParts(at).find(({ type }) => type === 'timeZoneName')?.value ?? '';
  const [, sign, hours, minutes, seconds = 0] = /([+-])(\d\d):(\d\d)(?::(\d\d))?$/.exec(name) ?? [];
  if (sign === undefined) return 0;
  const ms = ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1_000;
  return sign === '-' ? -ms : ms;
}

interface DateFormat {
  /** Whether the format has an hour. Without one, a text is a day, which begins at midnight. */
  hasTime: boolean;
  /** Returns the wall-clock time as if it were UTC, in milliseconds; undefined if there is none. */
  read(text: string): number | undefined;
}

const tokens = {
  yyyy: ['year', String.raw`\d{4}`],
  MM: ['month', String.raw`\d{2}`],
  M: ['month', String.raw`\d{1,2}`],
  dd: ['day', String.raw`\d{2}`],
  d: ['day', String.raw`\d{1,2}`],
  HH: ['hour', String.raw`\d{2}`],
  mm: ['minute', String.raw`\d{2}`],
  ss: ['second', String.raw`\d{2}`],
} as const;

const part = /'(?<quoted>[^']*)'|(?<letters>[A-Za-z]+)|(?<space>\s+)|(?<mark>[^A-Za-z'])/gy;

/** The first year that is accepted. An earlier one is a placeholder, such as year 1 for no date. */
const firstYear = 1900;

/** Parses a format. Returns what is wrong with it, and how to fix it, if it is none. */
export function parseDateFormat(format: string): DateFormat | { reason: string; fix: string } {
  const fix = "write it with yyyy, MM, dd, HH, mm and ss, such as dd.MM.yyyy HH:mm; text as '…'";
  const found = [...format.matchAll(part)];
  if (found.map(([all]) => all).join('') !== format) {
    return { reason: 'has a quote without its counterpart', fix };
  }
  const names: string[] = [];
  const patterns: string[] = [];
  /** The part before, if it takes one or two digits and nothing separates it from the next one. */
  let open: string | undefined;
  for (const { groups = {} } of found) {
    const { quoted, letters, space, mark = '' } = groups;
    const token = Object.entries(tokens).find(([name]) => name === letters)?.[1];
    if (letters !== undefined && !token) return { reason: `has the unknown part ${letters}`, fix };
    if (token && open !== undefined) {
      return { reason: `has ${open} directly before another number`, fix: `write ${open}${open}` };
    }
    if (token) open = letters?.length === 1 ? letters : undefined;
    else if (quoted !== '') open = undefined;
    if (token) names.push(token[0]);
    if (token) patterns.push(`(?<${token[0]}>${token[1]})`);
    else if (space !== undefined) patterns.push(String.raw`\s+`);
    else patterns.push((quoted ?? mark).replaceAll(/[$()*+./?[\\\]^{|}-]/g, String.raw`\$&`));
  }
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) return { reason: `has the ${twice} twice`, fix };
  const hasClock = ['hour', 'minute', 'second'].some((name) => names.includes(name));
  const needed = ['year', 'month', 'day', ...(hasClock ? ['hour', 'minute'] : [])];
  const lacking = needed.find((name) => !names.includes(name));
  if (lacking !== undefined) return { reason: `has no ${lacking}`, fix };
  const whole = new RegExp(`^${patterns.join('')}$`);
  return {
    hasTime: names.includes('hour'),
    read: (text) => {
      const groups = whole.exec(text)?.groups;
      if (!groups) return undefined;
      const number = (name: string): number => Number(groups[name] ?? 0);
      const [year, month, day] = [number('year'), number('month'), number('day')];
      const [hour, minute, second] = [number('hour'), number('minute'), number('second')];
      if (year < firstYear || hour > 23 || minute > 59 || second > 59) return undefined;
      const at = new Date(Date.UTC(year, month - 1, day, hour, minute, second));
      // JavaScript would turn the 30th of February into the 2nd of March.
      return at.getUTCMonth() === month - 1 && at.getUTCDate() === day ? at.getTime() : undefined;
    },
  };
}

const dayMs = 86_400_000;
const known = new Map<string, readonly [before: number, after: number]>();

/**
 * Returns the epoch milliseconds at which a clock in the zone showed this time; the earlier one, if
 * it showed it twice, or never because it was put forward.
 */
export function earliestInstant(wall: number, timezone: string): number {
  const day = Math.floor(wall / dayMs);
  const name = `${timezone} ${day}`;
  // The offsets before and after the day differ if the zone's clock changes.
  const offsets = known.get(name) ?? [
    offsetAt((day - 1) * dayMs, timezone),
    offsetAt((day + 2) * dayMs, timezone),
  ];
  known.set(name, offsets);
  const instants = offsets.map((offset) => wall - offset);
  if (offsets[0] === offsets[1]) return wall - offsets[0];
  const real = instants.filter((at, nth) => offsetAt(at, timezone) === offsets[nth]);
  return Math.min(...(real.length > 0 ? real : instants));
}
