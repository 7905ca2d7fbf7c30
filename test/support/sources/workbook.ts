/** Workbooks: one as Excel writes it, and others made by changing its parts. */
import type { XlsxOptions } from '../../../src/sources/xlsx/options.ts';
import { xlsxSource } from '../../../src/sources/xlsx/xlsx-source.ts';
import { makeParts, zip } from '../../e2e/first-contact/xlsx/make.ts';
import { readAll, virtualClock, write } from './source-reading.ts';

/** The new content of parts, by their names; undefined: the part is removed. */
export type Edits = Record<string, string | Buffer | ((xml: string) => string) | undefined>;

/** The part of the first sheet. */
export const SHEET = 'xl/worksheets/sheet1.xml';

/** Returns the workbook of the first contacts with other parts. */
export function workbook(edits: Edits = {}): Buffer {
  const parts = new Map<string, string | Buffer>(makeParts());
  for (const [name, edit] of Object.entries(edits)) {
    const before = parts.get(name) ?? '';
    if (edit === undefined) parts.delete(name);
    else parts.set(name, typeof edit === 'function' ? edit(before.toString()) : edit);
  }
  return zip(parts);
}

/** Returns the XML of a sheet with these rows. */
export function sheetOf(rows: string): string {
  return `<worksheet><sheetData>${rows}</sheetData></worksheet>`;
}

/** The XML of a row with the names of two columns, id and x. */
export const header = '<row r="1"><c t="str"><v>id</v></c><c t="str"><v>x</v></c></row>';

/** Returns a workbook with these rows under a header with the columns id and x. */
export function rowsUnder(rows: string, edits: Edits = {}): Buffer {
  return workbook({ [SHEET]: sheetOf(header + rows), ...edits });
}

/** Opens the workbook at `path`. */
export function openXlsx(path: string, options: Partial<XlsxOptions> = {}) {
  return xlsxSource({ type: 'xlsx', path, ...options }, { clock: virtualClock() });
}

/** Reads `content` as a workbook at `path`. */
export async function readXlsx(
  path: string,
  content: Buffer,
  { fields = ['id'], ...options }: Partial<XlsxOptions> & { fields?: readonly string[] } = {},
) {
  await write(path, content);
  return readAll(openXlsx(path, options), fields);
}
