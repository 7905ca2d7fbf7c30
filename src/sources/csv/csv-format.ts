/**
 * Determines the beginning of a CSV file, its delimiter and the line on which it begins, and
 * converts it from its encoding to UTF-8.
 */
import { Invalid } from '../../domain/errors.ts';
import { hasUtf16Pattern, markedEncoding } from '../shared/files/detect-encoding.ts';

export const delimiters = [',', ';', '\t', '|'] as const;
export type Delimiter = (typeof delimiters)[number];

const SAMPLE_RECORDS = 50;

/**
 * Returns the delimiter with which a record contains the most requested fields. If several are
 * equal, the one that splits the largest number of following rows into the header's width wins,
 * then the one with the most columns. Text in quotes is never counted. For a file with one column,
 * the result is a comma.
 */
export function delimiterOf(sample: Buffer, fields: readonly string[]): Delimiter {
  const records = firstRecords(sample.toString('utf8'));
  const [first, ...rows] = records;
  const line = unquote(first ?? '').toLowerCase();
  const stated = delimiters.find((delimiter) => line === `sep=${delimiter}`);
  if (stated !== undefined) return stated;
  if (first === undefined) return ',';
  const countFields = (record: string, delimiter: Delimiter) => {
    const names = new Set(splitRecord(record, delimiter).map(unquote));
    return fields.filter((field) => names.has(field)).length;
  };
  const scores = delimiters.map((delimiter) => {
    const width = splitRecord(first, delimiter).length;
    return {
      delimiter,
      found: Math.max(...records.map((record) => countFields(record, delimiter))),
      several: width > 1 ? 1 : 0,
      even: rows.filter((row) => splitRecord(row, delimiter).length === width).length,
      width,
    };
  });
  const [best] = scores.toSorted(
    (a, b) => b.found - a.found || b.several - a.several || b.even - a.even || b.width - a.width,
  );
  return best?.delimiter ?? ',';
}

/** Returns whether a row is the line `sep=;`, which tells Excel the delimiter. */
export function isSeparatorLine([first = '', ...others]: readonly string[]): boolean {
  return /^sep=.?$/i.test(first) && others.every((field) => field === '');
}

/** Returns where a line begins, the first of which is 1; the end if there are fewer lines. */
export function startOfLine(text: Buffer, line: number): number {
  const above = new RegExp(`^(?:[^\\r\\n]*(?:\\r\\n?|\\n)){${line - 1}}`);
  return above.exec(text.toString('latin1'))?.[0].length ?? text.length;
}

/** Returns the cells of one record, and is more tolerant than the parser that reads the file. */
function splitRecord(record: string, delimiter: Delimiter): string[] {
  const cells: string[] = [];
  let start = 0;
  let quoted = false;
  for (let at = 0; at <= record.length; at += 1) {
    const character = record[at];
    if (character === '"') quoted = !quoted;
    if (at < record.length && (quoted || character !== delimiter)) continue;
    cells.push(record.slice(start, at));
    start = at + 1;
  }
  return cells;
}

function unquote(cell: string): string {
  const text = cell.replace(/^"([^]*)"$/, (_, inner: string) => inner.replaceAll('""', '"'));
  return text.trim();
}

/** Returns the first records, except blank lines and a record that the sample cuts off. */
function firstRecords(text: string): string[] {
  const records: string[] = [];
  let start = 0;
  let quoted = false;
  for (let at = 0; at < text.length && records.length < SAMPLE_RECORDS; at += 1) {
    const character = text[at];
    if (character === '"') quoted = !quoted;
    if (quoted || (character !== '\n' && character !== '\r')) continue;
    if (at > start) records.push(text.slice(start, at));
    start = at + 1;
  }
  // The header is needed even if the sample holds nothing else.
  if (records.length === 0 && text.length > 0) records.push(text.slice(start));
  return records.map((record) => record.replace(/^\uFEFF/, ''));
}

export const encodings = ['utf-8', 'utf-16', 'windows-1252'] as const;
export type Encoding = (typeof encodings)[number];

/** Creates the decoder to UTF-8 of a file with this beginning; its byte order mark counts first. */
export function chunkDecoder(sample: Buffer, encoding: Encoding = 'utf-8') {
  const label = markedEncoding(sample) ?? (encoding === 'utf-16' ? 'utf-16le' : encoding);
  const isUtf8 = label === 'utf-8';
  const isUnmarkedUtf16 = isUtf8 && hasUtf16Pattern(sample);
  const decoder = new TextDecoder(label, { fatal: true });
  return {
    /**
     * Returns the chunk in UTF-8, or undefined if it contains bytes that are invalid in the
     * encoding. Call it with undefined at the end, because a character may span two chunks.
     */
    decode(chunk: Buffer | undefined): Buffer | undefined {
      if (isUnmarkedUtf16) return undefined;
      try {
        const text = decoder.decode(chunk, { stream: chunk !== undefined });
        return isUtf8 && chunk ? chunk : Buffer.from(text);
      } catch (error) {
        if (error instanceof TypeError) return undefined;
        throw error;
      }
    },
    refusal(name: string, line: number): Invalid {
      if (isUnmarkedUtf16) {
        const fix = 'set encoding: utf-16 in the source, or save the file as UTF-8';
        return new Invalid(`${name}: the text is UTF-16`, { fix });
      }
      const fix = isUtf8
        ? 'set encoding: windows-1252 in the source if a Western Windows program wrote it, or save the file as UTF-8'
        : 'set the encoding of the source to the one that the export uses, or save the file as UTF-8';
      const what = isUtf8 ? 'UTF-8' : label.replace(/le|be$/, '').toUpperCase();
      return new Invalid(`${name}: the text is not ${what} (at or soon after line ${line})`, {
        fix,
      });
    },
  };
}
