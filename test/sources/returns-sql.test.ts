/** Who left, told to a database by a statement: on SQLite always, on others where they are had. */
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/http/system-clock.ts';
import { namedIn, sqlOptions, sqlReturnsOptions } from '../../src/sources/sql/options.ts';
import { sqlReturns } from '../../src/sources/sql/sql-source.ts';
import { left, tell, errorOf, readAll, virtualClock } from '../support/sources/source-reading.ts';
import { sourceOn, type Stand, stands, tableOn } from '../support/databases.ts';

const all = await stands();
const never = new AbortController().signal;

function returnsTo({ url, ca }: Pick<Stand, 'url' | 'ca'>, statement: string) {
  const wanted = sqlReturnsOptions.parse({ type: 'sql', url, ca, statement });
  const clock = { ...virtualClock(), sleep: systemClock.sleep };
  return sqlReturns(wanted.statement, { ...wanted, url, allowPlain: false }, { clock });
}

async function rowsOf(stand: Stand, table: string, fields: readonly string[]) {
  const { values } = await readAll(sourceOn(stand, { table, ca: stand.ca }), ['id', ...fields]);
  return values.map((row) => [row['id'], ...fields.map((field) => row[field])].join(' '));
}

describe.each(all)('%s', (_, stand) => {
  const people = async () =>
    tableOn(stand, `id integer primary key, email ${stand.text}, news ${stand.text} not null`, [
      "1, 'a@x.y', 'yes'",
      "2, 'b@x.y', 'yes'",
      "3, 'c@x.y', 'yes'",
    ]);

  test('writes each row once with bound values, however often it is called', async () => {
    const table = await people();
    const back = returnsTo(stand, `update ${table} set news = 'no' where id = :id`);
    const batch = [left('a', { crmId: '1' }), left('b', { crmId: '3' })];
    expect(await tell(back, ...batch)).toEqual([{ is: 'told' }, { is: 'told' }]);
    expect(await tell(back, ...batch)).toEqual([{ is: 'told' }, { is: 'told' }]);
    expect(await rowsOf(stand, table, ['news'])).toEqual(['1 no', '2 yes', '3 no']);
  });

  test('takes every value for a value, whatever it contains', async () => {
    const table = await tableOn(
      stand,
      `id ${stand.text} primary key, email ${stand.text}, channel ${stand.text}, cause ${stand.text}, at ${stand.moment}`,
    );
    const email = `"'; drop table ${table}; --:id`;
    const statement = `insert into ${table} (id, email, channel, cause, at) values (:return, :email, :channel, :cause, :at)`;
    expect(await tell(returnsTo(stand, statement), left('a', { email }))).toEqual([{ is: 'told' }]);
    const [row] = await rowsOf(stand, table, ['email', 'channel', 'cause', 'at']);
    expect(row?.startsWith(`ret_a ${email} ch_news opt_out 2026-01-02`)).toBe(true);
    expect(row).toContain('03:04:05');
  });

  const none = { is: 'rejected', reason: 'the statement changed no row', fix: expect.any(String) };
  const done = { is: 'told' };
  test.each([
    ["update {table} set news = 'no' where id = :id", [done, none, done]],
    ['/* its row */\n-- and\ndelete from {table} where id = :id', [done, none, none]],
    ['insert into {table} select 10 + id, email, news from {table} where id = :id', [done, none]],
    ["insert {ignore} into {table} values (1, :email, 'no') {nothing}", [done]],
    [
      'insert into {table} select 10 + id, email, news from {table} where id = :id and not exists (select 1 from {table} where id = 11)',
      [done, done],
    ],
    [
      "update {table} set news = 'no' where id = :id and not exists (select 1 from (select 1 x) y where x = 0)",
      [done, none],
    ],
    ['select id from {table} where id = :id', [done, done]],
  ])('rejects what a statement changes no row for: %s', async (statement, expected) => {
    const table = await people();
    const isMysql = stand.url.startsWith('mysql') || stand.url.startsWith('mariadb');
    const text = statement
      .replaceAll('{table}', table)
      .replace('{ignore}', isMysql ? 'ignore' : '')
      .replace('{nothing}', isMysql ? '' : 'on conflict do nothing');
    const batch = ['1', '7', '1'].slice(0, expected.length).map((crmId) => left('a', { crmId }));
    expect(await tell(returnsTo(stand, text), ...batch)).toEqual(expected);
  });

  test.each([
    'delete from {table} where id = :id',
    "update {table} set news = 'no' where id = :id and news <> 'no'",
    'insert into {table} select 11, email, news from {table} where id = :id and (select count(*) from {table}) = 3',
  ])('accepts a repeated statement that changes no row: %s', async (statement) => {
    const table = await people();
    const back = returnsTo(stand, statement.replaceAll('{table}', table));
    expect(await tell(back, left('a', { crmId: '1' }))).toEqual([done]);
    expect(await tell(back, left('a', { crmId: '1' }))).toEqual([none]);
    const again = back.tell([left('a', { crmId: '1' })], never, new Set(['ret_a']));
    expect(await again.next()).toEqual({ done: false, value: done });
  });

  test('undoes a refused row, and writes the rest', async () => {
    const table = await people();
    const statement = `update ${table} set news = nullif(:channel, 'ch_bad'), email = :email where id = :id`;
    const told = await tell(
      returnsTo(stand, statement),
      left('a', { crmId: '1' }),
      left('b', { crmId: '2', channel: 'ch_bad' }),
      left('c', { crmId: '3' }),
    );
    expect(told).toEqual([
      { is: 'told' },
      {
        is: 'rejected',
        reason: expect.stringMatching(/does not take it \(\w+\)$/),
        fix: expect.any(String),
      },
      { is: 'told' },
    ]);
    expect(await rowsOf(stand, table, ['news'])).toEqual(['1 ch_news', '2 yes', '3 ch_news']);
    expect(JSON.stringify(told)).not.toContain('x.y');
  });

  test('reports nothing without the table, and blames the statement', async () => {
    const back = returnsTo(stand, 'update nobody_knows set news = 0 where id = :id');
    const { name, message } = await errorOf(tell(back, left('a', { crmId: '1' })));
    expect({ name, message }).toEqual({
      name: 'Invalid',
      message: expect.stringMatching(/has no table .*→ correct statement of returns/),
    });
  });

  test('writes nothing once it is to stop: a batch is one transaction', async () => {
    const table = await people();
    const statement = `update ${table} set news = 'no' where id = :id`;
    const back = returnsTo(stand, statement);
    const stop = new AbortController();
    const batch = [left('a', { crmId: '1' })];
    stop.abort(new Error('stop'));
    const telling = back.tell(batch, stop.signal);
    await expect(telling.next()).rejects.toThrow('stop');
    expect(await rowsOf(stand, table, ['news'])).toEqual(['1 yes', '2 yes', '3 yes']);
  });
});

