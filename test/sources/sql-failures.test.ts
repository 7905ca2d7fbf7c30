/** What goes wrong with a database and what is said of it; nothing is written, and nothing left. */
import Database from 'better-sqlite3';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { openSession } from '../../src/sources/sql/database.ts';
import { sqlOptions } from '../../src/sources/sql/options.ts';
import {
  allOf,
  errorOf,
  readAll,
  scratch,
  virtualClock,
} from '../support/sources/source-reading.ts';
import { type Given, sourceOn, stands, tableOn } from '../support/databases.ts';

const all = await stands();
const servers = all.filter(([name]) => name !== 'SQLite');
const never = new AbortController().signal;
const fields = ['id'];

const read = async (url: string, given: Given) => readAll(sourceOn({ url }, given), fields);

describe.each(all)('%s', (_, stand) => {
  test('is opened read-only', async () => {
    const table = await tableOn(stand, 'id integer primary key', ['1']);
    const options = sqlOptions.parse({ type: 'sql', url: stand.url, table });
    const session = await openSession(options, { signal: never, clock: virtualClock() });
    try {
      const writing = session.rows(`delete from ${table} returning id`, []);
      const error = await errorOf(writing);
      expect(error.name).toBe('Invalid');
      expect(error.message).toContain('does not let this be written');
    } finally {
      await session.close();
    }
    expect((await read(stand.url, { table })).values).toEqual([{ id: '1' }]);
  });

  test('is left at once when aborted', async () => {
    const table = await tableOn(stand, 'id integer primary key', ['1', '2', '3', '4', '5']);
    const reason = new Error('enough');
    const controller = new AbortController();
    const reading = sourceOn(stand, { table, pageSize: 1 }).read({
      fields,
      signal: controller.signal,
    });
    await reading.next();
    controller.abort(reason);
    await expect(reading.next()).rejects.toBe(reason);
    const late = sourceOn(stand, { table }).read({ fields, signal: controller.signal });
    await expect(late.next()).rejects.toBe(reason);
  });

  test('reports what a query cannot do in one line', async () => {
    const table = await tableOn(stand, `id integer, v ${stand.text}`, ["1, 'ann@example.com'"]);
    const cases: [given: Given, said: RegExp][] = [
      [{ table: 'nobody' }, /has no table "([\w.]+\.)?nobody" \(\w+\) → correct table or query/],
      [
        { query: `select lacking from ${table}` },
        /knows no column "lacking" \(\w+\) → correct query/,
      ],
      [{ query: `select id, from ${table}` }, /cannot do what it is asked \(\w+\) → correct key,/],
      [
        { query: 'select 1 as id, 2 as id' },
        /two columns of one name|several columns are named "id"/,
      ],
    ];
    for (const [given, said] of cases) {
      const error = await errorOf(read(stand.url, given));
      expect(error.message).toMatch(said);
      expect(error.name).toBe('Invalid');
      expect(error.message).not.toMatch(/secret|ann@/);
    }
  });
});

/** What a MySQL says first: version 10 of the protocol, and none of its offers is encryption. */
const greeting = Buffer.concat([
  Buffer.from([72, 0, 0, 0, 10]),
  Buffer.from('5.5.5\0'),
  Buffer.from([1, 0, 0, 0]),
  Buffer.from('12345678\0'),
  Buffer.from([0, 0x82, 8, 2, 0, 0, 0, 21]),
  Buffer.alloc(10),
  Buffer.from('123456789012\0mysql_native_password\0'),
]);
greeting[0] = greeting.length - 4;

