/**
 * A file with one JSON object a line: contacts, or templates with their keys. Blank lines are
 * ignored. The reading is certified like that of a CSV file (line-file.ts).
 */
import { Invalid } from '../../domain/errors.ts';
import { parseJson } from '../../domain/values/lossless-json.ts';
import {
  assertNotUtf16,
  type FileReading,
  type FileSurroundings,
  type FileTally,
  lineFile,
  utf8Check,
} from '../shared/files/line-file.ts';
import { jsonRecords, type JsonRecords } from '../shared/json-records.ts';
import type { Source, SourceRecord } from '../source.ts';
import { type JsonLine, lineParser } from './line-parser.ts';
import type { NdjsonOptions } from './options.ts';

/** Returns the source of such a file. */
export function ndjsonSource(options: NdjsonOptions, surroundings: FileSurroundings): Source {
  return lineFile(options, surroundings, batchesOf);
}

/** Yields the records of each chunk of the file; a chunk is small. */
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
