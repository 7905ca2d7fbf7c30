/** Chooses the columns that say that a person must not be mailed. None is left out silently. */
import { isNamedLikeOptOut, namedLike } from '../../domain/opt-out-names.ts';
import { isTextOfEach } from './flag-columns.ts';
import { type Chosen, type GivenWords, withWords } from './column-words.ts';
import type { Column } from './sample/sample.ts';

/** What is known about the opt-outs of a source. */
interface OptOutChoices {
  /** The columns that the user names, or of whose words a yes is named. */
  named: readonly Column[];
  /** The column that the CRM itself defines. */
  standard: Column | undefined;
  /** The columns without another purpose. */
  open: readonly Column[];
  /** The number of records. */
  records: number;
  words: ReadonlyMap<string, GivenWords>;
}

/**
 * Returns the columns that the user names, that of the CRM, and all that are named like an opt-out;
 * a text of each person is no opt-out. If there are none, returns the first one that is named like
 * the reason of an opt-out.
 */
export function chooseOptOuts({ named, standard, open, words, records }: OptOutChoices): Chosen[] {
  const read = (column: Column, why: string | undefined): Chosen => {
    return { ...withWords(column, 'unsubscribed', words.get(column.name)), why };
  };
  const own = standard && !named.includes(standard) ? [standard] : [];
  const others = open.filter(
    (column) => ![...named, ...own].includes(column) && !isOfHubspot(column, standard),
  );
  const alike = others.filter(
    (column) => isNamedLikeOptOut(column.name) && !isTextOfEach(column, records),
  );
  const all = [
    ...named.map((column) => read(column, undefined)),
    ...own.map((column) => read(column, "it is the CRM's own")),
    ...alike.map((column) => read(column, column.filled > 0 ? known : empty)),
  ];
  const reason = others.find(({ name, filled }) => filled > 0 && namedLike(name) === 'reason');
  if (all.length > 0 || !reason) return all;
  return [read(reason, 'named like the reason of an opt-out; all its values are known')];
}

const known = 'named like an opt-out; all its values are known';
const empty = 'named like an opt-out; it is empty in all records';

/** HubSpot has an opt-out for each subscription type; its own column covers all of them. */
export function isOfHubspot({ name }: Column, standard: unknown): boolean {
  return standard !== undefined && /^(properties\.)?hs_/.test(name);
}
