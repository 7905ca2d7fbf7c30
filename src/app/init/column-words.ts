/** The words of a column: which ones its configuration has to name, and which ones are unknown. */
import { wordOf } from '../../domain/values/record-field.ts';
import { systemClock } from '../../http/system-clock.ts';
import { type Use, vocabulary } from '../../records/contact/values/value-vocabulary.ts';
import { isAboutOptOut, isOptOutField } from '../../domain/opt-out-names.ts';
import type { Column, Value } from './sample/sample.ts';
import { holdsDates, isDate, recordsOf } from './column-values.ts';
import { isMarker, noWords, yesWords } from './yes-no-words.ts';

/** The words of a column: `in`, `out` and `none` for a channel, `yes` and `no` for a flag. */
export type Words = Partial<Record<'in' | 'out' | 'none' | 'no', readonly string[]>> & {
  /** `any` stands for every value that is neither empty nor a no. */
  yes?: readonly string[] | 'any';
};

/** The words of a column as the user gives them. */
export type GivenWords = Omit<Words, 'no'> & {
  /** `any` stands for every other value that the sample holds, but for those that may opt out. */
  no?: readonly string[] | 'any';
};

/** A column with a purpose. */
export interface Chosen {
  column: Column;
  /** Why it was proposed; undefined: the user named it. */
  why: string | undefined;
  /** The words that the configuration has to name. */
  words: Words;
  /** The values without a known meaning, the most frequent first. */
  unknown: readonly Value[];
}

/**
 * Returns a column with its words: those that the user gives, and those of other languages. If it
 * is named like an opt-out, a consent is read by the given words alone.
 */
export function withWords(column: Column, use: Use, given: GivenWords = {}): Chosen {
  const { no, ...others } = given;
  if (no !== 'any') return withLists(column, use, { ...others, ...(no && { no }) });
  const { unknown } = withLists(column, use, others);
  const rest = unknown.filter(({ text }) => !mayOptOut(text)).map(({ text }) => text);
  return withLists(column, use, { ...others, no: rest });
}

/** Returns whether a value holds a term of opting out, also within a sentence, or is a date. */
function mayOptOut(text: string): boolean {
  return isAboutOptOut(text) || isDate(text);
}

function withLists(column: Column, use: Use, given: Words): Chosen {
  const [yes, no] = use === 'subscription' ? (['in', 'out'] as const) : (['yes', 'no'] as const);
  const standAlone = use === 'subscription' && isOptOutField(column.name);
  const own = { yes: given[yes] ?? [], no: given[no] ?? [], none: given.none ?? [], standAlone };
  const unknownTo = (words: typeof own): Value[] => {
    const read = vocabulary(use, words, systemClock.now);
    return column.values.filter(
      ({ text }) => typeof read(column.isList ? [text] : text) === 'object',
    );
  };
  const isAny = own.yes === 'any';
  const foreign = (list: readonly string[]) =>
    (standAlone ? [] : unknownTo({ ...own, yes: isAny ? [] : own.yes })).flatMap(({ text }) =>
      list.includes(wordOf(text)) ? [text] : [],
    );
  const meant = {
    yes: own.yes === 'any' ? own.yes : [...own.yes, ...foreign(yesWords)],
    no: [...own.no, ...foreign(noWords)],
    none: own.none,
    standAlone,
  };
  const lists: [keyof Words, readonly string[] | 'any'][] = [
    [yes, meant.yes],
    [no, meant.no],
    ['none', meant.none],
  ];
  const words: Words = Object.fromEntries(lists.filter(([, list]) => list.length > 0));
  return { column, why: undefined, words, unknown: unknownTo(meant) };
}

/** Returns whether most values of a column that are not empty are unknown. */
export function isUnreadable({ column, unknown }: Chosen): boolean {
  return recordsOf(unknown) * 2 > column.filled;
}

const mostMarks = 3;

/** Returns whether most values of a column would be known as a flag, or are single marks. */
export function looksLikeFlag(column: Column): boolean {
  const { unknown } = withWords(column, 'unsubscribed');
  const marks = unknown.filter(({ text }) => text.length === 1);
  // Up to three marks are ticks; more of them are grades, or numbers.
  const words = marks.length > mostMarks ? unknown : unknown.filter((one) => !marks.includes(one));
  const strange = recordsOf(words);
  return column.filled > 0 && strange * 2 < column.filled;
}

/** More unknown words than this cannot be named one by one. */
const mostWords = 12;

/**
 * Returns whether `yes: any` may be offered: the column holds dates, and a few words beside them.
 * On free text, or where a word such as NULL stands for none, it would opt out everybody.
 */
export function mayBeAny({ column, unknown }: Pick<Chosen, 'column' | 'unknown'>): boolean {
  if (column.values.some(({ text }) => isMarker(text))) return false;
  return holdsDates(column) && unknown.length <= mostWords;
}
