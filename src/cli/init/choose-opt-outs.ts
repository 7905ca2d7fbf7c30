/** Chooses the columns that say that a person must not be mailed. None is left out silently. */
import { isNamedLikeOptOut, namedLike } from '../../domain/opt-out-names.ts';
import { quoted } from '../../sources/shared/field-suggestions.ts';
import { isTextOfEach } from './flag-columns.ts';
import { type Chosen, unreadable, type Words, withWords } from './column-words.ts';
import type { Column } from './sample/sample.ts';
import { Undecided } from './sample/undecided.ts';

/** What is known about the opt-outs of a source. */
interface OptOutChoices {
  /** The columns that the user names. */
  named: readonly Column[] | undefined;
  /** The column that the CRM itself defines. */
  standard: Column | undefined;
  /** The columns without another purpose. */
  open: readonly Column[];
  /** The number of records. */
  records: number;
  words: ReadonlyMap<string, Words>;
  asTheyAre: boolean;
}

/**
 * Returns the columns that the user names; otherwise that of the CRM, and all that are named like
 * an opt-out and hold nothing but known words; a text of each person is no opt-out. Throws
 * Undecided if one that is named like an opt-out cannot be read, or is not among those that the
 * user names.
 */
export function chooseOptOuts(given: OptOutChoices): Chosen[] {
  const { named, standard, open, words, records } = given;
  const read = (column: Column) => withWords(column, 'unsubscribed', words.get(column.name));
  const stated = named ?? (standard ? [standard] : []);
  const own = stated.map((column) => ({
    ...read(column),
    why: named ? undefined : "it is the CRM's own",
  }));
  const others = open.filter(
    (column) => !stated.includes(column) && !isOfHubspot(column, standard),
  );
  const alike = others.filter(
    (column) => isNamedLikeOptOut(column.name) && !isTextOfEach(column, records),
  );
  const found = alike.map(read);
  const strange = [...own, ...(named ? [] : found)].filter(({ unknown }) => unknown.length > 0);
  if (strange.length > 0) throw refusalOf(strange, given);
  if (named && alike.length > 0) throw leftOut(alike);
  const why = 'named like an opt-out; all its values are known';
  const all = [
    ...own,
    ...found.map((one) => ({ ...one, why: one.column.filled > 0 ? why : empty })),
  ];
  const reason = others.find(({ name, filled }) => filled > 0 && namedLike(name) === 'reason');
  if (all.length > 0 || !reason) return all;
  const only = read(reason);
  if (only.unknown.length > 0) throw refusalOf([only], given);
  return [{ ...only, why: 'named like the reason of an opt-out; all its values are known' }];
}

const empty = 'named like an opt-out; it is empty in all records';

/** HubSpot has an opt-out for each subscription type; its own column covers all of them. */
export function isOfHubspot({ name }: Column, standard: unknown): boolean {
  return standard !== undefined && /^(properties\.)?hs_/.test(name);
}

function refusalOf(strange: readonly Chosen[], { asTheyAre }: OptOutChoices): Undecided {
  const [first, ...others] = strange.map((one) =>
    unreadable(one, { use: 'unsubscribed' }, { asTheyAre }),
  );
  if (!first) throw new Error('there is a column that cannot be read');
  return first.with(others);
}

function leftOut(columns: readonly Column[]): Undecided {
  const among = columns.map(({ name }) => name);
  const flags = (name: string) => among.map((one) => `${name} ${quoted(one)}`).join(' ');
  const are = among.length === 1 ? 'is named like an opt-out' : 'are named like opt-outs';
  return new Undecided(`${among.map(quoted).join(' and ')} ${are}, too, and would not be used`, {
    fix: `add ${flags('--unsubscribed')}, or, if it says something else, ${flags('--unused')}`,
    question: { about: 'unsubscribed', among },
  });
}
