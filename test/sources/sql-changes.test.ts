/** What has changed since a cursor, on each database that is had. */
import { describe, expect, test } from 'vitest';
import type { Certificate } from '../../src/sources/source.ts';
import { allOf, errorOf, readAll } from '../support/sources/source-reading.ts';
import { type Given, sourceOn, type Stand, stands, tableOn } from '../support/databases.ts';

const signal = new AbortController().signal;
const MINUTE = 60_000;

function cursorOf(certificate: Certificate | 'lost'): string {
  if (certificate === 'lost' || !certificate.complete || certificate.cursor === undefined) {
    throw new Error('there is no cursor');
  }
  return certificate.cursor;
}

const momentOf = (cursor: string) => Date.parse(cursor.split(' ')[0] ?? '');

async function changes(stand: Stand, given: Given, cursor: string, fields = ['id']) {
  const source = sourceOn(stand, { updatedAt: 'at', ...given });
  const { values, ...rest } = await allOf(source.changes(cursor, { fields, signal }));
  return { ids: values.map(({ id }) => id), values, ...rest };
}

async function cursorOn(stand: Stand, given: Given): Promise<string> {
  const source = sourceOn(stand, { updatedAt: 'at', ...given });
  return cursorOf((await readAll(source, ['id'])).certificate);
}

const all = await stands();