describe.each(servers)('%s', (name, stand) => {
  const isPostgres = name === 'PostgreSQL';
  const sleep = isPostgres ? 'select pg_sleep(60)::text as id' : 'select sleep(60) as id';
  const threads = isPostgres
    ? "select pid as id from pg_stat_activity where query like '%sleep(60)%' and state = 'active' and pid <> pg_backend_pid()"
    : "select id from information_schema.processlist where info like '%sleep(60)%' and id <> connection_id()";
  const sleeping = async () => (await read(stand.url, { query: threads })).values.length;

  async function until(count: number): Promise<void> {
    while ((await sleeping()) !== count) await new Promise((done) => setTimeout(done, 20));
  }

  test.each<[what: string, change: (url: string) => string, name: string, said: RegExp]>([
    [
      'a wrong password',
      (url) => url.replace(':secret@', ':wrongpw@'),
      'Invalid',
      /refused the credentials \(\w+\) → correct user and password/,
    ],
    [
      'an unknown user',
      (url) => url.replace(/\/\/\w+:/, '//mallory:'),
      'Invalid',
      /refused the credentials/,
    ],
    [
      'an unknown database',
      (url) => url.replace(/\w+$/, 'nowhere'),
      'Invalid',
      /127\.0\.0\.1\/nowhere has no database of that name/,
    ],
    [
      'an unknown host',
      (url) => url.replace('127.0.0.1', 'db.invalid').concat('?sslmode=require'),
      'Unavailable',
      /db\.invalid\/\w+ (is not known to DNS|could not be looked up)/,
    ],
    [
      'a closed port',
      (url) => url.replace(/:\d+\//, ':1/'),
      'Unavailable',
      /refused the connection \(ECONNREFUSED\)/,
    ],
  ])('%s is reported without a secret', async (_what, change, kind, said) => {
    const error = await errorOf(read(change(stand.url), { table: 'people' }));
    expect(error.message).toMatch(said);
    expect(error.name).toBe(kind);
    expect(error.message).not.toMatch(/secret|wrongpw|mallory|postgres:|root/);
  });

  test('a table that may not be read is reported', async () => {
    const table = await tableOn(stand, 'id integer', ['1']);
    const grants = isPostgres
      ? "create user reader password 'reader'"
      : `create user reader identified by 'reader'; grant create on ${new URL(stand.url).pathname.slice(1)}.* to reader`;
    await stand.run(grants);
    const url = stand.url.replace(/\/\/\w+:\w+@/, '//reader@');
    const error = await errorOf(read(url, { table, password: 'reader' }));
    expect(error.message).toMatch(/does not permit to read this \(\w+\) → grant its user SELECT/);
    await stand.run(`grant select on ${table} to reader`);
    expect((await read(url, { table, password: 'reader' })).certificate.complete).toBe(true);
  });

  test('an aborted query does not continue on the server', async () => {
    const controller = new AbortController();
    const reading = sourceOn(stand, { query: sleep }).read({ fields, signal: controller.signal });
    const ended = reading.next();
    await until(1);
    controller.abort(new Error('enough'));
    await expect(ended).rejects.toThrow('enough');
    await until(0);
  });

  test('a query that takes too long is given up', async () => {
    const error = await errorOf(read(stand.url, { query: sleep, timeoutMs: 3_000 }));
    expect(error.message).toMatch(/took longer than is waited for \(raise timeoutMs/);
    expect(error.name).toBe('Unavailable');
    await until(0);
  });

  test('a connection lost in the middle ends the reading without certificate', async () => {
    const table = await tableOn(stand, 'id integer primary key', ['1', '2', '3', '4', '5']);
    const reading = sourceOn(stand, { table, pageSize: 1 }).read({ fields, signal: never });
    await reading.next();
    await stand.run(
      isPostgres
        ? "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'crm-mirror'"
        : `begin not atomic for one in (select id from information_schema.processlist where command = 'Sleep' and db like 'crm\\_mirror%') do kill one.id; end for; end`,
    );
    const { certificate } = await allOf(reading);
    expect(certificate).toMatchObject({
      complete: false,
      why: expect.stringMatching(
        /^reading stopped after row \d: .+ (cut the connection|is being shut down or started)/,
      ),
    });
  });

  test('no connection is left behind', async () => {
    const table = await tableOn(stand, 'id integer primary key', ['1']);
    const connections = isPostgres
      ? "select pid as id from pg_stat_activity where application_name = 'crm-mirror'"
      : "select id from information_schema.processlist where user <> 'system user'";
    const source = sourceOn(stand, { table });
    await readAll(source, fields);
    await source.one('1', { fields, signal: never });
    const reading = sourceOn(stand, { table, pageSize: 1 }).read({ fields, signal: never });
    await reading.next();
    await reading.return({ complete: false, reading: '', why: '', fix: '' });
    const count = async () => (await read(stand.url, { query: connections })).values.length;
    while ((await count()) > 1) await new Promise((done) => setTimeout(done, 20));
    expect(await count()).toBe(1);
  });

  test('a connection is encrypted, and its certificate is verified', async () => {
    const { ca } = stand;
    if (ca === undefined) return;
    const encrypted = isPostgres
      ? 'select ssl::int as id from pg_stat_ssl where pid = pg_backend_pid()'
      : "select length(variable_value) > 0 as id from information_schema.session_status where variable_name = 'ssl_cipher'";
    const cipher = async (given: Given) =>
      (await read(stand.url, { query: encrypted, ...given })).values;
    expect(await cipher({ ca })).toEqual([{ id: '1' }]);
    expect(await cipher({})).toEqual([{ id: '0' }]);
    const error = await errorOf(read(`${stand.url}?sslmode=require`, { query: encrypted }));
    expect(error.message).toMatch(/has a certificate that is not believed \(\w+\) → name with ca/);
    const none = await errorOf(read(stand.url, { query: encrypted, ca: `${ca}.none` }));
    expect(none.message).toMatch(/server\.crt\.none: there is no such file/);
  });

  test('a server without encryption is told apart from an unreachable one', async () => {
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      if (isPostgres) socket.once('data', () => socket.write('N'));
      else socket.write(greeting);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const url = stand.url.replace(/:\d+\//, `:${port}/`);
    const error = await errorOf(read(`${url}?sslmode=require`, { table: 'people' }));
    expect(error.message).toMatch(
      /offers no encryption \(\w+\) → switch it on there, or add allowPlain/,
    );
    server.close();
  });
});

describe('a file of SQLite', async () => {
  const folder = await scratch();
  const path = join(folder, 'crm.sqlite');
  const db = new Database(path);
  afterAll(() => void db.close());
  db.exec('create table people (id integer primary key); insert into people values (1)');

  test.each<[what: string, name: string, said: RegExp]>([
    ['that is not there', 'none.sqlite', /none\.sqlite: there is no such file/],
    ['in no folder', 'none/crm.sqlite', /crm\.sqlite: there is no such file/],
    ['that is a folder', 'folder', /folder: this is no regular file/],
    ['that is no database', 'notes.txt', /notes\.txt is no database of SQLite, or a damaged one/],
  ])('%s', async (_, name, said) => {
    await mkdir(join(folder, 'folder'), { recursive: true });
    await writeFile(join(folder, 'notes.txt'), 'not a database, by any means. '.repeat(50));
    const error = await errorOf(read(`sqlite:${join(folder, name)}`, { table: 'people' }));
    expect(error.name).toBe('Invalid');
    expect(error.message).toMatch(said);
  });

  test('is waited for while somebody writes to it, and then given up', async () => {
    db.exec('begin exclusive');
    const clock = virtualClock();
    const options = sqlOptions.parse({
      type: 'sql',
      url: `sqlite:${path}`,
      table: 'people',
      timeoutMs: 500,
    });
    const error = await errorOf(openSession(options, { signal: never, clock }));
    expect(error.message).toMatch(/crm\.sqlite is being written to \(SQLITE_BUSY\)/);
    expect(error.name).toBe('Unavailable');
    expect(clock.slept.length).toBeGreaterThan(3);
    const patient = virtualClock(0, () => void (db.inTransaction && db.exec('commit')));
    const session = await openSession(options, { signal: never, clock: patient });
    await session.close();
  });
});
