/**
 * Additions to the snapshot's tables: a newer program makes them beside an earlier one, which this
 * program is here, and the two take turns.
 */
import { join } from 'node:path';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import Database from 'better-sqlite3';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  type Expansion,
  expansions,
  standInForMissing,
} from '../../src/snapshot/database/expansions.ts';
import { migrate, migrations } from '../../src/snapshot/database/migrations.ts';
import { statementsOf } from '../../src/snapshot/database/prepared-statements.ts';
import { takeLease } from '../../src/snapshot/database/writer-lease.ts';
import { openSnapshot } from '../../src/snapshot/snapshot.ts';
import { mirrored as mirroredContacts } from '../support/commands/mirrored-contacts.ts';
import {
  approve,
  deletes,
  exportOf,
  flag,
  mirrored,
  range,
} from '../support/engine/change-volume.ts';

const after = migrations.length;
/** What a newer program adds. */
const more: readonly Expansion[] = [
  { after, adds: 'column', table: 'change', name: 'mood', type: 'text' },
  { after, adds: 'column', table: 'held', name: 'mood', type: 'integer' },
  { after, adds: 'column', table: 'held', name: 'tone', type: 'real' },
  { after, adds: 'table', name: 'moods', columns: 'mood text primary key' },
  { after, adds: 'index', name: 'held_by_mood', on: 'held (mood)' },
];
const newer = [...expansions, ...more];

function file(): string {
  const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, 'snapshot.sqlite');
}

function opened(path: string, options: Database.Options = {}): Database.Database {
  const db = new Database(path, options);
  onTestFinished(() => void db.close());
  return db;
}

const versionOf = (db: Database.Database) => db.pragma('user_version', { simple: true });
const schemaOf = (db: Database.Database) =>
  db.prepare('select type, name, sql from main.sqlite_master order by type, name').all();

/** A mirror whose guard holds the deletion of four flagged people, and its earlier program. */
async function held() {
  const path = file();
  const stage = await mirrored({ path });
  exportOf(stage, [...[0, 1, 2, 3].map(flag), ...range(4, 20)]);
  const { plan } = await stage.sync();
  expect(deletes(stage)).toBe(0);
  return { path, stage, plan };
}

describe('expansions of a newer program', () => {
  test('leave the version as it is, and are made once', async () => {
    const { path } = await held();
    const db = opened(path);
    const before = versionOf(db);
    migrate(db, path, newer);
    const schema = schemaOf(db);
    expect(schema).not.toEqual([]);
    migrate(db, path, newer);
    expect(schemaOf(db)).toEqual(schema);
    expect(versionOf(db)).toBe(before);
    for (const { name } of more)
      expect(JSON.stringify(schema)).toMatch(new RegExp(`\\b${name}\\b`));
  });

  test('let an earlier program that has the snapshot open go on, and open it again', async () => {
    const { path, stage, plan } = await held();
    const db = opened(path);
    migrate(db, path, newer);
    const filled = db.prepare('select count(*) n from held where mood is not null');
    db.exec('update held set mood = 1');
    await stage.sync();
    approve(stage, plan);
    await stage.sync();
    expect(deletes(stage)).toBe(4);
    exportOf(stage, [...[4, 5, 6, 7].map(flag), ...range(8, 20)]);
    await stage.sync();
    // What it wrote in between is not known, and what it found is as it was.
    expect(filled.get()).not.toEqual({ n: 0 });
    const rows = db.prepare("select count(*) n from held where mood is null and op = 'delete'");
    expect(rows.get()).toEqual({ n: 4 });
    const again = openSnapshot(path);
    onTestFinished(() => again.close());
    expect(again.awaitingApproval.current()).toMatchObject([{ held: { delete: 4 } }]);
    migrate(db, path, newer);
    expect(rows.get()).toEqual({ n: 4 });
    expect(db.pragma('integrity_check', { simple: true })).toBe('ok');
  });

  test('precede the migrations that were written after them', () => {
    const path = file();
    const db = opened(path);
    const early: Expansion = {
      after: after - 1,
      adds: 'column',
      table: 'meta',
      name: 'early',
      type: 'text',
    };
    for (const step of migrations.slice(0, -1)) db.exec(step);
    db.pragma(`user_version = ${after - 1}`);
    migrate(db, path, [early]);
    expect(versionOf(db)).toBe(after);
    db.prepare('select early from meta').all();
    // A snapshot that has passed that version without it is not changed any more.
    const other = opened(file());
    migrate(other, other.name, []);
    migrate(other, other.name, [early]);
    expect(() => other.prepare('select early from meta')).toThrow(/no such column/);
  });

  test('can be missing in a snapshot that is only read: they are empty, and nothing is written', async () => {
    const { path, stage } = await held();
    stage.close();
    const db = opened(path, { readonly: true });
    const schema = schemaOf(db);
    const isFree = standInForMissing(db, after, newer);
    expect(isFree).toBe(true);
    const { prepare } = statementsOf(db, { isFree });
    expect(prepare('select distinct mood, tone from held').all()).toEqual([
      { mood: null, tone: null },
    ]);
    const first = 'select mood, run from change c indexed by change_by_key where kind = ? limit 1';
    expect(prepare<[string]>(first).all('contact')).toMatchObject([{ mood: null }]);
    expect(prepare('select * from moods').all()).toEqual([]);
    expect(schemaOf(db)).toEqual(schema);
    expect(standInForMissing(opened(path, { readonly: true }), after)).toBe(false);
  });
});

