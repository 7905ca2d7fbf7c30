import { readlink, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Invalid } from '../../src/domain/errors.ts';
import { csvSource } from '../../src/sources/csv/csv-source.ts';
import {
  errorOf,
  readAll,
  readCsv,
  scratch,
  virtualClock,
  write,
} from '../support/sources/source-reading.ts';
import { playsAll } from '../support/extent.ts';

const folder = await scratch();
const path = join(folder, 'people.csv');
const MIB = 1024 * 1024;
const readText = (text: string | Buffer, fields: readonly string[] = ['id']) =>
  readCsv(path, text, fields);

const refusal = async (text: string | Buffer, fields?: readonly string[]) => {
  const error = await errorOf(readText(text, fields));
  expect(error).toBeInstanceOf(Invalid);
  expect(error.message).toContain(path);
  return error.message;
};

describe('columns', () => {
  test('missing ones are named, with the existing and the nearest ones', async () => {
    const message = await refusal('id,E-Mail,city\n1,a,b\n', ['id', 'email', 'newsletter']);
    expect(message).toContain('no columns "email", "newsletter"');
    expect(message).toContain('columns found: "id", "E-Mail", "city"');
    expect(message).toContain('did you mean "E-Mail" for "email"?');
    expect(message).not.toContain('for "newsletter"');
  });

  test('at most 30 of them are named', async () => {
    const names = Array.from({ length: 40 }, (_, at) => `column${at}`);
    const message = await refusal(`${names.join(',')}\n`, ['id']);
    expect(message).toContain('"column29" and 10 more');
    expect(message).not.toContain('column30');
  });

  test('a requested one must occur once', async () => {
    const message = await refusal('id,email, email\n1,a,b\n', ['email']);
    expect(message).toContain('2 columns are named "email" (columns 2, 3); rename or remove all');
    expect(message).toContain('or write "email (1)" or "email (2)" in the configuration');
  });

  test('others may occur twice; they and nameless ones are numbered, and are fields', async () => {
    const text = 'id,x,x,,y,x (1),\n1,a,b,c,d,e,f\n';
    const { values, certificate } = await readText(text, ['x (2)', 'unnamed (2)']);
    const numbered = { 'x (2)': 'a', 'x (3)': 'b', 'unnamed (1)': 'c', 'unnamed (2)': 'f' };
    expect(values).toEqual([{ id: '1', y: 'd', 'x (1)': 'e', ...numbered }]);
    expect(certificate.complete).toBe(true);
  });
});

