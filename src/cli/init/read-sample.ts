/** Reads an export for `init`: which options it takes to read it, and what its columns hold. */
import { closeSync, existsSync, openSync, readSync } from 'node:fs';
import { resolve } from 'node:path';
import { Invalid } from '../../domain/errors.ts';
import { textOf, wordOf } from '../../domain/values/record-field.ts';
import { systemClock } from '../../http/system-clock.ts';
import { isAddress } from '../../records/contact/observe/email-address.ts';
import { contactKey } from '../../records/contact/observe/observed-contact.ts';
import { csvSource } from '../../sources/csv/csv-source.ts';
import { csvOptions } from '../../sources/csv/options.ts';
import type { Encoding } from '../../sources/csv/text-encoding.ts';
import { ndjsonSource } from '../../sources/ndjson/ndjson-source.ts';
import { ndjsonOptions } from '../../sources/ndjson/options.ts';
import { hasUtf16Pattern } from '../../sources/shared/files/utf16-pattern.ts';
import type { Certificate, Source, SourceRecord } from '../../sources/source.ts';
import { sampleSqlite } from '../../sources/sql/sqlite-sample.ts';
import { xlsxOptions } from '../../sources/xlsx/options.ts';
import { xlsxSource } from '../../sources/xlsx/xlsx-source.ts';

/** One value of a column, in the spelling of its first record. */
export interface Value {
  text: string;
  /** The number of records that hold it. */
  records: number;
}

/** A column of the export, or the dotted path of a field in JSON. */
export interface Column {
  name: string;
  /** The number of records in which it is not empty. */
  filled: number;
  /** The number of records in which it holds an email address. */
  addresses: number;
  /** Its different values, the most frequent first; at most 100,000. */
  values: readonly Value[];
}

/** An export, as far as `init` has to know it. */
export interface Sample {
  /** The options of the source for the configuration, without the path. */
  options: Readonly<Record<string, string>>;
  records: number;
  columns: readonly Column[];
  /** The first records, for the preview. */
  first: readonly { where: string; value: Record<string, unknown> }[];
  /** Why the reading is not complete; undefined: it is. */
  flaw: string | undefined;
}

const mostValues = 100_000;
const mostPreviewed = 20;
const deepest = 4;

/** Reads the file at `path`. Throws Invalid if it cannot be read as an export. */
export async function readSample(path: string, signal: AbortSignal): Promise<Sample> {
  if (!existsSync(path)) {
    throw new Invalid(`${path}: there is no such file`, { fix: 'correct the path' });
  }
  const type = typeOf(path);
  if (type === 'sql') {
    const { table, rows } = sampleSqlite(resolve(path));
    const collected = collecting();
    collected.add(rows);
    return { options: { type, table }, ...collected.end(), flaw: undefined };
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

function typeOf(path: string): File['type'] | 'sql' {
  if (/\.(sqlite3?|db3?)$/i.test(path)) return 'sql';
  if (/\.xlsx$/i.test(path)) return 'xlsx';
  if (/\.(ndjson|jsonl)(\.gz)?$/i.test(path)) return 'ndjson';
  if (/\.(csv|tsv|txt|tab)(\.gz)?$/i.test(path)) return 'csv';
  throw new Invalid(`${path}: init cannot tell what kind of file this is`, {
    fix: 'name it .csv, .tsv, .txt, .ndjson, .jsonl, .xlsx or .sqlite, or write the configuration by hand',
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
  const { type } = file;
  const reading = sourceOf(file, options).read({ fields: [], signal });
  const collected = collecting();
  let step = await reading.next();
  while (!step.done) {
    collected.add(step.value);
    step = await reading.next();
  }
  return { options: { ...options, type }, ...collected.end(), flaw: flawOf(step.value) };
}

/** Collects records into columns. */
function collecting() {
  const columns = new Map<string, Tally>();
  const first: Sample['first'][number][] = [];
  let records = 0;
  return {
    add(batch: readonly SourceRecord[]): void {
      for (const record of batch) {
        if (!('value' in record)) continue;
        records += 1;
        if (first.length < mostPreviewed) first.push(record);
        for (const [name, value] of fieldsOf(record.value)) add(columns, name, value);
      }
    },
    end: (): Pick<Sample, 'records' | 'columns' | 'first'> => ({
      records,
      columns: [...columns].map(([name, tally]) => columnOf(name, tally)),
      first,
    }),
  };
}

function flawOf(certificate: Certificate): string | undefined {
  return certificate.complete ? undefined : certificate.why;
}

function sourceOf({ type, path }: File, options: Options): Source {
  const surroundings = { clock: systemClock, random: Math.random };
  const given = { ...options, type, path: resolve(path) };
  if (type === 'xlsx') return xlsxSource(xlsxOptions.parse(given), surroundings);
  return type === 'ndjson'
    ? ndjsonSource(ndjsonOptions.parse(given), surroundings)
    : csvSource(csvOptions.parse(given), surroundings);
}

/** Yields the fields of a record; those of nested objects by their dotted paths. */
function* fieldsOf(
  value: Record<string, unknown>,
  path = '',
  depth = 1,
): Generator<[name: string, value: unknown]> {
  for (const [name, inner] of Object.entries(value)) {
    const whole = path === '' ? name : `${path}.${name}`;
    if (isRecord(inner) && depth < deepest) yield* fieldsOf(inner, whole, depth + 1);
    else yield [whole, inner];
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

interface Tally {
  filled: number;
  addresses: number;
  values: Map<string, Value>;
}

function add(columns: Map<string, Tally>, name: string, value: unknown): void {
  const values = new Map<string, Value>();
  const tally = columns.get(name) ?? { filled: 0, addresses: 0, values };
  columns.set(name, tally);
  const text = textOf(value);
  if (text === undefined || text === '') return;
  tally.filled += 1;
  if (isAddress(contactKey(text))) tally.addresses += 1;
  const word = wordOf(text);
  const known = tally.values.get(word);
  if (known) known.records += 1;
  else if (tally.values.size < mostValues) tally.values.set(word, { text, records: 1 });
}

function columnOf(name: string, { filled, addresses, values }: Tally): Column {
  const all = [...values.values()].toSorted((a, b) => b.records - a.records);
  return { name, filled, addresses, values: all };
}
