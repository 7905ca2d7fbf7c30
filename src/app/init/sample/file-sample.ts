/** Reads an export as a sample, whole, and finds the options that it takes to read it. */
import { closeSync, existsSync, openSync, readSync } from 'node:fs';
import { resolve } from 'node:path';
import { Invalid } from '../../../domain/errors.ts';
import { contactKey } from '../../../domain/values/contact-key.ts';
import { systemClock } from '../../../http/system-clock.ts';
import { isAddress } from '../../../records/contact/values/email-address.ts';
import { csvSource } from '../../../sources/csv/csv-source.ts';
import { csvOptions } from '../../../sources/csv/options.ts';
import type { Encoding } from '../../../sources/csv/csv-format.ts';
import { ndjsonSource } from '../../../sources/ndjson/ndjson-source.ts';
import { ndjsonOptions } from '../../../sources/ndjson/options.ts';
import { hasUtf16Pattern } from '../../../sources/shared/files/detect-encoding.ts';
import type { Source } from '../../../sources/source.ts';
import { sampleSqlite } from '../../../sources/sql/sqlite-sample.ts';
import { xlsxOptions } from '../../../sources/xlsx/options.ts';
import { xlsxSource } from '../../../sources/xlsx/xlsx-source.ts';
import { type Column, collecting, type Sample, sampleOf } from './sample.ts';

interface File {
  type: 'csv' | 'ndjson' | 'xlsx';
  path: string;
  signal: AbortSignal;
}

const fileTypes = [
  [/\.xlsx$/i, 'xlsx'],
  [/\.(ndjson|jsonl|json)(\.gz)?$/i, 'ndjson'],
  [/\.(csv|tsv|txt|tab)(\.gz)?$/i, 'csv'],
] as const;

/** Reads the file at `path`. Throws Invalid if it cannot be read as an export. */
export async function fileSample(path: string, signal: AbortSignal): Promise<Sample> {
  if (!existsSync(path)) {
    throw new Invalid(`${path}: there is no such file`, { fix: 'correct the path' });
  }
  if (isSqlite(path)) {
    const { table, rows } = sampleSqlite(resolve(path));
    const collected = collecting();
    collected.add(rows);
    const options = { type: 'sql', table };
    const place = { file: resolve(path), origin: path };
    return { options, ...place, ...collected.end(), flaw: undefined, isWhole: true };
  }
  const type = fileTypes.find(([name]) => name.test(path))?.[1];
  if (!type) {
    throw new Invalid(`${path}: init cannot tell what kind of file this is`, {
      fix: 'name it .csv, .tsv, .txt, .ndjson, .jsonl, .json, .xlsx or .sqlite, or write the configuration by hand',
    });
  }
  const file: File = { type, path, signal };
  if (type === 'xlsx') return read(file, await withHeader(file, { type }));
  if (type === 'ndjson') return completed(file, { type });
  try {
    return await completed(file, await withHeader(file, { type }));
  } catch (error) {
    if (!(error instanceof Invalid)) throw error;
    // The file is not UTF-8.
    const bytes = Buffer.alloc(1_024);
    const opened = openSync(path, 'r');
    const length = readSync(opened, bytes);
    closeSync(opened);
    const isUtf16 = hasUtf16Pattern(bytes.subarray(0, length));
    const encoding: Encoding = isUtf16 ? 'utf-16' : 'windows-1252';
    return completed(file, await withHeader(file, { type, encoding }));
  }
}

/** How many rows of a file may be above the people. */
const mostTitles = 20;

/**
 * Adds `headerRow` if a row that the source does not take for the header names more columns, one of
 * which holds addresses. A row that holds an address, a number or a date itself is a person's.
 */
async function withHeader(file: File, options: Options): Promise<Options> {
  let found = { options, named: namedIn(await firstColumns(file, options)) };
  for (let headerRow = 1; headerRow <= mostTitles; headerRow += 1) {
    const tried = { ...options, headerRow };
    const columns = await firstColumns(file, tried);
    const isPerson = columns.some(({ name }) => numeric.test(name) || isAddress(contactKey(name)));
    if (isPerson && found.named > 0) break;
    const named = namedIn(columns);
    if (!isPerson && named > found.named) found = { options: tried, named };
  }
  return found.options;
}

const numeric = /^[-+\d.,:/ ]+$/;

/** Returns the number of different names of columns, or 0 if none of them holds an address. */
function namedIn(columns: readonly Column[]): number {
  const names = new Set(columns.map(({ name }) => name.replace(/ \(\d+\)$/, '')));
  names.delete('unnamed');
  return columns.some(({ addresses }) => addresses > 0) ? names.size : 0;
}

async function firstColumns(file: File, options: Options): Promise<readonly Column[]> {
  const reading = { fields: [], most: 1, signal: file.signal };
  try {
    return (await sampleOf(sourceOf(file, options), reading)).columns;
  } catch (error) {
    if (error instanceof Invalid) return [];
    throw error;
  }
}

/** Returns whether a file is named like a SQLite database. */
export function isSqlite(path: string): boolean {
  return /\.(sqlite3?|db3?)$/i.test(path);
}

type Options = Record<string, string | number>;

/** Reads once more with `finalNewline: optional` if the reading is complete with that option. */
async function completed(file: File, options: Options): Promise<Sample> {
  const sample = await read(file, options);
  if (sample.flaw === undefined) return sample;
  const tolerant = await read(file, { ...options, finalNewline: 'optional' });
  return tolerant.flaw === undefined ? tolerant : sample;
}

async function read(file: File, options: Options): Promise<Sample> {
  const { type, path, signal } = file;
  const reading = { fields: [], most: Number.POSITIVE_INFINITY, signal };
  const collected = await sampleOf(sourceOf(file, options), reading);
  return { options: { ...options, type }, file: resolve(path), origin: path, ...collected };
}

function sourceOf({ type, path }: File, options: Options): Source {
  const surroundings = { clock: systemClock, random: Math.random };
  const given = { ...options, type, path: resolve(path) };
  if (type === 'xlsx') return xlsxSource(xlsxOptions.parse(given), surroundings);
  return type === 'ndjson'
    ? ndjsonSource(ndjsonOptions.parse(given), surroundings)
    : csvSource(csvOptions.parse(given), surroundings);
}
