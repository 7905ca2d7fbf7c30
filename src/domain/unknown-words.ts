/**
 * The values of a source that have no known meaning, counted as they are read: one line for each
 * option of the configuration, whatever the number of records. Memory does not grow with them.
 */
import type { DesiredRow, UnknownWord } from './record.ts';
import { wordOf } from './values/scalar.ts';

/** One value of the field that an option names; `text` is undefined for a list or an object. */
interface Value extends Pick<UnknownWord, 'text' | 'unknown'> {
  /** How many records hold it. */
  records: number;
}

/** All that was found for one option. */
export interface UnknownWords extends Pick<UnknownWord, 'option' | 'fix'> {
  values: readonly Value[];
  /** Records whose value is not among them, since there were too many. */
  others: number;
  /** Where the first of all these records stands. */
  first: string;
}

/** So many values of one option are told apart. */
const mostValues = 1_000;
const mostCharacters = 60;

export interface UnknownCount {
  add(row: Pick<DesiredRow, 'unknown' | 'place'>): void;
  /** By option; the values that most records hold come first. */
  words(): UnknownWords[];
}

export function countUnknown(): UnknownCount {
  const options = new Map<string, UnknownWords & { byName: Map<string, Value> }>();
  const addOne = ({ option, fix, unknown, text }: UnknownWord, place: string): void => {
    const none = { option, fix, values: [], others: 0, first: place };
    const of = options.get(option) ?? { ...none, byName: new Map<string, Value>() };
    options.set(option, of);
    const short = text?.slice(0, mostCharacters);
    const name = `${unknown} ${short === undefined ? '' : wordOf(short)}`;
    const value = of.byName.get(name);
    if (value) value.records += 1;
    else if (of.byName.size >= mostValues) of.others += 1;
    else of.byName.set(name, { text: short, unknown, records: 1 });
  };
  return {
    add: ({ unknown = [], place }) => unknown.forEach((word) => addOne(word, place)),
    words: () =>
      [...options.values()].map(({ byName, ...of }) => {
        const values = [...byName.values()].toSorted((a, b) => b.records - a.records);
        return { ...of, values };
      }),
  };
}

/** So many values are named in one line. */
const mostNamed = 8;
/** A value is no secret where it is so short, and so many records hold it. */
const plainLength = 20;
const plainRecords = 3;

/**
 * Says what was found: `312 records hold "Nein", 4 hold "-", which are no known words (the first:
 * line 7)`. `asTheyAre`: whether every value may be shown; else one that may be personal is shown
 * by its form, which is said.
 */
export function sayUnknown(
  { values, others, first: place }: UnknownWords,
  { asTheyAre }: { asTheyAre: boolean },
): string {
  const counts = new Map<string, number>();
  for (const value of values) {
    const name = nameOf(value, asTheyAre);
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
  const isMasked = !asTheyAre && values.some((value) => !isPlain(value));
  return `${parts.join(', ')}, which ${known} (the first: ${place})${isMasked ? masked : ''}`;
}

const masked =
  '; here letters are shown as a and digits as 9, the values on a terminal and with --addresses';

function isPlain({ text = '', records }: Value): boolean {
  const isKnown = text.length <= plainLength && records >= plainRecords && !text.includes('@');
  return isKnown || formOf(text) === text;
}

function nameOf(value: Value, asTheyAre: boolean): string {
  const { text, unknown } = value;
  if (text === undefined) return 'a list or an object';
  const shown = JSON.stringify(asTheyAre || isPlain(value) ? text : formOf(text));
  return unknown === 'future' ? `${shown} (in the future)` : shown;
}

/** Letters become a, digits 9; of what holds an @ nothing else is told. */
function formOf(text: string): string {
  if (text.includes('@')) return 'a…@…';
  const form = text
    .replaceAll(/[\p{L}\p{M}]/gu, 'a')
    .replaceAll(/\p{N}/gu, '9')
    .replaceAll(/[^a9\x20-\x7e]/g, '?');
  return form.length > plainLength ? `${form.slice(0, plainLength)}…` : form;
}
