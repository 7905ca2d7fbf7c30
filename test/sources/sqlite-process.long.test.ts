/** Statements of SQLite that never end: they hold nothing up, and no process of theirs stays. */
import Database from 'better-sqlite3';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock as clock } from '../../src/http/system-clock.ts';
import { openSqlite } from '../../src/sources/sql/drivers/sqlite.ts';
import { createWorld, launch } from '../support/engine/engine-world.ts';
import { errorOf, scratch } from '../support/sources/source-reading.ts';

const ENDLESS = `with recursive n(i) as (select 1 union all select i + 1 from n)
  select i as id from n where i < 0`;
const HOUR_MS = 3_600_000;
const folder = await scratch();
let files = 0;

function database(): { path: string; db: Database.Database } {
  files += 1;
  const path = join(folder, `crm-${files}.sqlite`);
  const db = new Database(path);
  onTestFinished(() => void db.close());
  db.exec('create table people (id integer primary key); insert into people values (1)');
  return { path, db };
}

/** The processes that name this file, with the CPU time each has used. */
function processesOf(path: string): { pid: number; time: string }[] {
  const all = execFileSync('ps', ['-A', '-o', 'pid=,time=,args='], { encoding: 'utf8' });
  const ours = all.split('\n').filter((line) => line.includes(`sqlite-process.ts ${path} `));
  return ours.map((line) => {
    const [pid, time = ''] = line.trim().split(/\s+/);
    return { pid: Number(pid), time };
  });
}

async function untilProcesses(path: string, count: number): Promise<void> {
  while (processesOf(path).length !== count) await sleep(20);
}

/** It takes a second of computing only where it computes without end. */
async function untilBusy(path: string): Promise<void> {
  while ((processesOf(path)[0]?.time ?? '00:00:00') === '00:00:00') await sleep(20);
}

describe('a statement of SQLite that never ends', () => {
  const never = new AbortController().signal;

  test('is given up after timeoutMs', async () => {
    const { path } = database();
    const session = await openSqlite(path, { clock, signal: never, timeoutMs: 3_000 }, 'read');
    expect(await session.rows('select id from people', [])).toEqual([[1n]]);
    const error = await errorOf(session.rows(ENDLESS, []));
    expect(error.name).toBe('Unavailable');
    expect(error.message).toBe(
      `${path} took longer than is waited for (raise timeoutMs of the source, or have an index made for key and updatedAt) (SQLITE_INTERRUPT)`,
    );
    await session.close();
    expect(processesOf(path)).toEqual([]);
  });

  test('delays nothing else, and ends when it is aborted', async () => {
    const { path } = database();
    const controller = new AbortController();
    const opening = { clock, signal: controller.signal, timeoutMs: HOUR_MS };
    const session = await openSqlite(path, opening, 'read');
    let isOver = false;
    const asked = errorOf(session.rows(ENDLESS, []).finally(() => void (isOver = true)));
    for (let turns = 0; turns < 100; turns += 1) await turn();
    expect(isOver).toBe(false);
    expect(processesOf(path)).toHaveLength(1);
    const reason = new Error('enough');
    controller.abort(reason);
    expect(await asked).toBe(reason);
    await session.close();
    expect(processesOf(path)).toEqual([]);
  });

  test('is given up when it writes, too: undone, and the file is free again', async () => {
    const { path, db } = database();
    const writing = await openSqlite(path, { clock, signal: never, timeoutMs: 3_000 }, 'write');
    await writing.run('delete from people', []);
    const endless = `insert into people select id from (${ENDLESS})`;
    const error = await errorOf(writing.run(endless, []));
    expect(error.message).toContain('took longer than is waited for');
    await writing.close();
    expect(processesOf(path)).toEqual([]);
    db.exec('begin immediate; commit');
    expect(db.prepare('select id from people').pluck().all()).toEqual([1]);
  });

  test('ends with the process that asked, however that ends', async () => {
    const { child, ended, path } = await running({ timeoutMs: HOUR_MS });
    await untilBusy(path);
    child.kill('SIGKILL');
    await ended;
    await untilProcesses(path, 0);
    expect(processesOf(path)).toEqual([]);
  });
});

test('a process killed between two queries is reported', async () => {
  const { path } = database();
  const signal = new AbortController().signal;
  const session = await openSqlite(path, { clock, signal, timeoutMs: HOUR_MS }, 'read');
  for (const { pid } of processesOf(path)) process.kill(pid, 'SIGKILL');
  await untilProcesses(path, 0);
  const error = await errorOf(session.rows('select id from people', []));
  expect(error.name).toBe('Unavailable');
  expect(error.message).toBe(`${path}: the process that reads or writes it ended (SIGKILL)`);
  await session.close();
});

test('an opening that is aborted at once leaves no process', async () => {
  const { path } = database();
  const controller = new AbortController();
  const opened = errorOf(
    openSqlite(path, { clock, signal: controller.signal, timeoutMs: HOUR_MS }, 'read'),
  );
  await untilProcesses(path, 1);
  const reason = new Error('enough');
  controller.abort(reason);
  expect(await opened).toBe(reason);
  expect(processesOf(path)).toEqual([]);
});

/** `sync` of a CRM in SQLite whose query never ends. */
async function running({ timeoutMs }: { timeoutMs: number }) {
  const world = await createWorld({ kinds: ['contact'] });
  const { path } = database();
  const query = ENDLESS.replace('as id', "as id, 'a@x.y' as email, 0 as news, 0 as product");
  const file = world.config({
    contacts: { source: { type: 'sql', url: `sqlite:${path}`, query, timeoutMs } },
  });
  const { child, ended } = launch(['sync', '-c', file]);
  return { child, ended, path };
}

describe('sync of a CRM in SQLite whose query never ends', () => {
  test('fails in one line after timeoutMs', async () => {
    const { ended, path } = await running({ timeoutMs: 3_000 });
    const { code, stderr } = await ended;
    expect(stderr).toContain(`${path} took longer than is waited for (raise timeoutMs`);
    expect(code).toBe(1);
    expect(processesOf(path)).toEqual([]);
  });

  test('ends on SIGTERM', async () => {
    const { child, ended, path } = await running({ timeoutMs: HOUR_MS });
    await untilBusy(path);
    child.kill('SIGTERM');
    expect((await ended).code).toBe(143);
    expect(processesOf(path)).toEqual([]);
  });
});
