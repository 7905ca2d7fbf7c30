/**
 * Counts the values of a source that have no known meaning, and says them, in one line for each
 * option, without showing what may be personal. Memory use does not grow with the records.
 */
import type { DesiredRow, UnknownWord } from './record.ts';
import { wordOf } from './values/record-field.ts';

/** One value of the field that an option names; `text` is undefined for a list or an object. */
export interface UnknownValue extends FoundValue {
  unknown: UnknownWord['unknown'];
}

/** A value of a field; `text` is undefined for a list or an object. */
interface FoundValue {
  text: string | undefined;
  records: number;
}

export interface UnknownWords {
  option: string;
  fix: string;
  values: readonly UnknownValue[];
  /** The number of records with further values, which are not distinguished. */
  others: number;
  /** The place of the first of these records; empty: it is not shown. */
  first: string;
}

/** The maximum number of different values that are distinguished for one option. */
const mostValues = 1_000;
/** The maximum number of characters of a value that are kept. */
export const mostCharacters = 60;

/** Counts unknown values by option; the most frequent ones come first. */
export function countUnknown() {
  const options = new Map<string, UnknownWords & { byName: Map<string, UnknownValue> }>();
  const addOne = ({ option, fix, unknown, text }: UnknownWord, place: string): void => {
    const none = { option, fix, values: [], others: 0, first: place };
    const of = options.get(option) ?? { ...none, byName: new Map<string, UnknownValue>() };
    options.set(option, of);
    const short = text?.slice(0, mostCharacters);
    const name = `${unknown} ${short === undefined ? '' : wordOf(short)}`;
    const value = of.byName.get(name);
    if (value) value.records += 1;
    else if (of.byName.size >= mostValues) of.others += 1;
    else of.byName.set(name, { text: short, unknown, records: 1 });
  };
  return {
    add: ({ unknown = [], place }: DesiredRow): void =>
      unknown.forEach((word) => addOne(word, place)),
    words: (): UnknownWords[] =>
      [...options.values()].map(({ byName, ...of }) => {
        const values = [...byName.values()].toSorted((a, b) => b.records - a.records);
        return { ...of, values };
      }),
  };
}

/** The maximum number of values that one line names. */
const mostNamed = 8;
/** A value no longer than a form, held by this many records, is not personal data. */
const plainRecords = 3;

/**
 * Says the unknown values of one option: `312 records hold "Nein", 4 hold "-", which are no known
 * words (the first: line 7)`. Unless `asTheyAre`, what may be personal is shown by its form.
 */
export function sayUnknown(
  { values, others, first: place }: UnknownWords,
  { asTheyAre }: { asTheyAre: boolean },
): string {
  const counts = new Map<string, number>();
  for (const value of values) {
    const { text, unknown } = value;
    const shown = JSON.stringify(shownValue(value, asTheyAre));
    const when = unknown === 'future' ? ' (in the future)' : '';
    const name = text === undefined ? 'a list or an object' : `${shown}${when}`;
    counts.set(name, (counts.get(name) ?? 0) + value.records);
  }
  const named = [...counts].toSorted(([, a], [, b]) => b - a);
  const rest = named.slice(mostNamed).reduce((sum, [, records]) => sum + records, others);
  const all = [
    ...named.slice(0, mostNamed),
    ...(rest > 0 ? [['other values', rest] as const] : []),
  ];
  const [[first = '', records = 0] = [], ...more] = all;
  const hold = records === 1 ? 'record holds' : 'records hold';
  const parts = [
    `${records} ${hold} ${first}`,
    ...more.map(([name, n]) => `${n} ${n === 1 ? 'holds' : 'hold'} ${name}`),
  ];
  const known = all.length === 1 ? 'is no known word' : 'are no known words';
  const at = place === '' ? '' : ` (the first: ${place})`;
  const isMasked = !asTheyAre && values.some((value) => !isPlain(value));
  return `${parts.join(', ')}, which ${known}${at}${isMasked ? maskedNote : ''}`;
}

/** Explains values that are shown only by their form. */
export const maskedNote =
  '; here letters are shown as a and digits as 9, the values on a terminal and with --addresses';

/** Returns whether a value may be shown: it is a word or a mark, and no personal data. */
export function isPlain({ text = '', records }: FoundValue): boolean {
  const isKnown = text.length <= formLength && records >= plainRecords && !text.includes('@');
  return isKnown || formOf(text) === text;
}

/** Returns a value. One that may be personal data is shown only by its form, unless `asTheyAre`. */
export function shownValue(value: FoundValue, asTheyAre: boolean) {
  const { text = '' } = value;
  return asTheyAre || isPlain(value) ? text : formOf(text);
}

const formLength = 20;

/** Returns the form of a text, no personal data: a for letters, 9 for digits; @ hides the rest. */
export function formOf(text: string): string {
  if (text.includes('@')) return 'a…@…';
  const form = text
    .replaceAll(/[\p{L}\p{M}]/gu, 'a')
    .replaceAll(/\p{N}/gu, '9')
    .replaceAll(/[^a9\x20-\x7e]/g, '?');
  return form.length > formLength ? `${form.slice(0, formLength)}…` : form;
}

/** Returns whether the option tells who is unsubscribed from everything. */
export function isUnsubscribedOption(option: string): boolean {
  return /^contacts\.unsubscribed\b/.test(option);
}

/** Returns whether the option tells who does not want a channel, or no mail at all. */
export function isOptOutOption(option: string): boolean {
  return isUnsubscribedOption(option) || /^contacts\.channels\[.*\.optOut$/.test(option);
}

/** Returns whether an unknown word of the option may be an opt-out or a deletion. */
export function isDecisiveOption(option: string): boolean {
  return isOptOutOption(option) || /^contacts\.deleted\b/.test(option);
}