describe.each(all)('%s', (_, stand) => {
  const columns = `id integer primary key, gone integer, at ${stand.moment}`;
  const row = (id: number, seconds: number, gone = 0) => `${id}, ${gone}, ${stand.ago(seconds)}`;

  test('a reading tells where changes continue, by the clock of the database', async () => {
    const table = await tableOn(stand, columns, [row(1, 0)]);
    const started = Date.now();
    const at = momentOf(await cursorOn(stand, { table, overlap: '10m' }));
    expect(Math.abs(started - 10 * MINUTE - at)).toBeLessThan(5 * MINUTE);
    const source = sourceOn(stand, { table });
    const { certificate } = await readAll(source, ['id']);
    expect(certificate).toMatchObject({ complete: true, cursor: undefined });
    const none = allOf(source.changes('', { fields: [], signal }));
    expect((await errorOf(none)).message).toContain('without updatedAt');
  });

  test('only changed rows are read', async () => {
    const table = await tableOn(stand, columns, [row(1, 3_600), row(2, 600), row(3, 3_600)]);
    await stand.run(`insert into ${table} values (4, 0, null)`);
    const cursor = await cursorOn(stand, { table });
    const none = await changes(stand, { table }, cursor);
    expect(none.ids).toEqual([]);
    await stand.run(`update ${table} set gone = 1, at = ${stand.ago(0)} where id = 3`);
    await stand.run(`insert into ${table} values (${row(5, 0)})`);
    const found = await changes(stand, { table, pageSize: 1 }, cursorOf(none.certificate), [
      'gone',
    ]);
    expect(found.values).toMatchObject([
      { id: '3', gone: '1' },
      { id: '5', gone: '0' },
    ]);
    expect(found.certificate).toMatchObject({ complete: true });
  });

  test('a row without a key is read once it has changed, and not before', async () => {
    const keyed = `id integer, k integer, at ${stand.moment}`;
    const table = await tableOn(stand, keyed, [`1, 10, ${stand.ago(3_600)}`]);
    const given = { table, key: 'k' };
    const cursor = await cursorOn(stand, given);
    await stand.run(`insert into ${table} values (2, null, ${stand.ago(3_600)})`);
    const none = await changes(stand, given, cursor);
    expect(none).toMatchObject({ ids: [], certificate: { complete: true } });
    await stand.run(`update ${table} set at = ${stand.ago(0)} where id = 2`);
    expect((await changes(stand, given, cursorOf(none.certificate))).ids).toEqual(['2']);
  });

  test('a row that became visible late is read next time', async () => {
    const table = await tableOn(stand, columns, [row(1, 3_600)]);
    const writer = await stand.connect();
    await writer.run(stand.name === 'SQLite' ? 'begin immediate' : 'begin');
    await writer.run(`insert into ${table} values (${row(2, 30)})`);
    const cursor = await cursorOn(stand, { table });
    expect((await changes(stand, { table }, cursor)).ids).toEqual([]);
    await writer.run('commit');
    await writer.close();
    expect((await changes(stand, { table }, cursor)).ids).toEqual(['2']);
  });

  test('rows of one moment, and a microsecond apart, come once each', async () => {
    const moments = ['000001', '000001', '000001', '000002', '000003', '000003', '999999'];
    const soon = new Date(Date.now() + 60 * MINUTE).toISOString().slice(0, 19);
    const at = soon.replace('T', stand.name === 'SQLite' ? 'T' : ' ');
    const rows = moments.map((digits, n) => `${n + 1}, 0, '${at}.${digits}'`);
    const table = await tableOn(stand, columns, rows.toReversed());
    const cursor = await cursorOn(stand, { table });
    for (const pageSize of [1, 2, 3, 10]) {
      const { ids, certificate } = await changes(stand, { table, pageSize }, cursor);
      expect(ids).toEqual(['1', '2', '3', '4', '5', '6', '7']);
      expect(certificate).toMatchObject({ complete: true });
    }
  });

  test('a cursor never moves back', async () => {
    const table = await tableOn(stand, columns, [row(1, 0)]);
    const cursor = await cursorOn(stand, { table, overlap: '1m' });
    const { certificate } = await changes(stand, { table, overlap: '1d' }, cursor);
    expect(momentOf(cursorOf(certificate))).toBe(momentOf(cursor));
  });

  test('a cursor of another table, or in the future, is lost', async () => {
    const [table, other] = [await tableOn(stand, columns), await tableOn(stand, columns)];
    const cursor = await cursorOn(stand, { table });
    const [, mark = ''] = cursor.split(' ');
    const future = new Date(Date.now() + 600 * MINUTE).toISOString();
    for (const odd of ['', 'x', cursor.slice(0, -1), mark, `${future} ${mark}`, `${cursor} x`]) {
      expect((await changes(stand, { table }, odd)).certificate).toBe('lost');
    }
    expect((await changes(stand, { table: other }, cursor)).certificate).toBe('lost');
    expect((await changes(stand, { table, updatedAt: 'gone' }, cursor)).certificate).toBe('lost');
  });

  test('numbers of seconds and milliseconds count as times, too', async () => {
    const now = Math.floor(Date.now() / 1000);
    for (const scale of [1, 1000]) {
      const rows = [`1, ${(now - 3_600) * scale}`, `2, ${now * scale}`, '3, 0', '4, null'];
      const table = await tableOn(stand, 'id integer, at bigint', rows);
      const cursor = await cursorOn(stand, { table });
      expect((await changes(stand, { table }, cursor)).ids).toEqual(['2']);
    }
    const zeros = await tableOn(stand, 'id integer, at bigint', ['1, 0']);
    expect(
      (await changes(stand, { table: zeros }, await cursorOn(stand, { table: zeros }))).ids,
    ).toEqual([]);
  });

  test('a column that cannot be compared is reported before anything is read', async () => {
    const odd: [type: string, value: string][] = [
      [stand.text, "'yesterday'"],
      ['bigint', '2461000'],
      ['bigint', `1700000000), (2, 1700000000000`],
    ];
    for (const [type, value] of odd) {
      const table = await tableOn(stand, `id integer, at ${type}`, [`1, ${value}`]);
      const error = await errorOf(cursorOn(stand, { table }));
      expect(error.name).toBe('Invalid');
      expect(error.message).toMatch(
        /"at" holds no times that can be compared → name with updatedAt/,
      );
    }
  });

  test('both kinds of reading hold for a quarter of an hour', async () => {
    const table = await tableOn(stand, columns, [row(1, 0)]);
    const source = sourceOn(stand, { table, updatedAt: 'at' });
    const { certificate } = await readAll(source, ['id']);
    const since = await allOf(source.changes(cursorOf(certificate), { fields: ['id'], signal }));
    if (since.certificate === 'lost') throw new Error('the cursor is lost');
    const { reading } = since.certificate;
    expect(reading).not.toBe(certificate.reading);
    expect([certificate.reading, reading, 'sql-0'].map((name) => source.still(name))).toEqual([
      true,
      true,
      false,
    ]);
  });
});