describe('a statement', () => {
  test.each([
    ["update p set n = ':id' where id = :id", 1],
    ['update p set n = "a:id" where id=:id and e=:email', 2],
    ['update p set n = x::text where id = :id', 1],
    ['-- :id\nupdate p /* :id */ set n = $a$:id$a$ where id = :id', 1],
    ["update p set n = 'it''s :id' where `:id` = :id", 1],
  ])('%s', (statement, count) => {
    const pieces = namedIn(statement);
    expect(pieces.filter((piece) => typeof piece === 'object')).toHaveLength(count);
    const again = pieces.map((piece) => (typeof piece === 'string' ? piece : `:${piece.name}`));
    expect(again.join('')).toBe(statement);
  });

  const wrong = (given: object) =>
    sqlReturnsOptions
      .safeParse({ type: 'sql', url: 'sqlite:x', ...given })
      .error?.issues.map(({ path, message }) => `${path.join('.')} ${message}`);
  test.each([
    [{ statement: 'update p set n = 0' }, 'statement names nobody, and would concern everybody'],
    [
      { statement: "update p set n = ':id'" },
      'statement names nobody, and would concern everybody',
    ],
    [
      { statement: 'delete from p where id = :ID' },
      'statement holds :ID, which stands for nothing',
    ],
    [{ statement: 'update p set n=0 where id=:id', url: 'x' }, 'url is no address of a database'],
    [{ statement: 'select f(:id)', url: undefined, ca: 'x' }, 'ca belongs to url'],
  ])('%j is refused', (given, words) => {
    expect(wrong(given)).toEqual([words]);
  });

  test('needs an id only when it uses one', () => {
    const reach = sqlOptions.parse({ type: 'sql', url: 'sqlite:x', table: 't' });
    const takes = (statement: string) =>
      sqlReturns(statement, reach, { clock: virtualClock() }).takes({ crmId: '', channel: '*' });
    expect([takes('select f(:email)'), takes('select f(:id)')]).toEqual([true, false]);
  });
});
