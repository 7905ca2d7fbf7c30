/**
 * Finds the columns whose values are dates while a source is read. In such a column a serial number
 * of Excel (45900) is a date that lost its format. In any other column it stays without a meaning.
 */
import type { DesiredRow } from './record.ts';

/** Collects what the values of columns are. Memory use does not grow with the number of records. */
export function findDateColumns() {
  const dates = new Set<string>();
  const others = new Set<string>();
  return {
    add({ shapes = [] }: DesiredRow): void {
      for (const { column, isDate } of shapes) (isDate ? dates : others).add(column);
    },
    /** Returns the columns that hold dates, and nothing else. */
    names: (): string[] => [...dates].filter((column) => !others.has(column)),
  };
}

/** Returns the row to use: with its serials as dates if all of their columns hold dates. */
export function withSerialsRead(row: DesiredRow, dateColumns: readonly string[]): DesiredRow {
  const { asDates } = row;
  const isRead = asDates?.columns.every((column) => dateColumns.includes(column));
  return asDates && isRead ? asDates.row : row;
}
