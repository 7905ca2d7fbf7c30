/** Sorts the columns that have no purpose: those that may be about consent come first. */
import { plain, isAboutOtherWays, namedLike } from '../../domain/opt-out-names.ts';
import { isOfHubspot } from './choose-opt-outs.ts';
import { holdsDates } from './column-values.ts';
import { looksLikeFlag } from './column-words.ts';
import { mayBeOptOut, saysOptOut } from './flag-columns.ts';
import type { Column, Sample, Value } from './sample/sample.ts';

/** The columns without a purpose. */
export interface Unused {
  /** Columns that are named like an opt-out or a deletion. */
  named: readonly Column[];
  /** Dates with gaps, then flags and columns with few values, then other dates. */
  likely: readonly Column[];
  /** The number of all others. */
  others: number;
}

/** What the user says about columns; false: none is one. */
interface Decided {
  unsubscribed?: readonly string[] | false | undefined;
  deleted?: string | false | undefined;
  unused: readonly string[];
}

/**
 * Returns the columns that look like flags and of which nothing is known: neither their names nor
 * the user say what they are about.
 */
export function openFlags(
  columns: readonly Column[],
  { records, standard }: Pick<Sample, 'records' | 'standard'>,
  { unsubscribed, deleted, unused }: Decided,
): Column[] {
  if (unsubscribed === false) return [];
  return columns.filter((column) => {
    if (unused.includes(column.name)) return false;
    if (isAboutOtherWays(column.name) && !column.values.some(saysNoMail)) return false;
    if (deleted === false && namedLike(column.name) === 'deletion') return false;
    if (isOfHubspot(column, standard)) return false;
    return mayBeOptOut(column, records);
  });
}

/** Returns whether a value opts out of mail, in a column about another way to reach a person. */
function saysNoMail(value: Value): boolean {
  return saysOptOut(value) && /mail|mejl|newsletter|marketing/.test(plain(value.text));
}

/** Sorts these columns of a source. */
export function unusedOf(columns: readonly Column[], records: number): Unused {
  const order = ['opt-out', 'reason', 'other', 'deletion'] as const;
  const named = order.flatMap((one) => columns.filter(({ name }) => namedLike(name) === one));
  const filled = columns.filter((column) => column.filled > 0 && !named.includes(column));
  const dates = filled.filter(holdsDates);
  const some = dates.filter((column) => column.filled < records);
  const flags = filled.filter((column) => looksLikeFlag(column) || hasFewValues(column));
  const likely = [...new Set([...some, ...flags.filter(isNo(dates)), ...dates])];
  return { named, likely, others: columns.length - named.length - likely.length };
}

function isNo(dates: readonly Column[]) {
  return (column: Column): boolean => !dates.includes(column);
}

const few = 6;

function hasFewValues({ values, filled }: Column): boolean {
  return values.length <= few && values.length * 2 <= filled;
}
