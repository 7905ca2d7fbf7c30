import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { csvOptions } from '../../src/sources/csv/options.ts';
import { errorOf, readCsv, scratch } from '../support/sources/source-reading.ts';
import { extent } from '../support/extent.ts';

const folder = await scratch();
const path = join(folder, 'people.csv');
const readText = (text: string | Buffer, fields: readonly string[] = ['id']) =>
  readCsv(path, text, fields);

test('unknown options are refused', () => {
  expect(csvOptions.parse({ type: 'csv', path: '/a.csv' })).toEqual({
    type: 'csv',
    path: '/a.csv',
  });
  expect(csvOptions.safeParse({ type: 'csv', path: '/a.csv', header: true }).success).toBe(false);
  expect(csvOptions.safeParse({ type: 'csv', path: '' }).success).toBe(false);
});

describe('the options', () => {
  test.each([
    ['an encoding', { encoding: 'windows-1252' }, { encoding: 'windows-1252' }],
    ['a delimiter', { delimiter: ';' }, { delimiter: ';' }],
    ['the word tab', { delimiter: 'tab' }, { delimiter: '\t' }],
  ])('take %s', (_, given, taken) => {
    const place = { type: 'csv', path: '/a.csv' };
    expect(csvOptions.parse({ ...place, ...given })).toEqual({ ...place, ...taken });
  });

  test.each([
    ['another encoding', { encoding: 'latin1' }],
    ['a delimiter of two characters', { delimiter: '||' }],
  ])('refuse %s', (_, given) => {
    expect(csvOptions.safeParse({ type: 'csv', path: '/a.csv', ...given }).success).toBe(false);
  });
});

describe('an encoding', () => {
  const text = 'id;Straße\n1;Müller – 5 €\n2;Łukasz\n';
  const people = [
    { id: '1', Straße: 'Müller – 5 €' },
    { id: '2', Straße: 'Łukasz' },
  ];
  const marked = Buffer.from(`\uFEFF${text}`, 'utf16le');

  test.each([
    ['UTF-16 with a byte order mark, little-endian', marked, {}],
    ['UTF-16 with a byte order mark, big-endian', Buffer.from(marked).swap16(), {}],
    ['UTF-16 without a mark', Buffer.from(text, 'utf16le'), { encoding: 'utf-16' }],
    ['a mark wins over the option', marked, { encoding: 'windows-1252' }],
    ['a mark of UTF-8 wins, too', Buffer.from(`\uFEFF${text}`), { encoding: 'utf-16' }],
  ] as const)('%s', async (_, bytes, options) => {
    const { values, certificate } = await readCsv(path, bytes, ['id', 'Straße'], options);
    expect(values).toEqual(people);
    expect(certificate.complete).toBe(true);
  });

  test('windows-1252 has the euro sign and the dash where Windows has them', async () => {
    const bytes = Buffer.from('id;Stra\xdfe\n1;M\xfcller \x96 5 \x80\n', 'latin1');
    const { values } = await readCsv(path, bytes, ['Straße'], { encoding: 'windows-1252' });
    expect(values).toEqual([people[0]]);
  });

  test('characters of UTF-16 may lie across two chunks', async () => {
    const rows = Array.from({ length: 40_000 }, (_, at) => `${at};€`).join('\n');
    const bytes = Buffer.from(`\uFEFFid;x\n${rows}\n`, 'utf16le');
    const { values } = await readCsv(path, bytes, ['id']);
    expect(values).toHaveLength(40_000);
    expect(values.every(({ x }) => x === '€')).toBe(true);
  });
});

test.each([',', ';', '\t', '|'] as const)(
  'the option delimiter %j is obeyed',
  async (delimiter) => {
    const text = `id${delimiter}"a,b;c|d"\n1${delimiter}x\n`;
    const { values } = await readCsv(path, text, ['id'], { delimiter });
    expect(values.map(({ id }) => id)).toEqual(['1']);
  },
);

test.each(['sep=;', '"sep=;"'])('a first line %s tells the delimiter', async (line) => {
  const text = `${line}\r\nid;name\r\n1;a,b\r\n`;
  const { values, records } = await readText(text, ['id', 'name']);
  expect(values).toEqual([{ id: '1', name: 'a,b' }]);
  expect(records[0]?.where).toBe('line 3');
});

describe('the option headerRow', () => {
  const below = 'id;name\n1;a,b\n';

  test.each([
    ['titles', `A report, of 3 March\n\nBy "Ann"\n${below}`, 4],
    ['a quote that is never closed', `"A report\n${below}`, 2],
    ['a line of separators, CRLF and CR', `sep=,\r\nA\r\r\n${below}`, 4],
    ['a mark', `\uFEFFA;B;C\n${below}`, 2],
    ['no line', below, 1],
  ])('leaves out what stands above: %s', async (_, text, headerRow) => {
    const { records, certificate } = await readCsv(path, text, ['id'], { headerRow });
    expect(records).toEqual([{ where: `line ${headerRow + 1}`, value: { id: '1', name: 'a,b' } }]);
    expect(certificate.complete).toBe(true);
  });

  test.each([2, 9])('has to name a row: %i', async (headerRow) => {
    const reading = readCsv(path, `Title\n\n${below}`, ['id'], { headerRow });
    expect((await errorOf(reading)).message).toBe(
      `${path}: headerRow is ${headerRow}, and that row is empty or not there; ` +
        'set it to the number of the row with the column names',
    );
  });

  test('is proposed where a row below has the missing names', async () => {
    const error = await errorOf(readText(`A title, of some kind\n\n${below}`, ['name', 'id']));
    expect(error.message).toBe(
      `${path}: there are no columns "name", "id" in the header row, but row 3 has them; ` +
        'set headerRow: 3 in the source',
    );
  });
});

