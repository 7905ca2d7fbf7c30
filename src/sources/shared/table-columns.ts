/** Interprets tables with a header row: which column holds which field, and unusable fields. */
import { Invalid } from '../../domain/errors.ts';
import { hintsFor, listed, quoted } from './field-suggestions.ts';

/** The columns of a table. */
export interface Columns {
  width: number;
  /** Returns the record for a row with this many fields. */
  valueOf<T>(fields: readonly T[]): Record<string, T | undefined>;
}

/** A row of a file that may hold the column names. */
export interface NamingRow {
  number: number;
  cells: readonly string[];
}

/** How many rows from the header on may be searched for missing columns. */
export const NAMING_ROWS = 50;

/** Where and for what the columns are searched. */
interface Naming {
  /** The file, for messages. */
  name: string;
  fields: readonly string[];
  headerRow: number | undefined;
}

/**
 * Returns the columns of the table in a file, whose header is the first of some rows. Throws
 * Invalid unless it is the row that `headerRow` names, and each requested field matches exactly one
 * column. Other columns are passed on too, because conditions may name them. Columns without a name
 * and columns with a duplicate name are left out.
 */
export function columnsOf(rows: readonly NamingRow[], naming: Naming): Columns {
  const { name: file, fields } = naming;
  const [header, ...below] = rows;
  if (!header || header.number !== (naming.headerRow ?? header.number)) throw noHeader(naming);
  const names = header.cells.map((name) => name.trim());
  const places = Map.groupBy(names.keys(), (at) => names[at] ?? '');
  const missing = fields.filter((field) => !places.has(field));
  const found =
    missing.length > 0 &&
    below.find(({ cells }) => fields.every((field) => cells.some((cell) => cell.trim() === field)));
  if (found) {
    throw new Invalid(
      `${file}: ${lackOf(missing)} in the header row, but row ${found.number} has them; ` +
        `set headerRow: ${found.number} in the source`,
    );
  }
  if (missing.length > 0) throw new Invalid(`${file}: ${missingMessage(missing, names)}`);
  for (const field of fields) {
    const columns = (places.get(field) ?? []).map((at) => at + 1);
    if (columns.length === 1) continue;
    throw new Invalid(
      `${file}: ${columns.length} columns are named ${quoted(field)} ` +
        `(columns ${columns.join(', ')}); rename or remove all but one`,
    );
  }
  const named = [...places].flatMap(([name, [at = 0, ...more]]): [string, number][] =>
    name === '' || more.length > 0 ? [] : [[name, at]],
  );
  return {
    width: names.length,
    valueOf: (row) => Object.fromEntries(named.map(([name, at]) => [name, row[at]])),
  };
}

/** Returns the error for a file without the row that `headerRow` names. */
export function noHeader({ name, headerRow: number }: Naming): Invalid {
  const fix = 'set it to the number of the row with the column names';
  return new Invalid(`${name}: headerRow is ${number}, and that row is empty or not there; ${fix}`);
}

function lackOf(missing: readonly string[]): string {
  const what = missing.length === 1 ? 'there is no column' : 'there are no columns';
  return `${what} ${missing.map(quoted).join(', ')}`;
}

/**
 * Returns the message about missing columns. If the file has no header row, its first row is a
 * person's data, which the message does not repeat.
 */
function missingMessage(missing: readonly string[], names: readonly string[]): string {
  if (names.some((name) => name.includes('@'))) {
    return [
      lackOf(missing),
      'the first row holds an address, so it looks like a person and is not repeated here',
      'export the file again with a row of column names above the people',
    ].join('; ');
  }
  const hints = hintsFor(missing, names);
  return [
    lackOf(missing),
    `columns found: ${listed(names)}`,
    ...hints,
    'correct the configuration or the export',
  ].join('; ');
}

const FIELD_BYTES = 1024 * 1024;

/**
 * Returns why a row with this field cannot be used, or undefined if it can. `isNulPossible` states
 * whether the field has to be searched for NUL.
 */
export function fieldFault(
  field: string,
  isNulPossible: boolean,
): { why: string; fix: string } | undefined {
  // A character takes at most three bytes, so the exact count is taken only if it could matter.
  if (field.length > FIELD_BYTES / 3 && Buffer.byteLength(field) > FIELD_BYTES) {
    return {
      why: 'holds a field above 1 MiB',
      fix: 'shorten it, or leave the column out of the export',
    };
  }
  if (!isNulPossible || !field.includes('\0')) return undefined;
  return { why: 'holds a NUL byte', fix: 'remove it from the record' };
}
