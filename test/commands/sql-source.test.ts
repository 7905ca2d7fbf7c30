/** A CRM in a database, mirrored by the command line: from the first load to somebody who left. */
import Database from 'better-sqlite3';
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ann, bob, mirrored } from '../support/commands/mirrored-contacts.ts';

async function mirroredTable() {
  const world = await mirrored();
  const path = join(world.folder, 'crm.sqlite');
  const db = new Database(path);
  onTestFinished(() => void db.close());
  db.exec(`
    create table contacts (id integer primary key, email text, news boolean, deleted_at datetime);
    insert into contacts values (1, '${ann}', true, null), (2, '${bob}', 1, null), (3, 'cid@x.y', null, null);
  `);
  world.config({
    contacts: {
      source: { type: 'sql', url: `sqlite:${path}`, table: 'contacts', pageSize: 1 },
      deleted: 'deleted_at',
      channels: [{ id: 'ch_news', subscription: 'news' }],
    },
    policy: { deletes: 'owned' },
  });
  return { world, db, call: world.call, file: world.file };
}

/** Adds to the source of a configuration. */
function configure(file: string, extra: object): void {
  const config = JSON.parse(readFileSync(file, 'utf8'));
  Object.assign(config.contacts.source, extra);
  writeFileSync(file, JSON.stringify(config));
}

describe('a CRM in a database', () => {
  test('is mirrored, repeatedly', async () => {
    const { world, db, call } = await mirroredTable();
    const checked = await call('check');
    expect(checked.said).toContain(
      '3 records, 0 of them invalid, and one of them was read by its id',
    );
    expect(checked.code).toBe(0);
    expect((await call('sync')).code).toBe(0);
    expect(world.shown(ann)).toMatchObject({ ch_news: 'opt_in' });
    expect(world.shown('cid@x.y')).toBeUndefined();
    expect(world.writes()).toHaveLength(2);

    expect((await call('sync')).code).toBe(0);
    expect(world.writes()).toEqual([]);

    db.exec('update contacts set news = 0 where id = 2');
    expect((await call('sync')).code).toBe(0);
    expect(world.shown(bob)).toMatchObject({ ch_news: 'opt_out' });
  });

  test('with a time of change lets fast runs read only what has changed', async () => {
    const { world, db, call, file } = await mirroredTable();
    db.exec(`
      alter table contacts add column changed_at text;
      update contacts set changed_at = datetime('now', '-1 hour');
    `);
    configure(file, { updatedAt: 'changed_at' });
    expect((await call('sync')).code).toBe(0);
    world.writes();
    db.exec(`
      update contacts set news = 0, changed_at = datetime('now') where id = 2;
      update contacts set news = 0 where id = 1;
    `);
    const fast = await call('sync', '--fast', '--json');
    expect(fast.code).toBe(0);
    expect(world.shown(bob)).toMatchObject({ ch_news: 'opt_out' });
    expect(world.shown(ann)).toMatchObject({ ch_news: 'opt_in' });
    expect((await call('sync')).code).toBe(0);
    expect(world.shown(ann)).toMatchObject({ ch_news: 'opt_out' });
  });
});

test('no driver of a database is loaded before it is needed', async () => {
  const script = `
    await import('./src/sources/sql/sql-source.ts');
    const { createRequire } = await import('node:module');
    const loaded = Object.keys(createRequire(process.cwd() + '/x.js').cache);
    console.log(JSON.stringify(loaded.filter((path) => /node_modules.(pg|mysql2)\\b/.test(path))));
    await import('pg');
    const later = Object.keys(createRequire(process.cwd() + '/x.js').cache);
    console.log(later.some((path) => /node_modules.pg\\b/.test(path)));
  `;
  const run = promisify(execFile);
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', script]);
  expect(stdout.trim().split('\n')).toEqual(['[]', 'true']);
});
