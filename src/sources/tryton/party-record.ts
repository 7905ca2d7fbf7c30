/**
 * A party of Tryton as it was read, and as a record:
 * `{ id, active, inactive, email, emails, lang, categories, …the fields that are asked for }`.
 *
 *   email        the first active address, in Tryton's order; of somebody inactive without one, the
 *                first that is inactive: it says who is gone
 *   emails       all active addresses, joined by commas
 *   categories   the names of all, joined by commas; a comma within a name is a semicolon here, so
 *                that no part of it is taken for another category
 *   lang         its code
 */
import { z } from 'zod';
import type { Listed } from './tryton-api.ts';
import type { SelectedFields } from './field-selection.ts';
import { isTrue, plain } from './json-value.ts';

export interface Party {
  id: number;
  isActive: boolean;
  /** The party that it was merged into. */
  replacedBy: number | undefined;
  /** Whether any address is known: nobody else is of interest once she is inactive. */
  isReachable: boolean;
  values: Record<string, unknown>;
  /** What it was read from, or more. */
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

/** Undefined: it is none as was asked for. */
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
