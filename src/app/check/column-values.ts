/** Counts the values of each configured column while the source is read, and shows them. */
import { isPlain, formOf } from '../../domain/unknown-words.ts';
import { wordOf } from '../../domain/values/record-field.ts';
import type {
  ColumnMeaning,
  ColumnValue,
  MappedColumn,
} from '../../records/contact/observe/column-meanings.ts';
import { styledTable } from '../../compose/output/table.ts';
import { type Line, styled } from '../../compose/output/text-style.ts';
import { withCommas } from '../../domain/values/counted.ts';

/** A value of a column, the number of records that hold it, and what it means. */
interface CountedValue {
  /** Undefined for a list or an object. */
  text: string | undefined;
  means: ColumnMeaning;
  isSerial: boolean;
  records: number;
}

/** The values of one column: unknown ones first, then the most frequent ones. */
export interface ColumnCount {
  column: MappedColumn;
  values: readonly CountedValue[];
  /** The number of records with further values, which are not distinguished. */
  others: number;
}

/** The maximum number of different values that are distinguished in one column. */
const mostValues = 1_000;
const mostCharacters = 60;
/** The number of values that are shown for one column. */
const mostShown = 10;

/** Creates a counter for these columns. Memory use does not grow with the number of records. */
export function countColumns(columns: readonly MappedColumn[]) {
  const each = columns.map((column) => ({
    column,
    values: new Map<string, CountedValue>(),
    others: 0,
  }));
  return {
    /** Adds a record. Returns its values, in the order of the columns. */
    add: (record: Record<string, unknown>): ColumnValue[] =>
      each.map((one) => {
        const value = one.column.read(record);
        const { text = '', means, isSerial = false } = value;
        // Usable ids, addresses and dates are counted by their form: nearly all of them differ.
        const differs = one.column.holds === 'own' || /^\d{1,4}[-./]\d/.test(text);
        const isForm = differs && means !== 'unknown' && value.text !== undefined;
        const short = (isForm ? formOf(text) : value.text)?.slice(0, mostCharacters);
        const name = `${means} ${short === undefined ? '' : wordOf(short)}`;
        const known = one.values.get(name);
        if (known) known.records += 1;
        else if (one.values.size >= mostValues) one.others += 1;
        else one.values.set(name, { text: short, means, isSerial, records: 1 });
        return value;
      }),
    /** Returns the counts. In `dateColumns`, a serial number of Excel is a date. */
    counts: (dateColumns: readonly string[]): ColumnCount[] =>
      each.map(({ column, values, others }) => {
        const hasDates = column.fields.every((field) => dateColumns.includes(field));
        const all = [...values.values()].map((one) =>
          one.isSerial && hasDates ? { ...one, means: 'yes' as const } : one,
        );
        const sorted = all.toSorted(
          (a, b) =>
            Number(b.means === 'unknown') - Number(a.means === 'unknown') || b.records - a.records,
        );
        return { column, values: sorted, others };
      }),
  };
}

/** Merges values that look the same, and counts those that are not shown. */
function mergeValues({ column: { holds }, values, others }: ColumnCount, asTheyAre: boolean) {
  const merged = new Map<string, { value: string | null; records: number; means: ColumnMeaning }>();
  for (const one of values) {
    const { text = '' } = one;
    const isWord = holds === 'words' && one.means !== 'unknown';
    const isPublic = holds !== 'own' && isPlain({ text, records: one.records });
    const shown = isWord || asTheyAre || isPublic ? text : formOf(text);
    const value = one.text === undefined ? null : shown;
    const name = `${one.means} ${value === null ? '' : wordOf(value)}`;
    const known = merged.get(name) ?? { value, records: 0, means: one.means };
    merged.set(name, { ...known, records: known.records + one.records });
  }
  const all = [...merged.values()];
  const rest = all.slice(mostShown);
  const more = rest.reduce((sum, { records }) => sum + records, others);
  return { values: all.slice(0, mostShown), others: more };
}

/** Returns the columns for JSON. Values that may be personal data are shown only `asTheyAre`. */
export function columnDocument(counts: readonly ColumnCount[], asTheyAre: boolean) {
  return counts.map((count) => {
    const { option, channel = null, fields } = count.column;
    return { option, channel, fields, ...mergeValues(count, asTheyAre) };
  });
}

const words: Record<ColumnMeaning, string> = {
  in: 'in',
  out: 'out',
  none: 'no opinion',
  yes: 'yes',
  no: 'no',
  id: 'an id',
  address: 'an address',
  time: 'a time',
  empty: 'empty',
  unknown: 'unknown',
};

/** Renders the columns, each with its values and what they mean. */
export function renderColumns(counts: readonly ColumnCount[], asTheyAre: boolean): Line[] {
  return counts.flatMap((count) => {
    const { option, channel, fields } = count.column;
    const { values, others } = mergeValues(count, asTheyAre);
    const named = fields.map((field) => JSON.stringify(field)).join(', ');
    const of = channel === undefined ? '' : ` of ${channel}`;
    const wordsFor = (value: string | null): string => {
      if (value === null) return 'a list or an object';
      return value === '' ? '(empty)' : JSON.stringify(value);
    };
    const rows = values.map(({ value, records, means }): Line[] => [
      withCommas(records),
      wordsFor(value),
      means === 'unknown' ? styled('red', words[means]) : styled('dim', words[means]),
    ]);
    const rest = others > 0 ? [[withCommas(others), 'other values', '']] : [];
    const lines = styledTable([...rows, ...rest], { indent: 2, right: [0] });
    return ['', styled('bold', `${option}${of}: ${named}`), ...lines];
  });
}
