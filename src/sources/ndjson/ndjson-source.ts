/**
 * Reads a file with one JSON object per line: contacts, or templates with their keys. Blank lines
 * are ignored. A read is certified as for a CSV file (line-file.ts).
 */
import { Invalid } from '../../domain/errors.ts';
import { parseJson } from '../../domain/values/lossless-json.ts';
import { brokenRow, type FileTally } from '../shared/files/file-tally.ts';
import { type FileReading, type FileSurroundings, lineFile } from '../shared/files/line-file.ts';
import { hasUtf16Pattern, markedEncoding } from '../shared/files/detect-encoding.ts';
import { jsonRecords, type JsonRecords } from '../shared/json-records.ts';
import type { Flaw } from '../shared/read-certificate.ts';
import type { Source, SourceRecord } from '../source.ts';
import { type JsonLine, lineParser } from './line-parser.ts';
import type { NdjsonOptions } from './options.ts';

/** Returns the source for such a file. */
export function ndjsonSource(options: NdjsonOptions, surroundings: FileSurroundings): Source {
  return lineFile(options, surroundings, batchesOf);
}

/** Yields the records of each chunk of the file; chunks are small. */
async function* batchesOf({
  name,
  chunks,
  fields,
  tally,
}: FileReading): AsyncGenerator<SourceRecord[], void> {
  const records = jsonRecords(fields);
  const parser = lineParser();
  const checkUtf8 = utf8Check();
  for await (const chunk of chunks) {
    if (tally.bytes === 0) assertNotUtf16(chunk, name);
    if (!checkUtf8(chunk)) throw notUtf8(name);
    tally.bytes += chunk.length;
    tally.lineEnded = chunk.at(-1) === 0x0a;
    const batch = parser.write(chunk).map((line) => recordOf(line, records, tally));
    if (batch.length > 0) yield batch;
  }
  if (!checkUtf8(undefined)) throw notUtf8(name);
  const rest = parser.end().map((line) => recordOf(line, records, tally));
  if (rest.length > 0) yield rest;
  const lack = records.lacking();
  if (lack !== undefined) throw new Invalid(`${name}: ${lack}`);
}

function notUtf8(name: string): Invalid {
  return new Invalid(`${name}: the text is not UTF-8; save the file as UTF-8`);
}

function recordOf(
  { number, text }: JsonLine,
  records: JsonRecords,
  tally: FileTally,
): SourceRecord {
  const where = `line ${number}`;
  const value = text === undefined ? undefined : parseJson(text);
  if (text === undefined || value === undefined || Array.isArray(value)) {
    return brokenRow(tally, where, faultOf(text));
  }
  const record = records.recordOf(value, where, text);
  if (!('broken' in record)) return record;
  return brokenRow(tally, where, { why: record.broken, fix: record.fix });
}

/** Returns why a line holds no object. Whole files of one array or of NaN are common. */
function faultOf(text: string | undefined): Flaw {
  const file = 'people.json > people.ndjson';
  if (text === undefined) return { why: 'is longer than 4 MiB', fix: 'write one record a line' };
  if (text.startsWith('[')) {
    const fix = `write one object a line, without the array: jq -c '.[]' ${file}`;
    return { why: 'begins a JSON array', fix };
  }
  const [, number] = /[[:,]\s*-?(NaN|Infinity)\b/.exec(text) ?? [];
  if (number !== undefined) return { why: 'is no JSON', fix: `write null in place of ${number}` };
  const more = text === '{' ? `: jq -c . ${file}` : '';
  return { why: 'is no JSON', fix: `write one whole JSON object a line${more}` };
}

/**
 * Returns a function that reports for each chunk in order whether the text is still valid UTF-8.
 * Call it with undefined at the end, because a character may span two chunks.
 */
function utf8Check(): (chunk: Buffer | undefined) => boolean {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  return (chunk) => {
    try {
      decoder.decode(chunk, { stream: chunk !== undefined });
      return true;
    } catch (error) {
      if (error instanceof TypeError) return false;
      throw error;
    }
  };
}

/**
 * Throws Invalid if a file that begins with `sample` is UTF-16, which is valid UTF-8 full of NULs.
 */
function assertNotUtf16(sample: Buffer, path: string): void {
  const marked = markedEncoding(sample)?.startsWith('utf-16');
  if (!marked && !hasUtf16Pattern(sample)) return;
  throw new Invalid(`${path}: the text is UTF-16; save the file as UTF-8`);
}
