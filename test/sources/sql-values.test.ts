/** How the types of each database come out in a record. */
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { truthyIn, errorOf, readAll } from '../support/sources/source-reading.ts';
import { type Given, sourceOn, type Stand, stands, tableOn } from '../support/databases.ts';

const all = await stands();
const only = (name: Stand['name']) => all.filter(([found]) => found === name);

/** What comes out of a column of this type, in a row each. */
async function shown(stand: Stand, type: string, values: readonly string[], given: Given = {}) {
  const rows = values.map((value, at) => `${at + 1}, ${value}`);
  const table = await tableOn(stand, `id integer primary key, v ${type}`, rows);
  const { values: found, certificate } = await readAll(sourceOn(stand, { table, ...given }), ['v']);
  expect(certificate.complete).toBe(true);
  return found.map(({ v }) => v);
}

describe.each(all)('%s', (_, stand) => {
  test('numbers are exact, and as short as possible', async () => {
    expect(await shown(stand, 'bigint', ['9007199254740993', '-1', '0', 'null'])).toEqual([
      '9007199254740993',
      '-1',
      '0',
      null,
    ]);
    expect(await shown(stand, 'double precision', ['1.5', '0', '-2'])).toEqual(['1.5', '0', '-2']);
    if (stand.name === 'SQLite') return;
    const digits = '12345678901234567890.1200';
    expect(await shown(stand, 'numeric(30, 4)', [digits, '0', '1.0000', '-7'])).toEqual([
      '12345678901234567890.12',
      '0',
      '1',
      '-7',
    ]);
  });

  test('texts stay as they are', async () => {
    expect(
      await shown(stand, stand.text, ["'ä 日本 😀'", "''", "' x '", "'1.50'", 'null']),
    ).toEqual(['ä 日本 😀', '', ' x ', '1.50', null]);
  });

  test('a flag in any form means the same', async () => {
    const boolean = {
      PostgreSQL: ['true', 'false'],
      MariaDB: ['true', 'false'],
      SQLite: ['1', '0'],
    };
    expect((await shown(stand, 'boolean', [...boolean[stand.name], 'null'])).map(truthyIn)).toEqual(
      [true, false, false],
    );
    const gone = await shown(stand, stand.moment, [stand.ago(9), 'null']);
    expect(gone.map(truthyIn)).toEqual([true, false]);
    expect(gone[0]).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$/);
    const number = await shown(stand, 'numeric(5, 2)', ['0', '1', 'null']);
    expect(number.map(truthyIn)).toEqual([false, true, false]);
  });

  test('a part of a JSON column is read by its path', async () => {
    const rows = [`1, '{"a":{"b":"yes"}}'`, `2, '{"n":90071992547409931}'`, '3, null'];
    const table = await tableOn(stand, 'id integer primary key, j json', rows);
    const { values } = await readAll(sourceOn(stand, { table }), ['j.a.b', 'j.n']);
    expect(values).toEqual([
      { id: '1', j: { a: { b: 'yes' } }, 'j.n': null },
      { id: '2', j: { n: '90071992547409931' }, 'j.a.b': null },
      { id: '3', j: null, 'j.a.b': null, 'j.n': null },
    ]);
  });

  test('each element of a JSON column is read by its path', async () => {
    const table = await tableOn(stand, 'id integer primary key, j json', [`1, '[{"s":"no"}]'`]);
    const { values } = await readAll(sourceOn(stand, { table }), ['j[].s']);
    expect(values).toEqual([{ id: '1', j: [{ s: 'no' }] }]);
  });

  test('only requested columns are read', async () => {
    const table = await tableOn(stand, `id integer, mail ${stand.text}, secret ${stand.text}`, [
      "1, 'a', 'b'",
    ]);
    const { values } = await readAll(sourceOn(stand, { table }), ['mail']);
    expect(values).toEqual([{ id: '1', mail: 'a' }]);
  });
});

