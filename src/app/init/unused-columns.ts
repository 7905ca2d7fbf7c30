/** Sorts the columns that have no purpose: those that may be about consent come first. */
import { plain } from '../../domain/name-terms.ts';
import { isAboutOtherWays, namedLike } from '../../domain/opt-out-names.ts';
import { isOfHubspot } from './channel-columns.ts';
import { holdsDates, looksLikeFlag, mayBeOptOut, saysOptOut } from './column-words.ts';
import type { Column, Sample, Value } from './sample/sample.ts';

export interface Unused {
  /** Columns that are named like an opt-out or a deletion. */
  named: readonly Column[];
  /** Dates with gaps, then flags and columns with few values, then other dates. */
  likely: readonly Column[];
  others: number;
}

export interface FlagChoices {
  /** false: no column, whatever is recognized. */
  unsubscribed?: readonly string[] | false | undefined;
  deleted?: string | false | undefined;
  /** Columns that are named or look like an opt-out, and are none. */
  unused: readonly string[];
}

/**
 * Returns the columns that look like flags and of which nothing is known: neither their names nor
 * the user say what they are about.
 */
export function openFlags(
  columns: readonly Column[],
  { records, standard }: Sample,
  { unsubscribed, deleted, unused }: FlagChoices,
): Column[] {
  if (unsubscribed === false) return [];
  return columns.filter((column) => {
    if (unused.includes(column.name)) return false;
    const saysNoMail = (value: Value): boolean =>
      saysOptOut(value) && /mail|mejl|newsletter|marketing/.test(plain(value.text));
    if (isAboutOtherWays(column.name) && !column.values.some(saysNoMail)) return false;
    if (deleted === false && namedLike(column.name) === 'deletion') return false;
    if (standard && isOfHubspot(column)) return false;
    return mayBeOptOut(column, records);
  });
}

export function unusedOf(columns: readonly Column[], records: number): Unused {
  const order = ['opt-out', 'reason', 'other', 'deletion'] as const;
  const named = order.flatMap((one) => columns.filter(({ name }) => namedLike(name) === one));
  const filled = columns.filter((column) => column.filled > 0 && !named.includes(column));
  const dates = filled.filter(holdsDates);
  const some = dates.filter((column) => column.filled < records);
  const isShort = ({ values, filled: n }: Column): boolean =>
    values.length <= few && values.length * 2 <= n;
  const flags = filled.filter((column) => looksLikeFlag(column) || isShort(column));
  const likely = [...new Set([...some, ...flags.filter((one) => !dates.includes(one)), ...dates])];
  return { named, likely, others: columns.length - named.length - likely.length };
}

const few = 6;
