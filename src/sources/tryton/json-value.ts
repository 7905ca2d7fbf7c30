/** A value as Tryton's JSON writes it, as a record has it. */
import { z } from 'zod';

const part = z.number().int();
const day = z.object({ year: part, month: part, day: part });
const clock = z.object({ hour: part, minute: part, second: part, microsecond: part });

type Day = z.infer<typeof day>;
type Clock = z.infer<typeof clock>;
const named = <T extends string>(name: T) => z.object({ __class__: z.literal(name) });

/** Those that JSON has no word for; a time is one of UTC. */
const spelt = z.union([
  named('datetime')
    .extend({ ...day.shape, ...clock.shape })
    .transform((at) => `${dayText(at)}T${clockText(at)}Z`),
  named('date').extend(day.shape).transform(dayText),
  named('time').extend(clock.shape).transform(clockText),
  named('timedelta')
    .extend({ seconds: z.number() })
    .transform(({ seconds }) => seconds),
  named('Decimal')
    .extend({ decimal: z.string() })
    .transform(({ decimal }) => decimal),
]);

/** A choice of several is one text, joined by commas; what is nested stays so. */
export function plain(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value ?? null;
  if (Array.isArray(value)) return value.map(String).join(',');
  const { data } = spelt.safeParse(value);
  if (data !== undefined) return data;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plain(inner)]));
}

/** SQLite has numbers for them. */
export function isTrue(value: unknown): boolean {
  return value === true || value === 1;
}

/** A time for a condition. */
export function momentOf(ms: number): object {
  const at = new Date(ms);
  return {
    __class__: 'datetime',
    year: at.getUTCFullYear(),
    month: at.getUTCMonth() + 1,
    day: at.getUTCDate(),
    hour: at.getUTCHours(),
    minute: at.getUTCMinutes(),
    second: at.getUTCSeconds(),
    microsecond: at.getUTCMilliseconds() * 1000,
  };
}

function dayText({ year, month, day }: Day): string {
  return `${digits(year, 4)}-${digits(month, 2)}-${digits(day, 2)}`;
}

function clockText({ hour, minute, second, microsecond }: Clock): string {
  const fraction = microsecond === 0 ? '' : `.${digits(microsecond, 6)}`;
  return `${digits(hour, 2)}:${digits(minute, 2)}:${digits(second, 2)}${fraction}`;
}

function digits(value: number, count: number): string {
  return String(value).padStart(count, '0');
}
