/**
 * Rows that are split line by line, beside csv-parse reading the same text: a row of several lines
 * in front has csv-parse read everything behind it.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findingParser, type Row } from '../../src/sources/csv/row-parser.ts';
import { extent } from '../support/extent.ts';

const pieces = ['a', 'é', ' ', ',', ',', ';', '"', '""', '"a"', '"a,b"', '"a', '\uFEFF'];
const breaks = ['\n', '\n', '\r\n', '\r', '\n\n'];
const text = fc
  .array(fc.constantFrom(...pieces, ...breaks), { maxLength: 40 })
  .map((parts) => parts.join(''))
  // A byte order mark is none in front of the first line here.
  .filter((one) => !one.startsWith('\uFEFF'));

/** Reads a text in chunks of this many bytes, and returns what the rows and the reading are. */
async function read(all: string, size: number) {
  const bytes = Buffer.from(all);
  const parser = findingParser(',', 1);
  const rows: Row[] = [];
  let why: string | undefined;
  for (let at = 0; at < bytes.length; at += size) {
    why ??= await parser.write(bytes.subarray(at, at + size));
    rows.push(...parser.take());
  }
  why ??= await parser.end();
  rows.push(...parser.take());
  const line = parser.line();
  parser.close();
  const shown = rows.map(({ end: _, isPlain: __, ...row }) => row);
  return { rows: shown, why, stoppedOn: why === undefined ? undefined : line };
}

const lines = 2;

test('lines are read as csv-parse reads them, in chunks of any size', async () => {
  const same = fc.asyncProperty(text, fc.integer({ min: 1, max: 50 }), async (all, size) => {
    const { rows, why, stoppedOn } = await read(all, size);
    const parsed = await read(`"a\nb"\n${all}`, 1_000);
    const moved = rows.map((row) => ({ ...row, line: row.line + lines }));
    expect({ rows: moved, why, stoppedOn: stoppedOn && stoppedOn + lines }).toEqual({
      ...parsed,
      rows: parsed.rows.slice(1),
    });
  });
  await fc.assert(same, { numRuns: extent(300, 5_000) });
});

test.each(['\n', '\r\n', '\r'])('a mark in front of the first line is no text, %j', async (end) => {
  const { rows } = await read(`\uFEFF"a,b",c${end}d,\uFEFFe${end}`, 1_000);
  expect(rows.map(({ fields }) => fields)).toEqual([
    ['a,b', 'c'],
    ['d', '\uFEFFe'],
  ]);
});
