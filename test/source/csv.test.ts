import { appendFile, readdir, readlink, rename, symlink, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Invalid, Unavailable } from '../../src/model/errors.ts';
import { csvSource } from '../../src/source/csv/csv.ts';
import { csvOptions } from '../../src/source/csv/options.ts';
import { errorOf, readAll, scratch, virtualClock, write, WRITTEN } from './reading.ts';

const folder = await scratch();
const path = join(folder, 'people.csv');
const MIB = 1024 * 1024;

async function readText(text: string | Buffer, fields: readonly string[] = ['id']) {
  await write(path, text);
  return readAll(csvSource({ type: 'csv', path }, { clock: virtualClock() }), fields);
}

const refusal = async (text: string | Buffer, fields?: readonly string[]) => {
  const error = await errorOf(readText(text, fields));
  expect(error).toBeInstanceOf(Invalid);
  expect(error.message).toContain(path);
  return error.message;
};

test('the options are strict', () => {
  expect(csvOptions.parse({ type: 'csv', path: '/a.csv' })).toEqual({
    type: 'csv',
    path: '/a.csv',
  });
  expect(csvOptions.safeParse({ type: 'csv', path: '/a.csv', delimiter: ';' }).success).toBe(false);
  expect(csvOptions.safeParse({ type: 'csv', path: '' }).success).toBe(false);
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

  test('quoted delimiters, line breaks and doubled quotes belong to the field', async () => {
    const { values } = await readText('id;"Last, First";note\n1;"Doe; J";"a ""b""\r\nc"\n');
    expect(values).toEqual([{ id: '1', 'Last, First': 'Doe; J', note: 'a "b"\r\nc' }]);
  });

  test('the delimiter is the one under which the requested fields appear', async () => {
    const text = 'id;Name, first, middle, last;email\n1;a, b, c, d;x@y.z\n';
    expect((await readText(text, ['id', 'email'])).values).toEqual([
      { id: '1', 'Name, first, middle, last': 'a, b, c, d', email: 'x@y.z' },
    ]);
  });

  test('values are passed on as found', async () => {
    const { values } = await readText('id,a,b\n 01 ,TRUE,\n');
    expect(values).toEqual([{ id: ' 01 ', a: 'TRUE', b: '' }]);
  });

  test('a column called __proto__ is a column', async () => {
    const { values } = await readText('id,__proto__\n1,x\n', ['id', '__proto__']);
    expect(Object.entries(values[0] ?? {})).toEqual([
      ['id', '1'],
      ['__proto__', 'x'],
    ]);
  });

  test('characters across chunk borders', async () => {
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

  test('batches hold 500 records', async () => {
    const { batches } = await readText(`id\n${'7\n'.repeat(1_201)}`);
    expect(batches.map((batch) => batch.length)).toEqual([500, 500, 201]);
  });

  test('batches of large rows are bounded by bytes', async () => {
    const { batches } = await readText(`id,x\n${`1,${'x'.repeat(900_000)}\n`.repeat(20)}`);
    expect(Math.max(...batches.map((batch) => batch.length))).toBeLessThanOrEqual(6);
    expect(batches.flat()).toHaveLength(20);
  });
});

/** Everything that any of the delimiters, line ends and quotings has to protect. */
const tricky = fc.oneof(
  fc.string({ unit: fc.constantFrom('a', '"', ',', ';', '\t', '|', '\n', '\r', ' ', 'é', '😀') }),
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
    { numRuns: 300 },
  );
});

