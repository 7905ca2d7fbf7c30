/**
 * Reads a file with one JSON object per line: contacts, or templates with their keys. Blank lines
 * are ignored. A read is certified as for a CSV file (line-file.ts).
 */
import { Invalid } from '../../domain/errors.ts';
import { parseJson } from '../../domain/values/lossless-json.ts';
import type { FileTally } from '../shared/files/file-tally.ts';
import { type FileReading, type FileSurroundings, lineFile } from '../shared/files/line-file.ts';
import { hasUtf16Pattern } from '../shared/files/utf16-pattern.ts';
import { jsonRecords, type JsonRecords } from '../shared/json-records.ts';
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
  const record = text === undefined ? tooLong(where) : parsed(text, where, records);
  if ('broken' in record) {
    tally.broken += 1;
    tally.firstBroken ??= where;
  }
  return record;
}

function tooLong(where: string): SourceRecord {
  return { where, broken: 'is longer than 4 MiB', fix: 'write one record a line' };
}

function parsed(text: string, where: string, records: JsonRecords): SourceRecord {
  const value = parseJson(text);
  if (value !== undefined) return records.recordOf(value, where, text);
  return { where, broken: 'is no JSON', fix: 'write one whole JSON object a line' };
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
  const marked = sample.length >= 2 && ['fffe', 'feff'].includes(sample.toString('hex', 0, 2));
  if (!marked && !hasUtf16Pattern(sample)) return;
  throw new Invalid(`${path}: the text is UTF-16; save the file as UTF-8`);
}