describe('a file that is no CSV', () => {
  const read = (where: string) =>
    readAll(csvSource({ type: 'csv', path: where }, { clock: virtualClock(), random: () => 1 }), [
      'id',
    ]);

  test('nothing, a directory, a path through a file, a circle of links', async () => {
    await write(path, 'id\n');
    await symlink('circle.csv', join(folder, 'circle.csv'));
    expect(await readlink(join(folder, 'circle.csv'))).toBe('circle.csv');
    const cases: [string, string][] = [
      [join(folder, 'none.csv'), 'there is no such file; put it there'],
      [folder, 'this is a directory; name a file'],
      [join(path, 'people.csv'), 'a part of the path is no directory'],
      [join(folder, 'circle.csv'), 'links lead in a circle; mend the link'],
    ];
    for (const [where, message] of cases) {
      const error = await errorOf(read(where));
      expect(error).toBeInstanceOf(Invalid);
      expect(error.message).toContain(`${where}: `);
      expect(error.message).toContain(message);
    }
  });

  test.each([
    ['a byte order mark alone', '\uFEFF'],
    ['blank lines', '\n\r\n\n'],
  ])('no header: %s', async (_, text) => {
    expect(await refusal(text)).toContain('no header row');
  });

  test('no header: 0 bytes', async () => {
    expect(await refusal('')).toContain('the file is empty; export it again with column names');
  });

  test('UTF-16 without byte order mark', async () => {
    const text = 'id,email\n1,ann@example.com\n';
    const unmarked = Buffer.from(text, 'utf16le');
    expect(await refusal(unmarked)).toMatch(/the text is UTF-16 → set encoding: utf-16 /);
    expect(await refusal(Buffer.from(unmarked).swap16())).toContain('the text is UTF-16');
  });

  test('an Excel workbook', async () => {
    const archive = Buffer.from('PK\u0003\u0004 and more');
    expect(await refusal(archive)).toContain('this is an Excel workbook');
  });

  test('UTF-16 that ends within a character', async () => {
    const cut = Buffer.from('\uFEFFid,name\n1,Ann\n', 'utf16le').subarray(0, -1);
    expect(await refusal(cut)).toMatch(/not UTF-16 \(at or soon after line 2\) → set the encoding/);
  });

  test('other encodings', async () => {
    const latin = Buffer.from('id,name\n1,Andr\xe9,\n', 'latin1');
    expect(await refusal(latin)).toMatch(/not UTF-8 .*line 1\) → set encoding: windows-1252/);
    const late = Buffer.concat([Buffer.from(`id,name\n${'1,a\n'.repeat(50_000)}`), latin]);
    expect(await refusal(late)).toMatch(/line 4\d{4}\)/);
  });

  test('a character cut off at the end of the file', async () => {
    expect(await refusal(Buffer.from('id,name\n1,€').subarray(0, -1))).toContain('not UTF-8');
  });

  test('a quote in the header that is never closed', async () => {
    expect(await refusal('id,"name\n1,Ann\n')).toContain('header row opens a quote');
  });

  test('a header with a NUL byte', async () => {
    expect(await refusal('id,na\0me\n1,Ann\n')).toContain('header row holds a NUL byte');
  });
});

