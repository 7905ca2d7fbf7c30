/**
 * Defines a Tryton party as it was read, and converts it into a record: `{ id, active, inactive,
 * email, emails, lang, categories, …the requested fields }`.
 *
 *   email        the first active address, in Tryton's order; for an inactive party without one the
 *                first inactive address, which identifies who was removed
 *   emails       all active addresses, joined by commas
 *   categories   all category names, joined by commas; a comma within a name becomes a semicolon,
 *                so that no part of it looks like another category
 *   lang         the language code
 */
import { z } from 'zod';
import type { Listed } from './tryton-api.ts';
import type { SelectedFields } from './field-selection.ts';

/** A party as it was read. */
export interface Party {
  id: number;
  isActive: boolean;
  /** The id of the party into which it was merged. */
  replacedBy: number | undefined;
  /** Whether any address is known. An inactive party without one is irrelevant. */
  isReachable: boolean;
  values: Record<string, unknown>;
  /** The text from which it was parsed; it may contain more than this party. */
  text: string;
}

const truth = z.union([z.boolean(), z.number()]).nullish();
const mechanism = z.object({ type: z.string(), value: z.string().nullish(), active: truth });
const read = z.object({
  id: z.number(),
  active: truth,
  replaced_by: z.number().nullish(),
  'contact_mechanisms.': z.array(mechanism).default([]),
  'categories.': z.array(z.object({ name: z.string() })).default([]),
  'lang.': z.object({ code: z.string() }).nullish(),
});

/** Returns a party, or undefined if the response has a different shape. */
export function partyOf(value: Listed, wanted: SelectedFields, text: string): Party | undefined {
  const { data } = read.safeParse(value);
  if (!data) return undefined;
  const { id, active, replaced_by: replacedBy } = data;
  const isActive = isTrue(active);
  const addresses = data['contact_mechanisms.'].flatMap(({ type, value: given, active: isOn }) =>
    type === 'email' && given ? [{ address: given.trim(), isOn: isTrue(isOn) }] : [],
  );
  const valid = addresses.filter(({ isOn }) => isOn).map(({ address }) => address);
  const former = isActive ? undefined : addresses[0]?.address;
  return {
    id,
    isActive,
    replacedBy: replacedBy ?? undefined,
    isReachable: addresses.length > 0,
    text,
    values: {
      ...extrasOf(value, wanted),
      id: String(id),
      active: isActive,
      inactive: !isActive,
      email: valid[0] ?? former ?? null,
      emails: valid.join(','),
      ...(wanted.lang && { lang: data['lang.']?.code ?? null }),
      ...(wanted.categories && { categories: data['categories.'].map(named).join(',') }),
    },
  };
}

function named({ name }: { name: string }): string {
  return name.replaceAll(',', ';').trim();
}

function extrasOf(value: Listed, { extras }: SelectedFields): Record<string, unknown> {
  const entries = extras.map(({ name, isTruth, isLink }): [string, unknown] => {
    if (isLink) return [name, nameIn(value[`${name}.`])];
    const found = value[name];
    return [name, isTruth && typeof found === 'number' ? isTrue(found) : plain(found)];
  });
  return Object.fromEntries(entries);
}

const titled = z.object({ rec_name: z.string() });

function nameIn(value: unknown): string | null {
  return titled.safeParse(value).data?.rec_name ?? null;
}

const part = z.number().int();

const day = z.object({ year: part, month: part, day: part });

const clock = z.object({ hour: part, minute: part, second: part, microsecond: part });

type Day = z.infer<typeof day>;

type Clock = z.infer<typeof clock>;

/** Values that JSON cannot represent. A time is in UTC. */
const spelt = z.union([
  z
    .object({ __class__: z.literal('datetime'), ...day.shape, ...clock.shape })
    .transform((at) => `${dayText(at)}T${clockText(at)}Z`),
  z.object({ __class__: z.literal('date'), ...day.shape }).transform(dayText),
  z.object({ __class__: z.literal('time'), ...clock.shape }).transform(clockText),
  z
    .object({ __class__: z.literal('timedelta'), seconds: z.number() })
    .transform(({ seconds }) => seconds),
  z
    .object({ __class__: z.literal('Decimal'), decimal: z.string() })
    .transform(({ decimal }) => decimal),
]);

/**
 * Converts a value of Tryton's JSON for a record. Several choices become one text, joined by
 * commas.
 */
export function plain(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value ?? null;
  if (Array.isArray(value)) return value.map(String).join(',');
  const { data } = spelt.safeParse(value);
  if (data !== undefined) return data;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plain(inner)]));
}

/** Returns whether a value is true. SQLite represents booleans as numbers. */
function isTrue(value: unknown): boolean {
  return value === true || value === 1;
}

/** Formats a time for a condition. */
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