describe.each(only('PostgreSQL'))('%s', (_, stand) => {
  test.each<[type: string, value: string, expected: unknown]>([
    ['timestamptz', "'2026-03-01 12:00:00.123456+02'", '2026-03-01T10:00:00.123456Z'],
    ['timestamptz', "'infinity'", null],
    ['timestamptz', "'-infinity'", '-infinity'],
    ['timestamp', "'2026-03-01 12:00:00'", '2026-03-01T12:00:00'],
    ['date', "'2026-03-01'", '2026-03-01'],
    ['date', "'infinity'", null],
    ['uuid', "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'],
    ['bytea', String.raw`'\x00ff'`, '00ff'],
    ['real', '0.1', '0.1'],
    ['text[]', `'{a,"b, c",null}'`, ['a', 'b, c', null]],
    ['varchar(9)[]', "'{}'", []],
    [
      'integer[]',
      "'{{1,2},{3,4}}'",
      [
        ['1', '2'],
        ['3', '4'],
      ],
    ],
    ['uuid[]', 'null', null],
    ['char(5)', "'ab'", 'ab   '],
  ])('%s', async (type, value, expected) => {
    expect(await shown(stand, type, [value])).toEqual([expected]);
  });

  test('a configured zone is added to times without one', async () => {
    const zoned = { zone: '+01:00' };
    expect(await shown(stand, 'timestamp', ["'2026-03-01 12:00:00'"], zoned)).toEqual([
      '2026-03-01T12:00:00+01:00',
    ]);
  });

  test('any type with an order can be a key', async () => {
    for (const type of ['uuid', 'bytea', 'timestamptz', 'numeric']) {
      const value = {
        uuid: 'gen_random_uuid()',
        numeric: 'n / 3.0',
        timestamptz: "now() + n * interval '1 us'",
      };
      const made = type === 'bytea' ? 'int4send(n)' : value[type as keyof typeof value];
      const query = `select ${made} as id from generate_series(1, 20) n`;
      const kept = await tableOn(stand, `id ${type}`);
      await stand.run(`insert into ${kept} ${query}`);
      const source = sourceOn(stand, { table: kept, pageSize: 3 });
      const { values, certificate } = await readAll(source, ['id']);
      expect(new Set(values.map(({ id }) => id))).toHaveLength(20);
      expect(certificate.complete).toBe(true);
      const first = type === 'timestamptz' ? undefined : String(values[0]?.['id']);
      if (first === undefined) continue;
      const one = await source.one(first, { fields: ['id'], signal: new AbortController().signal });
      expect(one).toMatchObject({ value: { id: first } });
    }
  });
});

describe.each(only('PostgreSQL'))('%s without an encoding', (_, stand) => {
  const at = new URL(stand.url);
  at.pathname += '_ascii';
  const url = at.href;
  const name = at.pathname.slice(1);
  const bad = String.raw`convert_from('\x6ae9'::bytea, 'SQL_ASCII')`;

  beforeAll(async () => {
    await stand.run(`create database ${name} template template0 encoding 'SQL_ASCII' locale 'C'`);
    const client = new Client({ connectionString: url });
    await client.connect();
    await client.query(`create table people (id text primary key, n integer, v text);
      insert into people values ('ä', 1, 'ö'), ('b', 2, ${bad}), (${bad}, 3, 'no')`);
    await client.end();
  });
  afterAll(async () => stand.run(`drop database ${name} with (force)`));

  test('a byte that is not UTF-8 costs its row alone', async () => {
    const source = sourceOn({ url }, { table: 'people', key: 'n', pageSize: 1 });
    const { values, certificate } = await readAll(source, ['v']);
    expect(certificate.complete).toBe(true);
    expect(values).toEqual([
      { id: 'ä', n: '1', v: 'ö' },
      { id: 'b', n: '2', v: 'j\uFFFD' },
      { id: 'j\uFFFD', n: '3', v: 'no' },
    ]);
    const { signal } = new AbortController();
    expect(await source.one('ä', { fields: ['v'], signal })).toMatchObject({ value: { v: 'ö' } });
  });

  test('a reading ends behind a key that is not UTF-8, and names it', async () => {
    const source = sourceOn({ url }, { query: 'select * from people where n > 1', pageSize: 1 });
    const { certificate } = await readAll(source, ['v']);
    expect(certificate).toMatchObject({
      complete: false,
      why: expect.stringMatching(/^reading stopped after row 2: .*the key of a row is not UTF-8$/),
      fix: 'name as key a column of numbers or plain letters',
    });
  });

  test('a query converts what is in another encoding', async () => {
    const utf8 = "convert(convert_to(v, 'SQL_ASCII'), 'LATIN1', 'UTF8')";
    const query = `select n as id, convert_from(${utf8}, 'UTF8') as v from people where n = 2`;
    const { values } = await readAll(sourceOn({ url }, { query }), ['v']);
    expect(values).toEqual([{ id: '2', v: 'jé' }]);
  });

  test('a query that fails on such a text is told so', async () => {
    const query = `select id, convert_from(v::bytea, 'UTF8') as v from people`;
    const error = await errorOf(readAll(sourceOn({ url }, { query, key: 'id' }), ['v']));
    expect(error.message).toMatch(
      /holds text that cannot be converted to UTF-8 \(22021\) → correct/,
    );
  });
});

describe.each(only('MariaDB'))('%s', (_, stand) => {
  test.each<[type: string, value: string, expected: unknown]>([
    ['datetime(6)', "'2026-03-01 12:00:00.123456'", '2026-03-01T12:00:00.123456'],
    ['datetime', "'0000-00-00 00:00:00'", null],
    ['date', "'0000-00-00'", null],
    ['date', "'2026-03-01'", '2026-03-01'],
    ['bit(1)', "b'0'", '0'],
    ['bit(1)', "b'1'", '1'],
    ['bit(40)', '1099511627775', '1099511627775'],
    ['tinyint(1)', '1', '1'],
    ['bigint unsigned', '18446744073709551615', '18446744073709551615'],
    ['binary(2)', "x'00ff'", '00ff'],
    ["enum('a', 'b')", "'b'", 'b'],
    ['year', '2026', '2026'],
    ['varchar(9) character set latin1', "'ä'", 'ä'],
    ['longtext', "'x'", 'x'],
  ])('%s', async (type, value, expected) => {
    expect(await shown(stand, type, [value])).toEqual([expected]);
  });

  test('a timestamp is in UTC, whatever zone the server has', async () => {
    const value = 'from_unixtime(1772366400)';
    await stand.run("set global time_zone = '+09:00'");
    const found = await shown(stand, 'timestamp null', [value]);
    await stand.run('set global time_zone = system');
    expect(found).toEqual(['2026-03-01T12:00:00Z']);
  });

  test('any type with an order can be a key', async () => {
    const made = {
      'binary(16)': 'unhex(md5(seq))',
      'decimal(20, 5)': 'seq / 3',
      'bigint unsigned': '18446744073709551600 - seq',
      'datetime(6)': "'2026-01-01' + interval seq microsecond",
      'varchar(9) character set latin1': "concat('ä', seq)",
    };
    for (const [type, value] of Object.entries(made)) {
      const table = await tableOn(stand, `id ${type}`);
      await stand.run(`insert into ${table} select ${value} from seq_1_to_20`);
      const source = sourceOn(stand, { table, pageSize: 3 });
      const { values, certificate } = await readAll(source, ['id']);
      expect(new Set(values.map(({ id }) => id))).toHaveLength(20);
      expect(certificate.complete).toBe(true);
      if (type === 'datetime(6)') continue;
      const first = String(values[0]?.['id']);
      const one = await source.one(first, { fields: ['id'], signal: new AbortController().signal });
      expect(one).toMatchObject({ value: { id: first } });
    }
  });
});

describe.each(only('SQLite'))('%s', (_, stand) => {
  test.each<[type: string, value: string, expected: unknown]>([
    ['datetime', "'2026-03-01 12:00:00'", '2026-03-01T12:00:00Z'],
    ['timestamp', "'2026-03-01T12:00:00Z'", '2026-03-01T12:00:00Z'],
    ['datetime', '1772366400', '1772366400'],
    ['text', "'2026-03-01 12:00:00'", '2026-03-01 12:00:00'],
    ['blob', "x'00ff'", '00ff'],
    ['', '1.0', '1'],
    ['', "'1.0'", '1.0'],
  ])('%s', async (type, value, expected) => {
    expect(await shown(stand, type, [value])).toEqual([expected]);
  });

  test('keys of several types are all read, and found', async () => {
    const table = await tableOn(stand, 'id', ['1', '2.5', "'1'", "'x'", "x'00ff'", '3']);
    const source = sourceOn(stand, { table, pageSize: 1 });
    const { values } = await readAll(source, ['id']);
    expect(values.map(({ id }) => id)).toEqual(['1', '2.5', '3', '1', 'x', '00ff']);
    const { signal } = new AbortController();
    const found = ['3', 'x', '00ff', '1', '4'].map(async (id) =>
      source.one(id, { fields: ['id'], signal }),
    );
    expect((await Promise.all(found)).map((one) => one && 'value' in one)).toEqual([
      true,
      true,
      true,
      false,
      undefined,
    ]);
  });

  test('a key that is not UTF-8 leads to no next page', async () => {
    const rows = ["'i'", "cast(x'6ae9' as text)", "cast(x'6aea' as text)"];
    const table = await tableOn(stand, 'id text primary key', rows);
    const { certificate } = await readAll(sourceOn(stand, { table, pageSize: 1 }));
    expect(certificate).toMatchObject({
      complete: false,
      why: expect.stringContaining('the key of a row is not UTF-8'),
    });
  });

  test('a text with a NUL character is broken', async () => {
    const table = await tableOn(stand, 'id integer primary key, v', [
      "1, 'a' || char(0)",
      "2, 'b'",
    ]);
    const { broken, certificate } = await readAll(sourceOn(stand, { table }), ['v']);
    expect(broken).toMatchObject([{ where: 'row 1', broken: 'holds a NUL character' }]);
    expect(certificate).toMatchObject({ complete: false });
  });
});