describe.each(all.filter(([name]) => name !== 'SQLite'))('%s', (_, stand) => {
  const zoneless = stand.name === 'PostgreSQL' ? 'timestamp' : 'datetime(6)';

  test.each([
    ['UTC', 0],
    ['-05:00', -300],
    ['+05:30', 330],
  ])('times without a zone are in %s when the configuration says so', async (zone, minutes) => {
    const at = (ago: number) =>
      new Date(Date.now() + (minutes - ago) * MINUTE).toISOString().slice(0, 19).replace('T', ' ');
    const rows = [`1, '${at(60)}'`, `2, '${at(1)}'`, '3, null'];
    const table = await tableOn(stand, `id integer, at ${zoneless}`, rows);
    const cursor = await cursorOn(stand, { table, zone });
    expect((await changes(stand, { table, zone }, cursor)).ids).toEqual(['2']);
    const error = await errorOf(cursorOn(stand, { table }));
    expect(error.message).toMatch(/"at" has no time zone → say with zone of the source/);
  });
});

describe.each(all.filter(([name]) => name === 'SQLite'))('%s', (_, stand) => {
  test.each([
    ['a space', 'YYYY-MM-DD HH:MM:SS', undefined],
    ['a T and a Z', 'YYYY-MM-DDTHH:MM:SS.sssZ', undefined],
    ['a space, in a zone', 'YYYY-MM-DD HH:MM:SS', '+05:30'],
  ])('times with %s', async (_name, form, zone) => {
    const offset = zone === undefined ? 0 : 330;
    const at = (ago: number) => {
      const text = new Date(Date.now() + (offset - ago) * MINUTE).toISOString();
      return form.endsWith('Z') ? text : text.slice(0, 19).replace('T', ' ');
    };
    const rows = [`1, '${at(60)}'`, `2, '${at(1)}'`, `3, '${at(0)}'`];
    const table = await tableOn(stand, 'id integer, at', rows);
    const cursor = await cursorOn(stand, { table, zone });
    expect((await changes(stand, { table, zone }, cursor)).ids).toEqual(['2', '3']);
  });

  test('times in several forms are read too often rather than not at all', async () => {
    const now = new Date(Date.now() - MINUTE).toISOString();
    const rows = [`1, '2020-01-01'`, `2, '${now.slice(0, 19).replace('T', ' ')}'`, `3, '${now}'`];
    const table = await tableOn(stand, 'id integer, at', rows);
    const cursor = await cursorOn(stand, { table });
    expect((await changes(stand, { table }, cursor)).ids).toEqual(['2', '3']);
  });

  test('a row with the day alone is read with every time of that day', async () => {
    const today = new Date().toISOString().slice(0, 10);
    const table = await tableOn(stand, 'id integer, at', [
      `1, '${today}'`,
      `2, '${today} 23:59:59'`,
    ]);
    const cursor = await cursorOn(stand, { table });
    expect((await changes(stand, { table }, cursor)).ids).toEqual(['1', '2']);
  });

  test('times beside numbers, or with an offset, cannot be compared', async () => {
    for (const value of ["'2026-01-01 00:00:00'), (2, 1700000000", "'2026-01-01T00:00:00+02:00'"]) {
      const table = await tableOn(stand, 'id integer, at', [`1, ${value}`]);
      expect((await errorOf(cursorOn(stand, { table }))).message).toMatch(
        /"at" holds no times that can be compared/,
      );
    }
  });
});
