/** Checks JSON records, and adds the requested fields that are missing. */
import { fieldAt, fieldOrEnd, isObject, isRecord } from '../../domain/values/record-field.ts';
import type { SourceRecord } from '../source.ts';
import { Invalid } from '../../domain/errors.ts';
import type { Flaw } from './read-certificate.ts';
import { editDistance } from '../../domain/values/edit-distance.ts';

const LISTED_DEPTH = 3;

export type JsonRecords = ReturnType<typeof jsonRecords>;

/** Creates the checks of a read: a field that no record has is a mistake. */
export function jsonRecords(fields: readonly string[]) {
  const unseen = new Set(fields);
  let first: object | undefined;
  return {
    recordOf(value: unknown, where: string, text: string): SourceRecord {
      if (!isRecord(value)) {
        const fix = 'give a JSON object for each record';
        return { where, broken: 'is no JSON object', fix };
      }
      if (text.includes('\\u0000') && holdsNul(value)) {
        return { where, broken: 'holds a NUL character', fix: 'remove the NUL character from it' };
      }
      first ??= value;
      for (const field of unseen) if (fieldAt(value, field) !== undefined) unseen.delete(field);
      const absent = fields.filter((field) => fieldAt(value, field) === undefined);
      if (absent.length === 0) return { where, value };
      // A path that ends in a text or a list is not absent: its value cannot be read.
      const empty = absent.filter((field) => (fieldOrEnd(value, field) ?? null) === null);
      return { where, value: { ...value, ...Object.fromEntries(empty.map((at) => [at, null])) } };
    },
    lacking(): string | undefined {
      if (first === undefined || unseen.size === 0) return undefined;
      const names = pathsOf(first, LISTED_DEPTH);
      return (
        `no record has ${[...unseen].map(quoted).join(', ')}; ` +
        `fields of the first one: ${listed(names)}; correct the configuration or the CRM`
      );
    },
  };
}

/** Avoids recursion, because a value may be nested very deeply. */
function holdsNul(value: unknown): boolean {
  const rest = [value];
  while (rest.length > 0) {
    const next = rest.pop();
    if (typeof next === 'string' && next.includes('\0')) return true;
    if (!isObject(next)) continue;
    for (const [name, inner] of Object.entries(next)) rest.push(name, inner);
  }
  return false;
}

function pathsOf(value: object, depth: number): string[] {
  return Object.entries(value).flatMap(([name, inner]) => {
    const isNested = isRecord(inner) && depth > 1;
    return isNested ? pathsOf(inner, depth - 1).map((path) => `${name}.${path}`) : [name];
  });
}

export interface Columns {
  width: number;
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
 * Returns the columns of a table whose header is the first of some rows. Throws Invalid unless it
 * is the row that `headerRow` names, and each requested field matches one column. Other columns are
 * passed on, because conditions may name them; those with a repeated name are numbered, `Notes
 * (1)`, and so are those without one, `unnamed (1)`.
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
  // An assignment would not create a field of this name.
  const isOdd = names.includes('__proto__');
  return {
    width: names.length,
    valueOf<T>(row: readonly T[]): Record<string, T | undefined> {
      if (isOdd) return Object.fromEntries(names.map((name, at) => [name, row[at]]));
      const value: Record<string, T | undefined> = {};
      for (const [at, name] of names.entries()) value[name] = row[at];
      return value;
    },
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
export function fieldFault(field: string, isNulPossible: boolean): Flaw | undefined {
  // A character takes at most three bytes, so the exact count is taken only if it could matter.
  if (field.length > FIELD_BYTES / 3 && Buffer.byteLength(field) > FIELD_BYTES) {
    const fix = 'shorten it, or leave the column out of the export';
    return { why: 'holds a field above 1 MiB', fix };
  }
  if (!isNulPossible || !field.includes('\0')) return undefined;
  return { why: 'holds a NUL byte', fix: 'remove the NUL byte from it' };
}

const LISTED = 30;

/** Returns a name in quotes, on one line and truncated to 60 characters. */
export function quoted(name: string): string {
  return JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name);
}

/** Returns the first names and how many more. One with an @ may be a person's: masked. */
export function listed(names: readonly string[]): string {
  const more = names.length > LISTED ? ` and ${names.length - LISTED} more` : '';
  const shown = names.slice(0, LISTED).map((name) => (name.includes('@') ? '"…@…"' : quoted(name)));
  return `${shown.join(', ')}${more}`;
}

/** Returns a hint for each missing name that resembles one of `names`: did you mean "a" for "b"? */
export function hintsFor(missing: readonly string[], names: readonly string[]): string[] {
  return missing.flatMap((wanted) => {
    let best: { name: string; distance: number } | undefined;
    for (const name of names) {
      if (name === '' || name.length > 100) continue;
      const distance = editDistance(plain(wanted), plain(name));
      if (distance < (best?.distance ?? Infinity)) best = { name, distance };
    }
    // A name that is further away is another name, and no misspelling.
    if (!best || best.distance > Math.max(1, wanted.length / 3)) return [];
    return [`did you mean ${quoted(best.name)} for ${quoted(wanted)}?`];
  });
}

/** Returns a name without case, spaces and punctuation, so that "E-Mail" is close to "email". */
const plain = (name: string): string => name.toLowerCase().replaceAll(/[\s_.-]/g, '');