describe('broken records', () => {
  test('with another number of fields', async () => {
    const { records, certificate } = await readText('id,name\n1,Ann\n2\n3,Cy,x\n4,Di\n');
    expect(records).toEqual([
      { where: 'line 2', value: { id: '1', name: 'Ann' } },
      {
        where: 'line 3',
        broken: 'has 1 field where the header has 2',
        fix: expect.stringContaining('empty cells at the end, which Excel leaves out'),
      },
      {
        where: 'line 4',
        broken: 'has 3 fields where the header has 2',
        fix: expect.stringContaining('quotes'),
      },
      { where: 'line 5', value: { id: '4', name: 'Di' } },
    ]);
    expect(certificate).toMatchObject({
      complete: false,
      why: '2 rows cannot be read, the first at line 3',
      fix: expect.stringContaining('empty cells at the end, which Excel leaves out'),
    });
  });

  test('are placed by the physical line on which they start', async () => {
    const text =
      '\r\nid,note\r\n1,"a\r\nb\r\n\r\nc"\r\n\r\n2,x\r\n3,"\n\n"\r\n"4","\r\r"\r\n5,y\r\n';
    const { records } = await readText(text);
    expect(records.map(({ where }) => where)).toEqual([
      'line 3',
      'line 8',
      'line 9',
      'line 12',
      'line 15',
    ]);
  });

  test('with a NUL byte', async () => {
    const { values, broken, certificate } = await readText('id,x\n1,a\n2,"b\0"\n3,c\0\n4,d\n');
    expect(values.map((value) => value['id'])).toEqual(['1', '4']);
    expect(broken.map(({ where, broken: why }) => [where, why])).toEqual([
      ['line 3', 'holds a NUL byte'],
      ['line 4', 'holds a NUL byte'],
    ]);
    expect(certificate.complete).toBe(false);
  });

  test.runIf(playsAll)('with a field above 1 MiB, counted in bytes, end the reading', async () => {
    const fields = ['x'.repeat(MIB), 'x'.repeat(MIB + 1), 'é'.repeat(MIB / 2 + 1)];
    const huge = 'y\n'.repeat(5 * MIB);
    const text = `id,x\n1,${fields.join('\n2,')}\n3,"${huge}"\n4,z\n`;
    const { values, broken, certificate } = await readText(text);
    expect(values.map((value) => value['id'])).toEqual(['1', '4']);
    expect(broken.map(({ where }) => where)).toEqual(['line 3', 'line 4', 'line 5']);
    expect(broken.every(({ broken: why }) => why.includes('above 1 MiB'))).toBe(true);
    expect(certificate).toMatchObject({
      complete: false,
      why: '3 rows cannot be read, the first at line 3',
    });
  });

  const misplaced = 'holds a quote where none may stand';

  test.each([
    ['2,24" wide', '24" wide'],
    ['2,24"" wide', '24"" wide'],
    ['2,"24"" wide"', '24" wide'],
    ['2,a"', 'a"'],
    ['2, "x"', ' "x"'],
    ['2,"""x"" y"', '"x" y'],
    [`2,37°36'37.8"N`, `37°36'37.8"N`],
    ['2,"""\nx"', '"\nx'],
  ])('are none if a quote is text of its field: %s', async (row, x) => {
    for (const end of ['\n', '\r\n', '\r']) {
      const text = `id,x${end}1,a${end}${row}${end}3,"b""c"${end}`;
      for (const [before, delimiter] of [
        ['', ','],
        ['\uFEFF', ';'],
        ['', '\t'],
      ] as const) {
        const { values, certificate } = await readText(before + text.replaceAll(',', delimiter));
        const all = [
          ['1', 'a'],
          ['2', x],
          ['3', 'b"c'],
        ];
        expect(values).toEqual(all.map(([id, value]) => ({ id, x: value })));
        expect(certificate.complete).toBe(true);
      }
    }
  });

  test('are read as text in whatever chunk they lie', async () => {
    const rows = Array.from({ length: 20_000 }, (_, at) => `${at},"""q"" ${at}"\n${at}b,2" é\n`);
    const { values, broken } = await readText(`id,x\n${rows.join('')}`);
    expect([values.length, broken.length]).toEqual([40_000, 0]);
    expect(values.every(({ x }) => /^("q" \d+|2" é)$/.test(String(x)))).toBe(true);
  });

  test.each([
    ['after a closing quote', '2,"a"b'],
    ['after a closing quote and a space', '2,"x" y'],
    ['in a field that ends with one', '2,"24" wide"'],
    ['in the first field', '"2"b,a"c'],
  ])('cost themselves with text %s', async (_, row) => {
    const { records, certificate } = await readText(`id,x\n1,a\n${row}\n3,c\n`);
    expect(records).toEqual([
      { where: 'line 2', value: { id: '1', x: 'a' } },
      { where: 'line 3', broken: misplaced, fix: expect.stringContaining('double each quote') },
      { where: 'line 4', value: { id: '3', x: 'c' } },
    ]);
    const why = '1 row cannot be read, the first at line 3';
    expect(certificate).toMatchObject({ complete: false, why });
  });

  test('cost themselves with a delimiter between stray quotes', async () => {
    const { records } = await readText('id,x,y,z\na,"b"c,d\n1,2" a,b" c,d\n2,a" b,c" d\n');
    expect(records.map((record) => ('broken' in record ? record.broken : record.value))).toEqual([
      misplaced,
      { id: '1', x: '2" a', y: 'b" c', z: 'd' },
      'has 3 fields where the header has 4',
    ]);
  });

  test.each([
    ['never closed', 'id,x\n1,a\n2,"ab\n3,c\n', 'opens a quote that is never closed'],
    ['closed by the next', 'id,x\n1,a\n2,"ab\n3,"c"\n4,d\n', misplaced],
    ['with text after it on a later line', 'id,x\n1,a\n2,"a\nb" c\n4,d\n', misplaced],
  ])('with a quote %s end the reading', async (_, text, why) => {
    const { records, certificate } = await readText(text);
    expect(records).toEqual([
      { where: 'line 2', value: { id: '1', x: 'a' } },
      { where: 'line 3', broken: why, fix: expect.stringContaining('double each quote') },
    ]);
    expect(certificate).toMatchObject({ complete: false, why: `reading stopped: line 3 ${why}` });
  });

  describe('that leave the following borders in doubt', () => {
    const rows = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, at) => `${from + at},p${from + at}@example.com,\n`);
    const text = (...parts: string[]) => `id,email,note\n1,p1@example.com,\n${parts.join('')}`;
    const found = async (whole: string) => {
      const { records, certificate } = await readText(whole, ['id', 'email']);
      expect(certificate.complete).toBe(false);
      return records.map((one) => ('value' in one ? `${one.where} ${one.value['id']}` : one.where));
    };

    test.each<[string, string[], string[]]>([
      [
        'all after a quote that nothing closes',
        ['2,p2@example.com,"a\n', ...rows(3, 6)],
        ['line 2 1', 'line 3', 'line 4 3', 'line 5 4', 'line 6 5'],
      ],
      [
        'those behind the next quote only, as a row before it may be pasted text',
        ['2,p2@example.com,"a\n', ...rows(3, 5), '5,p5@example.com,"b"\n', ...rows(6, 8)],
        ['line 2 1', 'line 3', 'line 7 6', 'line 8 7'],
      ],
      [
        'none within a note of several lines that follows',
        ['2,p2@x.y,"a\n', '3,p3@x.y,"pasted:\n', ...rows(4, 6), '"\n', ...rows(6, 7)],
        ['line 2 1', 'line 3', 'line 8 6'],
      ],
      [
        'none within the faulty note',
        ['2,p2@example.com,"pasted:\n', ...rows(3, 5), 'end" more\n', ...rows(5, 6)],
        ['line 2 1', 'line 3', 'line 7 5'],
      ],
      [
        'none of another width, without an address, or with a quote',
        ['2,p2@example.com,"a\n', '3,x\n4,p4,\n5,p5@example.com,2" x\n', ...rows(6, 7)],
        ['line 2 1', 'line 3', 'line 7 6'],
      ],
      [
        'those after each of two faults',
        ['2,a@b.c,"a\nb" c\n', ...rows(3, 4), '4,a@b.c,"d\ne" f\n', ...rows(5, 6)],
        ['line 2 1', 'line 3', 'line 5 3', 'line 8 5'],
      ],
    ])('find %s', async (_, parts, expected) => {
      expect(await found(text(...parts))).toEqual(expected);
      expect(await found(text(...parts).replaceAll('\n', '\r\n'))).toEqual(expected);
      expect(await found(text('\n', ...parts).replaceAll(',', ';'))).toHaveLength(expected.length);
    });

    test('find the rows of a long file, over the borders of chunks', async () => {
      const lines = await found(text('2,p2@example.com,"a\n', ...rows(3, 50_003)));
      expect(lines).toHaveLength(50_002);
      expect(lines.at(-1)).toBe('line 50003 50002');
      const later = await found(text('2,a@b.c,"a\nb" c\n', ...rows(3, 50_003)));
      expect(later.at(-1)).toBe('line 50004 50002');
    });
  });

  test('with text after a closing quote in the header refuse the file', async () => {
    expect(await refusal('id,"na"me\n1,Ann\n')).toContain(`header row ${misplaced}`);
  });

  test.runIf(playsAll)(
    'with a quote that spans more than 32 MiB end the reading there',
    async () => {
      const text = `id,x\n1,a\n2,"b\n${'3,c\n'.repeat(9 * MIB)}4,"d"\n`;
      const { records, certificate } = await readText(text);
      expect(records).toHaveLength(2);
      expect(records[1]).toMatchObject({
        where: 'line 3',
        broken: expect.stringContaining('more than 32 MiB'),
      });
      expect(certificate).toMatchObject({
        complete: false,
        why: expect.stringContaining('line 3'),
      });
    },
  );
});
