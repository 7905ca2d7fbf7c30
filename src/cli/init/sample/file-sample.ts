/** Reads an export as a sample, whole, and finds the options that it takes to read it. */
import { closeSync, existsSync, openSync, readSync } from 'node:fs';
import { resolve } from 'node:path';
import { Invalid } from '../../../domain/errors.ts';
import { systemClock } from '../../../http/system-clock.ts';
import { csvSource } from '../../../sources/csv/csv-source.ts';
import { csvOptions } from '../../../sources/csv/options.ts';
import type { Encoding } from '../../../sources/csv/text-encoding.ts';
import { ndjsonSource } from '../../../sources/ndjson/ndjson-source.ts';
import { ndjsonOptions } from '../../../sources/ndjson/options.ts';
import { hasUtf16Pattern } from '../../../sources/shared/files/detect-encoding.ts';
import type { Source } from '../../../sources/source.ts';
import { sampleSqlite } from '../../../sources/sql/sqlite-sample.ts';
import { xlsxOptions } from '../../../sources/xlsx/options.ts';
import { xlsxSource } from '../../../sources/xlsx/xlsx-source.ts';
import { collecting, type Sample, sampleOf } from './sample.ts';

/** Reads the file at `path`. Throws Invalid if it cannot be read as an export. */
export async function fileSample(path: string, signal: AbortSignal): Promise<Sample> {
  if (!existsSync(path)) {
    throw new Invalid(`${path}: there is no such file`, { fix: 'correct the path' });
  }
  const type = typeOf(path);
  if (type === 'sql') {
    const { table, rows } = sampleSqlite(resolve(path));
    const collected = collecting();
    collected.add(rows);
    const options = { type, table };
    const place = { file: resolve(path), origin: path };
    return { options, ...place, ...collected.end(), flaw: undefined, isWhole: true };
  }
  if (type === 'xlsx') return read({ type, path }, { type }, signal);
  if (type === 'ndjson') return completed({ type }, (more) => read({ type, path }, more, signal));
  try {
    return await completed({ type }, (more) => read({ type, path }, more, signal));
  } catch (error) {
    const encoding = error instanceof Invalid ? encodingOf(path) : undefined;
    if (encoding === undefined) throw error;
    return completed({ type, encoding }, (more) => read({ type, path }, more, signal));
  }
}

/** Returns whether a file is named like a SQLite database. */
export function isSqlite(path: string): boolean {
  return /\.(sqlite3?|db3?)$/i.test(path);
}

function typeOf(path: string): File['type'] | 'sql' {
  if (isSqlite(path)) return 'sql';
  if (/\.xlsx$/i.test(path)) return 'xlsx';
  if (/\.(ndjson|jsonl|json)(\.gz)?$/i.test(path)) return 'ndjson';
  if (/\.(csv|tsv|txt|tab)(\.gz)?$/i.test(path)) return 'csv';
  throw new Invalid(`${path}: init cannot tell what kind of file this is`, {
    fix: 'name it .csv, .tsv, .txt, .ndjson, .jsonl, .json, .xlsx or .sqlite, or write the configuration by hand',
  });
}

/** Returns the encoding to try if a file is not UTF-8. */
function encodingOf(path: string): Encoding {
  const bytes = Buffer.alloc(1_024);
  const file = openSync(path, 'r');
  const length = readSync(file, bytes);
  closeSync(file);
  return hasUtf16Pattern(bytes.subarray(0, length)) ? 'utf-16' : 'windows-1252';
}

type Options = Record<string, string>;

/** Reads once more with `finalNewline: optional` if the reading is complete with that option. */
async function completed(
  options: Options,
  readWith: (options: Options) => Promise<Sample>,
): Promise<Sample> {
  const sample = await readWith(options);
  if (sample.flaw === undefined) return sample;
  const tolerant = await readWith({ ...options, finalNewline: 'optional' });
  return tolerant.flaw === undefined ? tolerant : sample;
}

interface File {
  type: 'csv' | 'ndjson' | 'xlsx';
  path: string;
}

async function read(file: File, options: Options, signal: AbortSignal): Promise<Sample> {
  const { type, path } = file;
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
