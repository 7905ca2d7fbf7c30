/** What is read of a database, on each that is had: pages, certificates, changes, single rows. */
import { describe, expect, test } from 'vitest';
import { allOf, errorOf, readAll } from '../support/sources/source-reading.ts';
import { type Given, sourceOn, type Stand, stands, tableOn } from '../support/databases.ts';

const signal = new AbortController().signal;

async function read(stand: Stand, given: Given, fields = ['id'], id = 'id') {
  const { values, certificate, ...rest } = await readAll(sourceOn(stand, given, id), fields);
  return { ids: values.map((value) => value[id]), values, certificate, ...rest };
}

const numbers = (count: number) => Array.from({ length: count }, (_, at) => String(at + 1));

describe.each(await stands())('%s', (_, stand) => {
  describe('a reading', () => {
    test('returns every row once, in pages of limited size', async () => {
      const table = await tableOn(stand, 'id integer primary key', numbers(23));
      const { ids, batches, certificate } = await read(stand, { table, pageSize: 5 });
      expect(ids).toEqual(numbers(23));
      expect(Math.max(...batches.map(({ length }) => length))).toBeLessThanOrEqual(6);
      expect(certificate).toMatchObject({ complete: true });
    });

    test('may be empty, and is complete', async () => {
      const table = await tableOn(stand, 'id integer primary key');
      const { ids, certificate } = await read(stand, { table });
      expect(ids).toEqual([]);
      expect(certificate.complete).toBe(true);
    });

    test('can be of a query, whatever ends it', async () => {
      const table = await tableOn(stand, `id integer, mail ${stand.text}`, [
        "1, 'a@x.y'",
        "2, 'b@x.y'",
      ]);
      const query = `select id, mail as email from ${table} where id > 1; -- those`;
      const { values, certificate } = await read(stand, { query: query.replace(';', '') });
      expect(values).toEqual([{ id: '2' }]);
      expect(certificate.complete).toBe(true);
      expect((await read(stand, { query: `select id from ${table} ;\n` })).ids).toEqual(['1', '2']);
    });

    test('sees one state, whatever is written meanwhile', async () => {
      const table = await tableOn(stand, 'id integer primary key', numbers(9));
      const reading = sourceOn(stand, { table, pageSize: 2 }).read({ fields: ['id'], signal });
      const first = await reading.next();
      await stand.run(`delete from ${table} where id = 8; insert into ${table} values (10)`);
      const { records, certificate } = await allOf(reading);
      expect((first.value as unknown[]).length + records.length).toBe(9);
      expect(certificate).toMatchObject({ complete: true });
    });

    test('keeps the digits of large ids', async () => {
      const large = [
        '9007199254740991',
        '9007199254740992',
        '9007199254740993',
        '9007199254740994',
      ];
      const table = await tableOn(stand, 'id bigint primary key', large);
      const { ids, certificate } = await read(stand, { table, pageSize: 1 });
      expect(ids).toEqual(large);
      expect(certificate.complete).toBe(true);
    });

    test('can use any unique column as key', async () => {
      const table = await tableOn(stand, `id ${stand.text}, n integer primary key`, [
        "'x', 1",
        "'a', 2",
      ]);
      expect((await read(stand, { table, key: 'n', pageSize: 1 })).ids).toEqual(['x', 'a']);
    });

    test('misses no keys that differ only in case', async () => {
      const rows = ['a', 'A', 'b', 'B', 'c', 'd', 'D'].map((id) => `'${id}'`);
      const table = await tableOn(stand, `id ${stand.anyCase}`, rows);
      for (const pageSize of [2, 3, 4]) {
        const { ids, certificate } = await read(stand, { table, pageSize });
        expect(ids.map(String).toSorted((a, b) => (a < b ? -1 : 1))).toEqual([
          'A',
          'B',
          'D',
          'a',
          'b',
          'c',
          'd',
        ]);
        expect(certificate.complete).toBe(true);
      }
    });

    test('reports a missing column with the existing ones', async () => {
      const table = await tableOn(stand, `id integer, mail ${stand.text}`);
      const error = await errorOf(read(stand, { table }, ['id', 'email', 'mail.x']));
      expect(error.name).toBe('Invalid');
      expect(error.message).toMatch(
        /: there are no columns "email", "mail\.x"; columns found: "id", "mail"; did you mean "mail" for "email"\?; .+; correct the/,
      );
    });

    test('quotes every name', async () => {
      const table = await tableOn(stand, 'id integer');
      const odd = `${table}"; drop table ${table}; --`;
      expect((await errorOf(read(stand, { table: odd }))).message).toMatch(/has no table/);
      expect((await read(stand, { table })).certificate.complete).toBe(true);
      const query = `select id from ${table}) x; drop table ${table}; select 1 from (select 1`;
      expect((await errorOf(read(stand, { query }))).name).toBe('Invalid');
      expect((await read(stand, { table })).certificate.complete).toBe(true);
    });
  });

  describe('no certificate is given', () => {
    test('when a key comes twice', async () => {
      const table = await tableOn(stand, `id integer, tag ${stand.text}`, [
        "1, 'a'",
        "2, 'a'",
        "2, 'b'",
        "3, 'c'",
      ]);
      for (const pageSize of [1, 2, 3]) {
        const { values, certificate } = await read(stand, { table, pageSize }, ['id', 'tag']);
        expect(values).toHaveLength(4);
        expect(certificate).toMatchObject({
          complete: false,
          why: '1 row with the key of another one',
        });
      }
    });

    test('when more rows have one key than a page holds; later ones are read', async () => {
      const rows = ['0', '1', '1', '1', '1', '1', '2', '3'].map((id, at) => `${id}, ${at}`);
      const table = await tableOn(stand, 'id integer, n integer', rows);
      const { ids, certificate } = await read(stand, { table, pageSize: 2 }, ['id', 'n']);
      expect(ids).toEqual(expect.arrayContaining(['0', '1', '2', '3']));
      expect(certificate.complete).toBe(false);
    });

    test('when an id comes twice under different keys', async () => {
      const table = await tableOn(stand, 'id integer, n integer', ['1, 1', '1, 2', '2, 3']);
      const { values, certificate } = await read(stand, { table, key: 'n' });
      expect(values).toHaveLength(3);
      expect(certificate).toMatchObject({
        complete: false,
        why: '1 row with the id of another one',
      });
    });

    test('to rows without key or id, whose opt-outs are read', async () => {
      const table = await tableOn(stand, 'id integer, n integer', ['1, 1', 'null, 2']);
      const byId = await read(stand, { table });
      expect(byId.ids).toEqual(['1', null]);
      expect(byId.certificate).toMatchObject({
        complete: false,
        why: '1 row without a key; 1 row without an id',
      });
      const byNumber = await read(stand, { table, key: 'n' });
      expect(byNumber.certificate).toMatchObject({ complete: false, why: '1 row without an id' });
    });
  });

  describe('a single row', () => {
    const one = async (given: Given, id: string) =>
      sourceOn(stand, given).one(id, { fields: ['id'], signal });

    test('is found by its id, a number or a text', async () => {
      const numbered = await tableOn(stand, 'id bigint primary key', ['7', '9007199254740993']);
      expect(await one({ table: numbered }, '7')).toMatchObject({ value: { id: '7' } });
      expect(await one({ table: numbered }, '9007199254740993')).toBeDefined();
      for (const id of [
        '8',
        '7x',
        ' 7',
        '7.0',
        '07',
        '9007199254740992',
        'a\0',
        '',
        '9'.repeat(30),
      ]) {
        expect(await one({ table: numbered }, id)).toBeUndefined();
      }
      const named = await tableOn(stand, `id ${stand.anyCase}`, ["'Ab'", "'ab'", "'7'", "'c'"]);
      expect(await one({ table: named }, 'Ab')).toMatchObject({ value: { id: 'Ab' } });
      expect(await one({ table: named }, '7')).toMatchObject({ value: { id: '7' } });
      for (const id of ['AB', 'C', "c' or '1'='1", '日本', 'a\0']) {
        expect(await one({ table: named }, id)).toBeUndefined();
      }
    });

    test('is broken when several match', async () => {
      const table = await tableOn(stand, 'id integer, n integer', ['1, 1', '1, 2']);
      expect(await one({ table }, '1')).toMatchObject({ broken: 'is one of 2 with this id' });
    });
  });
});
