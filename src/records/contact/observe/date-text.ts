/** Whether a text is a date, as CRMs write when somebody was deleted or unsubscribed. */
import { z } from 'zod';

/** A day, and maybe a time with or without its zone. */
const time = String.raw`(?<time>\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)`;
const zone = String.raw`(?<zone>Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)`;
const form = new RegExp(String.raw`^(?<day>[\d./-]+)(?:(?:T|,? +)${time} ?${zone}?)?$`, 'i');

/** How days are written, and the order of year, month and day; a slash is used in two orders. */
const days: readonly [RegExp, ...(readonly [number, number, number])[]][] = [
  [/^(\d{4})([-/])(\d{1,2})\2(\d{1,2})$/, [1, 3, 4]],
  [/^(\d{1,2})\.(\d{1,2})\.(\d{4})$/, [3, 2, 1]],
  [/^(\d{1,2})\/(\d{1,2})\/(\d{4})$/, [3, 2, 1], [3, 1, 2]],
];

/** How MySQL writes that there is none. */
const zero = /^0000-00-00(?:[T ]00:00(?::00(?:\.0+)?)?Z?)?$/i;

/** No CRM is older: an earlier year stands for something else, as year 1 does for no date. */
const firstYear = 1900;
/** The clocks of the CRM and of this machine may differ by so much. */
const skewMs = 10 * 60_000;

/**
 * Tells what date a text is; undefined: none, or one that no calendar has. A date that names no
 * zone counts from its beginning anywhere on earth. `now`: milliseconds since the epoch.
 */
export function dateIn(text: string, now: number): 'past' | 'future' | 'zero' | undefined {
  // Most values are words, and this is asked of many.
  if (!/^\d/.test(text)) return undefined;
  if (zero.test(text)) return 'zero';
  const found = form.exec(text)?.groups ?? {};
  const moment = `${found['time'] ?? '00:00'}${offsetOf(found['zone'])}`;
  const times = daysIn(found['day'] ?? '').flatMap((day) => instantOf(day, moment) ?? []);
  if (times.length === 0) return undefined;
  return times.every((at) => at <= now + skewMs) ? 'past' : 'future';
}

/** The days of the calendar that a text may stand for: YYYY-MM-DD. */
function daysIn(text: string): string[] {
  return days.flatMap(([pattern, ...orders]) => {
    const parts = pattern.exec(text);
    if (!parts) return [];
    return orders
      .map((order) => order.map((at) => (parts[at] ?? '').padStart(2, '0')).join('-'))
      .filter(isReal);
  });
}

/** JavaScript takes the 30th of February for the 2nd of March. */
function isReal(day: string): boolean {
  const at = Date.parse(`${day}T00:00:00Z`);
  const isDay = !Number.isNaN(at) && new Date(at).toISOString().startsWith(day);
  return isDay && Number(day.slice(0, 4)) >= firstYear;
}

function instantOf(day: string, moment: string): number | undefined {
  const at = Date.parse(`${day}T${moment}`);
  return Number.isNaN(at) ? undefined : at;
}

function offsetOf(named: string | undefined): string {
  if (named === undefined) return '+14:00';
  const [, hours, minutes = '00'] = /^([+-]\d{2}):?(\d{2})?$/.exec(named) ?? [];
  return hours === undefined ? 'Z' : `${hours}:${minutes}`;
}

const instant = z.iso.datetime({ offset: true });

const day = z.iso.date();

const zoneless = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d([.,]\d+)?)?$/;

/**
 * When a will was stated, in milliseconds since the epoch; null when nothing is said, undefined
 * when it cannot be told. ISO 8601: an instant with its zone, or a day, which counts from its
 * beginning anywhere on earth.
 */
export function readConsentAt(text: string): number | null | undefined {
  if (text === '') return null;
  if (instant.safeParse(text).success) return Date.parse(text);
  return day.safeParse(text).success ? Date.parse(`${text}T00:00:00+14:00`) : undefined;
}

/** Of a time that cannot be told, whether it is that the zone is missing. */
export function isZoneless(text: string): boolean {
  return zoneless.test(text);
}
