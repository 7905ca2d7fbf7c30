/** Reads a file with one JSON object per line, without blank ones; certified as a CSV file is. */
import { Invalid } from '../../domain/errors.ts';
import { parseJson } from '../../domain/stored-json.ts';
import {
  brokenRow,
  type FileTally,
  type FileReading,
  type FileSurroundings,
  lineFile,
} from '../shared/files/line-file.ts';
import { hasUtf16Pattern, markedEncoding, strictDecoder } from '../shared/files/file-origin.ts';
import { jsonRecords, type JsonRecords } from '../shared/record-fields.ts';
import type { Flaw } from '../shared/read-certificate.ts';
import type { Source, SourceRecord } from '../source.ts';
import type { NdjsonOptions } from './options.ts';

export function ndjsonSource(options: NdjsonOptions, surroundings: FileSurroundings): Source {
  return lineFile(options, surroundings, readBatches);
}

async function* readBatches(reading: FileReading): AsyncGenerator<SourceRecord[], void> {
  const { name, chunks, fields, tally } = reading;
  const records = jsonRecords(fields);
  const parser = lineParser();
  const decode = strictDecoder('utf-8');
  const checkUtf8 = (chunk: Buffer | undefined) => {
    if (decode(chunk) !== undefined) return;
    throw new Invalid(`${name}: the text is not UTF-8; save the file as UTF-8`);
  };
  for await (const chunk of chunks) {
    // UTF-16 is valid UTF-8 full of NULs.
    const isFirst = tally.bytes === 0;
    if (isFirst && (markedEncoding(chunk)?.startsWith('utf-16') || hasUtf16Pattern(chunk))) {
      throw new Invalid(`${name}: the text is UTF-16; save the file as UTF-8`);
    }
    checkUtf8(chunk);
    tally.bytes += chunk.length;
    tally.lineEnded = chunk.at(-1) === 0x0a;
    const batch = parser.write(chunk).map((line) => recordOf(line, records, tally));
    if (batch.length > 0) yield batch;
  }
  checkUtf8(undefined);
  const rest = parser.end().map((line) => recordOf(line, records, tally));
  if (rest.length > 0) yield rest;
  const lack = records.lacking();
  if (lack !== undefined) throw new Invalid(`${name}: ${lack}`);
}

function recordOf(
  { number, text }: JsonLine,
  records: JsonRecords,
  tally: FileTally,
): SourceRecord {
  const where = `line ${number}`;
  const value = text === undefined ? undefined : parseJson(text);
  if (text === undefined || value === undefined || Array.isArray(value))
    return brokenRow(tally, where, explain(text));
  const record = records.recordOf(value, where, text);
  if (!('broken' in record)) return record;
  return brokenRow(tally, where, { why: record.broken, fix: record.fix });
}

/** Returns why a line holds no object. Whole files of one array or of NaN are common. */
function explain(text: string | undefined): Flaw {
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

/** More than any record needs; a file without line breaks must not fill the memory. */
const LINE_BYTES = 4 * 1024 * 1024;

interface JsonLine {
  number: number;
  text: string | undefined;
}

function lineParser() {
  let number = 1;
  let parts: Buffer[] = [];
  let bytes = 0;
  const add = (part: Buffer) => {
    bytes += part.length;
    if (bytes > LINE_BYTES) parts = [];
    else parts.push(part);
  };
  const take = (): JsonLine[] => {
    const whole = Buffer.concat(parts).toString('utf8').trim();
    const unmarked = number === 1 ? whole.replace(/^\uFEFF/, '').trim() : whole;
    const line = { number, text: bytes > LINE_BYTES ? undefined : unmarked };
    [number, parts, bytes] = [number + 1, [], 0];
    return line.text === '' ? [] : [line];
  };
  return {
    /** Returns the lines completed by this chunk, without blank lines. */
    write(chunk: Buffer): JsonLine[] {
      const lines: JsonLine[] = [];
      let start = 0;
      for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, start)) {
        add(chunk.subarray(start, end));
        lines.push(...take());
        start = end + 1;
      }
      add(chunk.subarray(start));
      return lines;
    },
    end: take,
  };
}