describe('a snapshot of an earlier program, without the expansions of this one', () => {
  const columns = expansions.filter((step) => step.adds === 'column');
  /** Twelve people have left and await approval, beside an earlier program that has the mirror. */
  async function earlier() {
    const world = await mirroredContacts({
      lines: { guards: { absentReadings: 1, absentFor: '0s', deletes: { percent: 0, floor: 1 } } },
    });
    const people = Array.from({ length: 14 }, (_, at) => ({ email: `p${at}@example.com` }));
    world.people(people.map((one) => ({ ...one, news: 'yes' })));
    await world.call('sync');
    world.people(people.slice(12).map((one) => ({ ...one, news: 'yes' })));
    const { plan } = (await world.call('sync', '--json')).json;
    const db = opened(world.path);
    for (const step of expansions) if (step.adds === 'index') db.exec(`drop index ${step.name}`);
    for (const { table, name } of columns) db.exec(`alter table ${table} drop column ${name}`);
    return { world, db, plan, schema: schemaOf(db) };
  }

  test('is read as it is, even while its program has it', async () => {
    const { world, db, plan, schema } = await earlier();
    const lease = takeLease(world.path);
    onTestFinished(() => lease.release());
    const held = [{ plan, delete: 12 }];
    expect((await world.call('status', '--json')).json).toMatchObject({ held });
    for (const words of [['plan'], ['runs'], ['explain', 'p1@example.com'], ['problems']])
      expect((await world.call(...words)).err).not.toMatch(/no such column|bug/);
    expect((await world.call('backup', `${world.folder}/copy`)).code).toBe(0);
    expect(schemaOf(db)).toEqual(schema);
    expect(schemaOf(opened(`${world.folder}/copy`))).toEqual(schema);
  });

  test('is written by this program, and what it holds is treated as before', async () => {
    const { world, db, plan } = await earlier();
    const reject = ['reject', plan, '--people', `${world.folder}/few.txt`, '--reason', 'they stay'];
    writeFileSync(`${world.folder}/few.txt`, 'p1@example.com\n');
    expect(await world.call(...reject)).toMatchObject({ code: 0 });
    for (const { table, name } of columns) {
      // Nobody has approved or signed anything here.
      const found = table.startsWith('approval') ? [] : [{ is: null }];
      expect(db.prepare(`select distinct ${name} "is" from ${table}`).all()).toEqual(found);
    }
    expect((await world.call('sync', '--json')).json).toMatchObject({
      contacts: { held: { delete: 11 }, applied: { opt_out: 0 } },
    });
  });
});
