/** Describes what a column holds, without personal data. */
import { isPlain, shownValue } from '../../domain/unknown-words.ts';
import { dateIn } from '../../records/contact/values/value-vocabulary.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import type { Column, Value } from './sample/sample.ts';

/** Returns the name of a column with its frequent values. */
export function said(column: Column): string {
  const values = valuesOf(column);
  return values === undefined ? column.name : `${column.name} (${values})`;
}

/** Returns the frequent values of a column; undefined: none may be shown. */
export function valuesOf(column: Column): string | undefined {
  const { values } = column;
  if (holdsDates(column)) return `dates, ${withCommas(values.length)} different`;
  const counts = frequent(values);
  return counts.length > 0 ? counts.join(', ') : undefined;
}

/** Returns whether most of the values are dates or times. */
export function holdsDates({ values, filled }: Column): boolean {
  const dates = values.filter(({ text }) => text.length >= 8 && dateIn(text, Infinity) === 'past');
  return filled > 0 && recordsOf(dates) * 2 > filled;
}

/** Returns whether a text is a date, past or not. */
export function isDate(text: string): boolean {
  return dateIn(text, Infinity) !== undefined;
}

/** How many values are named with their counts. */
export const mostCounted = 8;

/** Returns the values that several records hold, with their counts; others may be personal data. */
export function frequent(values: readonly Value[]): string[] {
  const plain = values.filter((value) => value.records >= 3 && isPlain(value));
  const shown = plain.slice(0, mostCounted);
  const others = values.length - shown.length;
  return [
    ...shown.map(({ text, records }) => `"${text}" ${withCommas(records)}×`),
    ...(others > 0 && shown.length > 0 ? [counted(others, 'other value')] : []),
  ];
}

/** Returns the values of a column with their counts, those of empty records last. */
export function countsOf(column: Column, records: number, asTheyAre: boolean): string {
  const { values, filled } = column;
  const shown = values
    .slice(0, mostCounted)
    .map((value) => [JSON.stringify(shownValue(value, asTheyAre)), value.records] as const);
  const rest = recordsOf(values.slice(mostCounted));
  const parts = [
    ...(holdsDates(column) ? [['dates', filled] as const] : shown),
    ...(rest > 0 && !holdsDates(column) ? [['other values', rest] as const] : []),
    ...(filled < records ? [['empty', records - filled] as const] : []),
  ];
  return parts.map(([name, count]) => `${name} ${withCommas(count)}×`).join(', ');
}

/** Returns the number of records that hold one of these values. */
export function recordsOf(values: readonly Value[]): number {
  return values.reduce((sum, { records }) => sum + records, 0);
}