describe('text', () => {
  test.each([
    ['LF', 'id,name\n1,Ann\n2,Bo\n'],
    ['CRLF', 'id,name\r\n1,Ann\r\n2,Bo\r\n'],
    ['CR', 'id,name\r1,Ann\r2,Bo\r'],
    ['mixed line breaks', 'id,name\r\n1,Ann\n2,Bo\r\n'],
    ['semicolons', 'id;name\n1;Ann\n2;Bo\n'],
    ['tabs', 'id\tname\n1\tAnn\n2\tBo\n'],
    ['bars', 'id|name\n1|Ann\n2|Bo\n'],
    ['a byte order mark', '\uFEFFid,name\n1,Ann\n2,Bo\n'],
    ['a byte order mark before a quote', '\uFEFF"id",name\n1,Ann\n2,Bo\n'],
    ['spaces around header names', ' id ,\tname \n1,Ann\n2,Bo\n'],
    ['blank lines', '\n\nid,name\n\n1,Ann\n\n\n2,Bo\n\n'],
    ['everything quoted', '"id","name"\n"1","Ann"\n"2","Bo"\n'],
  ])('%s', async (_, text) => {
    const { values, certificate } = await readText(text, ['id', 'name']);
    expect(values).toEqual([
      { id: '1', name: 'Ann' },
      { id: '2', name: 'Bo' },
    ]);
    expect(certificate.complete).toBe(true);
  });

  test('may quote delimiters, line breaks and doubled quotes', async () => {
    const { values } = await readText('id;"Last, First";note\n1;"Doe; J";"a ""b""\r\nc"\n');
    expect(values).toEqual([{ id: '1', 'Last, First': 'Doe; J', note: 'a "b"\r\nc' }]);
  });

  test('is split by the delimiter under which the requested fields appear', async () => {
    const text = 'id;Name, first, middle, last;email\n1;a, b, c, d;x@y.z\n';
    expect((await readText(text, ['id', 'email'])).values).toEqual([
      { id: '1', 'Name, first, middle, last': 'a, b, c, d', email: 'x@y.z' },
    ]);
  });

  test('is not split in a file of one column by what its values hold', async () => {
    for (const value of ['a,b', 'a;b', 'a\tb', 'a|b']) {
      const { values } = await readText(`id\n${value}\nc\n`);
      expect(values).toEqual([{ id: value }, { id: 'c' }]);
    }
  });

  test('keeps values as they are', async () => {
    const { values } = await readText('id,a,b\n 01 ,TRUE,\n');
    expect(values).toEqual([{ id: ' 01 ', a: 'TRUE', b: '' }]);
  });

  test('may have a column called __proto__', async () => {
    const { values } = await readText('id,__proto__\n1,x\n', ['id', '__proto__']);
    expect(Object.entries(values[0] ?? {})).toEqual([
      ['id', '1'],
      ['__proto__', 'x'],
    ]);
  });

  test('is decoded across chunk borders', async () => {
    for (const shift of [0, 1, 2, 3]) {
      const row = `1,${'€😀é'.repeat(40)}\r\n`;
      const text = `id,${'x'.repeat(shift + 1)}\r\n${row.repeat(700)}`;
      const { records, values, certificate } = await readText(text);
      expect(values).toHaveLength(700);
      expect(new Set(values.map((value) => JSON.stringify(value)))).toHaveLength(1);
      expect(records.at(-1)?.where).toBe('line 701');
      expect(certificate.complete).toBe(true);
    }
  });

  test('comes in batches of 500 records', async () => {
    const { batches } = await readText(`id\n${'7\n'.repeat(1_201)}`);
    expect(batches.map((batch) => batch.length)).toEqual([500, 500, 201]);
  });

  test('comes in batches bounded by bytes when rows are large', async () => {
    const { batches } = await readText(`id,x\n${`1,${'x'.repeat(900_000)}\n`.repeat(20)}`);
    expect(Math.max(...batches.map((batch) => batch.length))).toBeLessThanOrEqual(6);
    expect(batches.flat()).toHaveLength(20);
  });
});

/** Everything that any of the delimiters, line ends and quotings has to protect. */
const tricky = fc.oneof(
  fc.string({ unit: fc.constantFrom(...'a",;\t|\n\r é😀') }),
  fc.string({ unit: 'binary' }),
);
const cell = tricky.map((text) => text.replaceAll('\0', ''));
const columnName = cell.map((text) => text.trim()).filter((text) => text !== '');

test('any table reads back as it was written', async () => {
  const table = fc.uniqueArray(columnName, { minLength: 2, maxLength: 5 }).chain((names) =>
    fc.record({
      names: fc.constant(names),
      rows: fc.array(fc.array(cell, { minLength: names.length, maxLength: names.length })),
    }),
  );
  const dialect = fc.record({
    delimiter: fc.constantFrom(',', ';', '\t', '|'),
    lineEnd: fc.constantFrom('\n', '\r\n', '\r'),
    mark: fc.constantFrom('', '\uFEFF'),
    always: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(table, dialect, async ({ names, rows }, how) => {
      const quote = (text: string) =>
        how.always || [how.delimiter, '"', '\n', '\r'].some((mark) => text.includes(mark))
          ? `"${text.replaceAll('"', '""')}"`
          : text;
      const lines = [names, ...rows].map((row) => row.map(quote).join(how.delimiter) + how.lineEnd);
      const { values, broken, certificate } = await readText(how.mark + lines.join(''), names);
      expect(broken).toEqual([]);
      expect(values.map((value) => names.map((name) => value[name]))).toEqual(rows);
      expect(certificate.complete).toBe(true);
    }),
    { numRuns: extent(60, 300) },
  );
});
