/**
 * Reads the exports of this folder, in the simplest way and without the program, so that the
 * expectations do not rest on what they shall test.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { makeExport } from './german/make.ts';
import { sheetRows } from './read-workbook.ts';

/** A row that is not blank: its line as a user sees it, and its values by column. */
export interface ExportRow {
  line: number;
  values: Record<string, unknown>;
}

const bytesOf = (path: string): Buffer => readFileSync(join(import.meta.dirname, path));
const decoded = (path: string, encoding: string): string =>
  new TextDecoder(encoding, { fatal: true }).decode(bytesOf(path));

const texts = {
  german: () => [makeExport().slice(1), ';'],
  'google-sheets': () => [decoded('google-sheets/signups.csv', 'utf-8'), ','],
  'excel-semicolon': () => [decoded('excel-semicolon/kunden.csv', 'utf-8'), ';'],
  cp1252: () => [decoded('cp1252/kontakte.csv', 'windows-1252'), ';'],
  utf16: () => [decoded('utf16/contacts.txt', 'utf-16le'), '\t'],
  'salesforce-report': () => [decoded('salesforce-report/report1743412320123.csv', 'utf-8'), ','],
  audience: () => [decoded('audience/audience.csv', 'utf-8'), ','],
  'free-text': () => [decoded('free-text/contacts.csv', 'utf-8'), ','],
} satisfies Record<string, () => [text: string, delimiter: string]>;

const others = {
  'ndjson-nested': () => jsonRows(decoded('ndjson-nested/people.ndjson', 'utf-8')),
  'sqlite-dump': () => tableRows(decoded('sqlite-dump/dump.sql', 'utf-8')),
  // The first row is a title, the second one names the columns.
  xlsx: () => rowsUnder(sheetRows(bytesOf('xlsx/contacts.xlsx')).slice(1)),
} satisfies Record<string, () => ExportRow[]>;

/** The names of all exports, which are the names of their folders. */
export const exportNames: readonly string[] = [...Object.keys(texts), ...Object.keys(others)];

/** Reads an export from its first row under the header to its last. */
export function readExport(name: string): ExportRow[] {
  const table = Object.entries(texts).find(([key]) => key === name)?.[1];
  if (table) {
    const [text, delimiter] = table();
    return rowsUnder(splitTable(text, delimiter));
  }
  const read = Object.entries(others).find(([key]) => key === name)?.[1];
  if (!read) throw new Error(`there is no export "${name}"`);
  return read();
}

/** A row as it stands in a table. */
export interface TableRow {
  line: number;
  cells: unknown[];
}

/** Names the cells of all rows but the first by the first one. */
function rowsUnder([header, ...rows]: readonly TableRow[]): ExportRow[] {
  const names = header?.cells.map((cell) => String(cell).trim()) ?? [];
  return rows.map(({ line, cells }) => ({
    line,
    values: Object.fromEntries(names.map((name, at) => [name, cells[at] ?? null])),
  }));
}

/** Splits a text into rows and cells; a quoted cell may hold anything, line breaks included. */
function splitTable(text: string, delimiter: string): TableRow[] {
  const escaped = delimiter === '\t' ? '\\t' : delimiter;
  const cell = new RegExp(
    `(?:"((?:[^"]|"")*)"|([^"${escaped}\\r\\n]*))(${escaped}|\\r?\\n|$)`,
    'y',
  );
  const rows: TableRow[] = [];
  let row: TableRow = { line: 1, cells: [] };
  for (let line = 1; cell.lastIndex < text.length;) {
    const [all, quoted, plain = '', end] = cell.exec(text) ?? [];
    if (all === undefined) throw new Error(`line ${line} cannot be read`);
    row.cells.push(quoted?.replaceAll('""', '"') ?? plain);
    line += all.split('\n').length - 1;
    if (end === delimiter && cell.lastIndex < text.length) continue;
    if (end === delimiter) row.cells.push('');
    if (row.cells.length > 1 || row.cells[0] !== '') rows.push(row);
    row = { line, cells: [] };
  }
  return rows;
}

/** One JSON object a line. Its columns are the dotted paths of its fields. */
function jsonRows(text: string): ExportRow[] {
  return text.split('\n').flatMap((line, at) => {
    if (line === '') return [];
    // As numbers, ids of 19 digits would be rounded.
    const exact = line.replaceAll(/: (\d{16,})/g, ': "$1"');
    return [{ line: at + 1, values: flat(JSON.parse(exact)) }];
  });
}

function flat(object: Record<string, unknown>, before = ''): Record<string, unknown> {
  const isObject = (value: unknown): value is Record<string, unknown> =>
    typeof value === 'object' && value !== null && !Array.isArray(value);
  const entries = Object.entries(object).flatMap(([key, value]) => [
    [`${before}${key}`, value],
    ...(isObject(value) ? Object.entries(flat(value, `${before}${key}.`)) : []),
  ]);
  return Object.fromEntries(entries);
}

/** The table `contacts`. It has no lines: a user sees the rows by their ids. */
function tableRows(dump: string): ExportRow[] {
  const database = new Database(':memory:');
  database.exec(dump);
  const rows = database.prepare('select * from contacts order by id').all();
  database.close();
  return rows.map((row) => {
    const values = { ...(row as Record<string, unknown>) };
    return { line: Number(values['id']), values };
  });
}
