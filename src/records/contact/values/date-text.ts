/** The formats that CRMs use for the date on which a person was deleted or unsubscribed. */

const time = String.raw`(?<hour>\d{1,2})(?<rest>:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)`;
const half = String.raw`(?:\s?(?<half>[ap])\.?m\.?)`;
const zone = String.raw`(?<zone>Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)`;
const form = new RegExp(
  String.raw`^(?<day>[\d./-]+)(?:(?:T|,? +)${time}${half}? ?${zone}?)?$`,
  'i',
);

/** The patterns of a day, and their groups. One that ends with its year has two orders. */
const days: readonly [RegExp, ...(readonly [number, number, number])[]][] = [
  [/^(\d{4})([-/])(\d{1,2})\2(\d{1,2})$/, [1, 3, 4]],
  [/^(\d{1,2})\.(\d{1,2})\.(\d{4}|\d{2})$/, [3, 2, 1]],
  [/^(\d{1,2})([-/])(\d{1,2})\2(\d{4})$/, [4, 3, 1], [4, 1, 3]],
  [/^(\d{1,2})\/(\d{1,2})\/(\d{2})$/, [3, 2, 1], [3, 1, 2]],
];

/** The date that MySQL writes in place of a missing one. */
const zero = /^0000-00-00(?:[T ]00:00(?::00(?:\.0+)?)?Z?)?$/i;

/** The first year that is accepted. An earlier one is a placeholder, such as year 1 for no date. */
const firstYear = 1900;
const earliestZoneMs = 14 * 3_600_000;
const skewMs = 10 * 60_000;

/**
 * Returns whether a text is a date in the past or future, or the zero date of MySQL. Returns
 * undefined if it is not a date, or not one that exists in the calendar. A date without a zone
 * starts in the earliest zone (UTC+14). `now` is in milliseconds since the epoch.
 */
export function dateIn(text: string, now: number): 'past' | 'future' | 'zero' | undefined {
  // Most values are words. This check avoids matching those against all date forms.
  if (!/^\d/.test(text)) return undefined;
  if (zero.test(text)) return 'zero';
  const found = form.exec(text)?.groups ?? {};
  const moment = `${timeOf(found)}${offsetOf(found['zone'])}`;
  const times = daysIn(found['day'] ?? '')
    .map((day) => Date.parse(`${day}T${moment}`))
    .filter((at) => !Number.isNaN(at));
  if (times.length === 0) return undefined;
  return times.every((at) => at <= now + skewMs) ? 'past' : 'future';
}

/** The number that Excel stores for 1 January 1990. A smaller one is hardly a date of a CRM. */
const firstSerial = 32_874;
/** The number that Excel stores for 1 January 1970. */
const epochSerial = 25_569;
const dayMs = 86_400_000;

/**
 * Returns whether a text is a number that Excel stores for a date from 1990 until now, such as
 * 45900 or 45900.5. A spreadsheet shows it if the cell has lost its format. Only the other values
 * of its column tell whether it is a date. `now` is in milliseconds since the epoch.
 */
export function isSerialDate(text: string, now: number): boolean {
  if (!/^\d{5}(?:[.,]\d{1,12})?$/.test(text)) return false;
  const serial = Number(text.replace(',', '.'));
  const at = (serial - epochSerial) * dayMs - earliestZoneMs;
  return serial >= firstSerial && at <= now + skewMs;
}

function daysIn(text: string): string[] {
  return days.flatMap(([pattern, ...orders]) => {
    const parts = pattern.exec(text);
    if (!parts) return [];
    return orders.flatMap(([year, month, day]) => {
      const written = parts[year] ?? '';
      // Two digits are of this century or of the last one.
      const years = written.length === 2 ? [`19${written}`, `20${written}`] : [written];
      return years
        .map((one) => [one, parts[month], parts[day]])
        .map((numbers) => numbers.map((number = '') => number.padStart(2, '0')).join('-'))
        .filter((day) => {
          const at = Date.parse(`${day}T00:00:00Z`);
          const isDay = !Number.isNaN(at) && new Date(at).toISOString().startsWith(day);
          return isDay && Number(day.slice(0, 4)) >= firstYear;
        });
    });
  });
}

function timeOf({ hour, rest = '', half }: Record<string, string | undefined>): string {
  if (hour === undefined) return '00:00';
  if (half === undefined) return `${hour.padStart(2, '0')}${rest}`;
  const shown = Number(hour);
  const hours = (shown % 12) + (/p/i.test(half) ? 12 : 0);
  return shown >= 1 && shown <= 12 ? `${String(hours).padStart(2, '0')}${rest}` : 'no time';
}

function offsetOf(named: string | undefined): string {
  if (named === undefined) return '+14:00';
  const [, hours, minutes = '00'] = /^([+-]\d{2}):?(\d{2})?$/.exec(named) ?? [];
  return hours === undefined ? 'Z' : `${hours}:${minutes}`;
}