describe('columns', () => {
  test('missing ones are named, with those that are there and the nearest', async () => {
    const message = await refusal('id,E-Mail,city\n1,a,b\n', ['id', 'email', 'newsletter']);
    expect(message).toContain('no columns "email", "newsletter"');
    expect(message).toContain('columns found: "id", "E-Mail", "city"');
    expect(message).toContain('did you mean "E-Mail" for "email"?');
    expect(message).not.toContain('for "newsletter"');
  });

  test('at most 30 of them', async () => {
    const names = Array.from({ length: 40 }, (_, at) => `column${at}`);
    const message = await refusal(`${names.join(',')}\n`, ['id']);
    expect(message).toContain('"column29" and 10 more');
    expect(message).not.toContain('column30');
  });

  test('one that is asked for must not occur twice', async () => {
    const message = await refusal('id,email, email\n1,a,b\n', ['email']);
    expect(message).toContain('2 columns are named "email" (columns 2, 3)');
  });

  test('others may; they and nameless ones are left out', async () => {
    const { values, certificate } = await readText('id,x,x,,y\n1,a,b,c,d\n');
    expect(values).toEqual([{ id: '1', y: 'd' }]);
    expect(certificate.complete).toBe(true);
  });
});

describe('what is no CSV file', () => {
  const read = (where: string) =>
    readAll(csvSource({ type: 'csv', path: where }, { clock: virtualClock() }), ['id']);

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
    ['0 bytes', ''],
    ['a byte order mark alone', '\uFEFF'],
    ['blank lines', '\n\r\n\n'],
  ])('no header: %s', async (_, text) => {
    expect(await refusal(text)).toContain('no header row');
  });

  test('UTF-16, with and without byte order mark', async () => {
    const text = 'id,email\n1,ann@example.com\n';
    expect(await refusal(Buffer.from(`\uFEFF${text}`, 'utf16le'))).toContain(
      'save the file as UTF-8',
    );
    expect(await refusal(Buffer.from(text, 'utf16le'))).toContain('UTF-16');
    expect(await refusal(Buffer.from(text, 'utf16le').swap16())).toContain('UTF-16');
  });

  test('other encodings', async () => {
    const latin = Buffer.from('id,name\n1,Andr\xe9,\n', 'latin1');
    expect(await refusal(latin)).toMatch(/not UTF-8 .*line 1\); save the file as UTF-8/);
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
  test('ragged rows', async () => {
    const { records, certificate } = await readText('id,name\n1,Ann\n2\n3,Cy,x\n4,Di\n');
    expect(records).toEqual([
      { where: 'line 2', value: { id: '1', name: 'Ann' } },
      {
        where: 'line 3',
        broken: 'has 1 field where the header has 2',
        fix: expect.stringContaining('quotes'),
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
    });
  });

  test('where is the physical line on which a record starts', async () => {
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

  test('a NUL byte', async () => {
    const { values, broken, certificate } = await readText('id,x\n1,a\n2,"b\0"\n3,c\0\n4,d\n');
    expect(values.map((value) => value['id'])).toEqual(['1', '4']);
    expect(broken.map(({ where, broken: why }) => [where, why])).toEqual([
      ['line 3', 'holds a NUL byte'],
      ['line 4', 'holds a NUL byte'],
    ]);
    expect(certificate.complete).toBe(false);
  });

  test('a field above 1 MiB, counted in bytes, and nothing after it', async () => {
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

  test.each([
    ['within a field', 'id,x\n1,a\n2,a"b\n3,c\n', 'holds a quote where none may stand'],
    ['after a closing quote', 'id,x\n1,a\n2,"a"b\n3,c\n', 'holds a quote where none may stand'],
    ['never closed', 'id,x\n1,a\n2,"ab\n3,c\n', 'opens a quote that is never closed'],
    ['closed by the next', 'id,x\n1,a\n2,"ab\n3,"c"\n', 'holds a quote where none may stand'],
  ])('a quote %s ends the reading', async (_, text, why) => {
    const { records, certificate } = await readText(text);
    expect(records).toEqual([
      { where: 'line 2', value: { id: '1', x: 'a' } },
      { where: 'line 3', broken: why, fix: expect.stringContaining('double each quote') },
    ]);
    expect(certificate).toMatchObject({ complete: false, why: `reading stopped: line 3 ${why}` });
  });

  test('a quote that swallows more than 32 MiB ends the reading there', async () => {
    const text = `id,x\n1,a\n2,"b\n${'3,c\n'.repeat(9 * MIB)}4,"d"\n`;
    const { records, certificate } = await readText(text);
    expect(records).toHaveLength(2);
    expect(records[1]).toMatchObject({
      where: 'line 3',
      broken: expect.stringContaining('more than 32 MiB'),
    });
    expect(certificate).toMatchObject({ complete: false, why: expect.stringContaining('line 3') });
  });
});

describe('the certificate', () => {
  test('a header alone is complete, and empty', async () => {
    const { records, certificate } = await readText('id,name\n');
    expect(records).toEqual([]);
    expect(certificate).toEqual({ complete: true, reading: `8-${WRITTEN}` });
  });

  test('the reading is named after size and time', async () => {
    const names = [];
    for (const [text, mtimeMs] of [
      ['id\n1\n', WRITTEN],
      ['id\n2\n', WRITTEN],
      ['id\n11\n', WRITTEN],
      ['id\n1\n', WRITTEN + 1],
    ] as const) {
      await write(path, text, mtimeMs);
      const source = csvSource({ type: 'csv', path }, { clock: virtualClock() });
      names.push((await readAll(source, ['id'])).certificate.reading);
    }
    expect(names[1]).toBe(names[0]);
    expect(new Set(names)).toHaveLength(3);
  });

  test.each([
    ['in mid-row', 'id,a,b\n1,x,y\n2,x', 2],
    ['in mid-field, at full width', 'id,a,b\n1,x,y\n2,x,', 1],
    ['after a quoted field', 'id,a\n1,"x"', 1],
    ['in the header', 'id,a', 1],
  ])('a file that ends %s is not complete', async (_, text, faults) => {
    const { certificate } = await readText(text);
    if (certificate.complete) throw new Error('certified');
    expect(certificate.why.split('; ')).toHaveLength(faults);
    expect(certificate.why).toContain('the last line has no line break');
    expect(certificate.fix).toContain('end the file with a line break');
  });

  const manyRows = `id,x\n${'1,abcdefghi\n'.repeat(20_000)}`;
  const readWith = async (meanwhile: () => Promise<void>) => {
    await write(path, manyRows);
    const source = csvSource({ type: 'csv', path }, { clock: virtualClock() });
    const reading = source.read({ fields: ['id'], signal: new AbortController().signal });
    await reading.next();
    await meanwhile();
    let step = await reading.next();
    while (!step.done) step = await reading.next();
    return step.value;
  };

  test('is given when nothing happens meanwhile', async () => {
    expect((await readWith(async () => {})).complete).toBe(true);
  });

  test.each([
    ['grows', () => appendFile(path, '2,late\n')],
    ['is touched', () => write(path, manyRows, WRITTEN + 5)],
    ['is removed', () => unlink(path)],
    ['is cut', () => write(path, manyRows.slice(0, 120_005))],
    [
      'is replaced by its equal',
      async () => {
        await write(`${path}.new`, manyRows);
        await rename(`${path}.new`, path);
      },
    ],
  ])('is not given when the file %s', async (_, meanwhile) => {
    expect(await readWith(meanwhile)).toMatchObject({
      complete: false,
      why: expect.stringContaining('the file changed while it was read'),
      fix: expect.stringContaining('read it again'),
    });
  });
});

describe('a young file', () => {
  const young = (clock: ReturnType<typeof virtualClock>) =>
    readAll(csvSource({ type: 'csv', path }, { clock }), ['id']);

  test('is waited for until it is two seconds old', async () => {
    await write(path, 'id\n1\n');
    const clock = virtualClock(WRITTEN + 500);
    const { certificate } = await young(clock);
    expect(clock.slept).toEqual([1_500]);
    expect(certificate.complete).toBe(true);
  });

  test('is read only when its writer is done', async () => {
    await write(path, 'id\n1\n');
    let writes = 3;
    const clock = virtualClock(WRITTEN, async () => {
      if (writes-- > 0) await write(path, `id\n${'1\n'.repeat(6 - writes)}`, clock.now());
    });
    const { values, certificate } = await young(clock);
    expect(values).toHaveLength(6);
    expect(clock.slept).toEqual([2_000, 2_000, 2_000, 2_000]);
    expect(certificate.complete).toBe(true);
  });

  test('that grows without its time moving on is not settled', async () => {
    await write(path, 'id\n1\n');
    let writes = 2;
    const clock = virtualClock(WRITTEN + 500, async () => {
      if (writes-- > 0) await write(path, `id\n${'1\n'.repeat(5 - writes)}`);
    });
    expect((await young(clock)).values).toHaveLength(5);
    expect(clock.slept).toEqual([1_500, 2_000, 2_000]);
  });

  test('is given up after a minute', async () => {
    await write(path, 'id\n1\n');
    const clock = virtualClock(WRITTEN, () => write(path, 'id\n1\n', clock.now()));
    const error = await errorOf(young(clock));
    expect(error).toBeInstanceOf(Unavailable);
    expect(error).toMatchObject({ acted: 'no' });
    expect(error.message).toContain(`${path}: the file is still being written`);
    expect(clock.now() - WRITTEN).toBe(60_000);
  });

  test('from the future is settled when two looks are equal', async () => {
    await write(path, 'id\n1\n', WRITTEN + 86_400_000);
    const clock = virtualClock(WRITTEN);
    expect((await young(clock)).certificate.complete).toBe(true);
    expect(clock.slept).toEqual([2_000]);
  });

  test('a stop ends the waiting', async () => {
    await write(path, 'id\n1\n');
    const stop = new AbortController();
    const reason = new Error('stop');
    const clock = virtualClock(WRITTEN, () => stop.abort(reason));
    const source = csvSource({ type: 'csv', path }, { clock });
    await expect(readAll(source, ['id'], stop.signal)).rejects.toBe(reason);
  });
});

describe('leaving early', () => {
  /** Whether this process holds the file open. */
  const isOpen = async () => {
    const descriptors = await readdir('/proc/self/fd');
    const links = descriptors.map((name) => readlink(`/proc/self/fd/${name}`).catch(() => ''));
    return (await Promise.all(links)).includes(path);
  };

  const begin = async (signal: AbortSignal) => {
    await write(path, `id\n${'1\n'.repeat(200_000)}`);
    const source = csvSource({ type: 'csv', path }, { clock: virtualClock() });
    const reading = source.read({ fields: ['id'], signal });
    expect((await reading.next()).done).toBe(false);
    return reading;
  };

  test.skipIf(process.platform !== 'linux')('return() closes the file', async () => {
    const reading = await begin(new AbortController().signal);
    expect(await isOpen()).toBe(true);
    await reading.return({ complete: true, reading: '' });
    expect(await isOpen()).toBe(false);
  });

  test('a stop is heard at the next chunk and closes the file', async () => {
    const stop = new AbortController();
    const reading = await begin(stop.signal);
    const reason = new Error('stop');
    stop.abort(reason);
    const drain = async () => {
      let batches = 0;
      while (!(await reading.next()).done) batches += 1;
      return batches;
    };
    await expect(drain()).rejects.toBe(reason);
    if (process.platform === 'linux') expect(await isOpen()).toBe(false);
  });

  test('a stop before the beginning', async () => {
    await write(path, 'id\n1\n');
    const source = csvSource({ type: 'csv', path }, { clock: virtualClock() });
    const reason = new Error('stop');
    await expect(readAll(source, ['id'], AbortSignal.abort(reason))).rejects.toBe(reason);
  });
});
