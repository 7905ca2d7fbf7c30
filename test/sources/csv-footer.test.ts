/** Lines under the records of a CSV file, as a report of Salesforce has them. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { CsvOptions } from '../../src/sources/csv/options.ts';
import { readCsv, scratch } from '../support/sources/source-reading.ts';
import { expectedOf } from '../e2e/first-contact/expected-outcome.ts';

const folder = await scratch();
const path = join(folder, 'report.csv');
const readText = (
  text: string | Buffer,
  options: Partial<CsvOptions> = {},
  fields: readonly string[] = ['id'],
) => readCsv(path, text, fields, options);

const records = 'id,email\n1,a@x.y\n2,b@x.y\n';
const empty = (line: number) => ({ where: `line ${line}`, value: { id: '', email: '' } });
const short = (line: number) => ({
  where: `line ${line}`,
  broken: 'has 1 field where the header has 2',
  fix: expect.stringContaining('quotes'),
});
const below = async (text: string, options: Partial<CsvOptions> = {}) => {
  const { records: found, certificate } = await readText(records + text, options);
  return { found: found.slice(2), complete: certificate.complete };
};

describe('rows of one cell after a blank line', () => {
  test('are empty records if no other row follows', async () => {
    const { found, complete } = await below('\n\nTotal\n\n"Do, not\nshare"\nMaria\n');
    expect(found).toEqual([empty(6), empty(8), empty(10)]);
    expect(complete).toBe(true);
  });

  test('are empty records in every chunk of the file', async () => {
    const many = `id,email\n${'1,a@x.y\n'.repeat(8_100)}`;
    const rest = Array.from({ length: 20 }, (_, at) => `${at}${'x'.repeat(9_000)}\n`).join('');
    const { values, certificate } = await readText(`${many}\n${rest}`);
    expect(values.length).toBe(8_120);
    expect(values.slice(8_100)).toEqual(Array.from({ length: 20 }, () => ({ id: '', email: '' })));
    expect(certificate.complete).toBe(true);
  });

  test.each([
    ['a whole row', '3,c@x.y\n'],
    ['an empty row of full width', ',\n'],
    ['a row that is too long', '3,c@x.y,z\n'],
  ])('are broken if %s follows, and keep their order', async (_, row) => {
    const { found, complete } = await below(`\nTotal\nMaria\n${row}`);
    expect(found.slice(0, 2)).toEqual([short(5), short(6)]);
    expect(found[2]?.where).toBe('line 7');
    expect(complete).toBe(false);
  });

  test('are broken if they are more than twenty', async () => {
    const { found, complete } = await below(`\n${'x\n'.repeat(21)}`);
    expect(found).toEqual(Array.from({ length: 21 }, (_, at) => short(at + 5)));
    expect(complete).toBe(false);
  });

  test('are broken before the first record', async () => {
    const { records: found, certificate } = await readText('id,email\n\nTotal\n');
    expect(found).toEqual([short(3)]);
    expect(certificate.complete).toBe(false);
  });

  test('are records if the header has one column', async () => {
    const { values } = await readText('id\n1\n\n2\n');
    expect(values).toEqual([{ id: '1' }, { id: '2' }]);
  });

  test('are broken before a quote that is never closed', async () => {
    const { found, complete } = await below('\nTotal\n"Ma\n');
    expect(found).toEqual([short(5), expect.objectContaining({ where: 'line 6' })]);
    expect(complete).toBe(false);
  });

  test.each(['required', 'optional'] as const)(
    'are broken without a last line break, because a record may be cut off (%s)',
    async (finalNewline) => {
      const { found, complete } = await below('\nTotal\n3', { finalNewline });
      expect(found).toEqual([short(5), short(6)]);
      expect(complete).toBe(false);
    },
  );
});

test('a row of one cell is broken without a blank line before it', async () => {
  const { found, complete } = await below('3\n');
  expect(found).toEqual([short(4)]);
  expect(complete).toBe(false);
});

describe('a Salesforce report', () => {
  const report = join(
    import.meta.dirname,
    '../e2e/first-contact/salesforce-report/report1743412320123.csv',
  );

  test('is read to its end, and its last lines are empty', async () => {
    const { records: found, certificate } = await readText(await readFile(report), {}, ['Email']);
    const isEmpty = (value: unknown) => value === '';
    const lines = found.flatMap((record) =>
      'value' in record && Object.values(record.value).every(isEmpty) ? [record.where] : [],
    );
    const { skipped } = expectedOf('salesforce-report');
    expect(lines).toEqual(skipped.lines.filter((line) => line > 50).map((line) => `line ${line}`));
    expect(certificate.complete).toBe(true);
  });

  test('is not complete when it was cut within a line under its records', async () => {
    const bytes = await readFile(report);
    const from = bytes.indexOf('"Grand') + 1;
    const ends = Array.from({ length: bytes.length - from }, (_, at) => from + at);
    const certified: number[] = [];
    for (const end of ends.filter((at) => bytes[at - 1] !== 0x0a)) {
      const cut = bytes.subarray(0, end);
      const { certificate } = await readText(cut, { finalNewline: 'optional' }, ['Email']);
      if (certificate.complete) certified.push(end);
    }
    expect(certified).toEqual([]);
  });
});
