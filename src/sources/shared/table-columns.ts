/** Interprets tables with a header row: which column holds which field, and unusable fields. */
import { Invalid } from '../../domain/errors.ts';
import { hintsFor, listed, quoted } from './field-suggestions.ts';

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

interface Naming {
  name: string;
  fields: readonly string[];
  headerRow: number | undefined;
}

/**
 * Returns the columns of the table in a file, whose header is the first of some rows. Throws
 * Invalid unless it is the row that `headerRow` names, and each requested field matches exactly one
 * column. Other columns are passed on too, because conditions may name them. Columns with a
 * repeated name are numbered, `Notes (1)`, and so are those without one, `unnamed (1)`.
 */
export function columnsOf(rows: readonly NamingRow[], naming: Naming): Columns {
  const { name: file, fields } = naming;
  const [header, ...below] = rows;
  if (!header || header.number !== (naming.headerRow ?? header.number)) throw noHeader(naming);
  const given = header.cells.map((name) => name.trim());
  const names = numberNames(given);
  const missing = fields.filter((field) => !names.includes(field));
  for (const field of missing) {
    const places = [...given.keys()].filter((at) => field !== '' && given[at] === field);
    if (places.length === 0) continue;
    throw new Invalid(
      `${file}: ${places.length} columns are named ${quoted(field)} ` +
        `(columns ${places.map((at) => at + 1).join(', ')}); rename or remove all but one, ` +
        `or write ${places.map((at) => quoted(names[at] ?? '')).join(' or ')} in the configuration`,
    );
  }
  const found =
    missing.length > 0 &&
    below.find(({ cells }) => fields.every((field) => cells.some((cell) => cell.trim() === field)));
  if (found) {
    throw new Invalid(
      `${file}: ${noColumns(missing)} in the header row, but row ${found.number} has them; ` +
        `set headerRow: ${found.number} in the source`,
    );
  }
  if (missing.length > 0) throw new Invalid(`${file}: ${explainMissing(missing, names)}`);
  return {
    width: names.length,
    valueOf: (row) => Object.fromEntries(names.map((name, at) => [name, row[at]])),
  };
}

/** Returns a different name for each column; one that is there once is kept. */
function numberNames(given: readonly string[]): string[] {
  const places = Map.groupBy(given.keys(), (at) => given[at] ?? '');
  const next = new Map<string, number>();
  return given.map((name) => {
    if (name !== '' && places.get(name)?.length === 1) return name;
    let nth = next.get(name) ?? 1;
    const withNumber = () => `${name === '' ? 'unnamed' : name} (${nth})`;
    while (places.has(withNumber())) nth += 1;
    next.set(name, nth + 1);
    return withNumber();
  });
}

/** Returns the error for a file without the row that `headerRow` names. */
export function noHeader({ name, headerRow: number }: Naming): Invalid {
  const fix = 'set it to the number of the row with the column names';
  return new Invalid(`${name}: headerRow is ${number}, and that row is empty or not there; ${fix}`);
}

function noColumns(missing: readonly string[]): string {
  const what = missing.length === 1 ? 'there is no column' : 'there are no columns';
  return `${what} ${missing.map(quoted).join(', ')}`;
}

/** Explains missing columns. Without a header row, the first one is a person: not repeated. */
function explainMissing(missing: readonly string[], names: readonly string[]): string {
  const reasons = names.some((name) => name.includes('@'))
    ? [
        'the first row holds an address, so it looks like a person and is not repeated here',
        'export the file again with a row of column names above the people',
      ]
    : [
        `columns found: ${listed(names)}`,
        ...hintsFor(missing, names),
        'correct the configuration or the export',
      ];
  return [noColumns(missing), ...reasons].join('; ');
}

const FIELD_BYTES = 1024 * 1024;

/** Returns why a row with this field cannot be used, if so; NUL is sought only if possible. */
export function fieldFault(
  field: string,
  isNulPossible: boolean,
): { why: string; fix: string } | undefined {
  // A character takes at most three bytes, so the exact count is taken only if it could matter.
  if (field.length > FIELD_BYTES / 3 && Buffer.byteLength(field) > FIELD_BYTES) {
    const fix = 'shorten it, or leave the column out of the export';
    return { why: 'holds a field above 1 MiB', fix };
  }
  if (!isNulPossible || !field.includes('\0')) return undefined;
  return { why: 'holds a NUL byte', fix: 'remove it from the record' };
}
