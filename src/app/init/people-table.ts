/** Shows what becomes of people: in the preview of `init`, and in `check`. */
import type { Table } from '../../views/sections.ts';

/** What becomes of a record, in the order in which `check` shows one of each. */
export const fates = ['mapped', 'invalid', 'gone', 'unsubscribed', 'outside'] as const;
export type Fate = (typeof fates)[number];

/** Says what becomes of a record; `by`: what says so, such as a column with its value. */
export function fateWords(fate: Fate | 'skipped', by?: string): string {
  if (fate === 'mapped') return '';
  if (fate === 'skipped') return 'skipped: no address';
  if (fate === 'outside') return 'out of scope (contacts.include)';
  if (fate === 'invalid') return `invalid: ${by}`;
  if (fate === 'gone') return `gone: ${by ?? 'the CRM says that this person is deleted'}`;
  return `no mail: ${by ?? 'unsubscribed from everything'}`;
}

/** What a channel becomes. */
export const wishWords = { opt_in: 'in', opt_out: 'out' } as const;

/** A person, what each channel becomes, and what else is said. */
export interface PersonRow {
  who: string;
  channels: readonly string[];
  notes: readonly string[];
}

/** Returns the table of people; `channels` are the ids. */
export function peopleTable(channels: readonly string[], people: readonly PersonRow[]): Table {
  return {
    columns: ['', ...channels, ''],
    rows: people.map(({ who, channels: is, notes }) => [
      who,
      ...is,
      notes.filter((note) => note !== '').join('; '),
    ]),
  };
}
