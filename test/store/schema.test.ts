/** The one schema of the snapshot, and how files of other versions are met. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import { migrate, versionOf } from '../../src/store/database/schema.ts';
import { auditLogIn } from '../../src/store/memory/audit-log.ts';
import { doNotContactIn } from '../../src/store/memory/do-not-contact.ts';
import { newMemoryKey } from '../../src/store/memory/memory-key.ts';
import { openMemory } from '../../src/store/memory/memory.ts';
import { tablesOf } from '../../src/store/memory/memory-tables.ts';
import { requestsIn } from '../../src/store/memory/requests.ts';
import { statementsOf } from '../../src/store/database/prepared-statements.ts';
import { lookInto, openSnapshot } from '../../src/store/open-snapshot.ts';
import { partsIn } from '../../src/store/snapshot.ts';
import { stagingTables } from '../../src/store/staging/staging-tables.ts';

const step = 'alter table run add column colour text; update run set colour = status;';

function opened(): Database.Database {
  const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-'));
  const db = new Database(join(folder, 'snapshot.sqlite'));
  onTestFinished(() => {
    db.close();
    rmSync(folder, { recursive: true, force: true });
  });
  return db;
}

test('a later version takes its steps, once, in a file that has rows', () => {
  const db = opened();
  migrate(db, db.name, []);
  db.exec("insert into run (id, mode, status, started_at) values ('r1', 'full', 'done', 1)");
  migrate(db, db.name, [step]);
  migrate(db, db.name, [step]);
  expect(db.prepare('select id, colour from run').all()).toEqual([{ id: 'r1', colour: 'done' }]);
  expect(versionOf(db, db.name, [step])).toBe(2);
});

test('a new file of a later version has its steps, too', () => {
  const db = opened();
  migrate(db, db.name, [step]);
  expect(db.prepare('select colour from run').all()).toEqual([]);
});

test.each([
  ['of a newer version', [step], 'newer version of crm-mirror (format 2, this one knows 1)'],
  ['of a checkout before the first version', 22, 'is no snapshot of this version'],
  ['of another program', 0, 'is the database of another program'],
])('a file %s is refused, and stays as it is', (_, steps, says) => {
  const db = opened();
  if (typeof steps === 'object') migrate(db, db.name, steps);
  else db.exec(`create table recorded (kind text); pragma user_version = ${steps}`);
  const before = readFileSync(db.name);
  expect(() => openSnapshot(db.name)).toThrow(says);
  expect(() => lookInto(db.name)).toThrow(says);
  expect(readFileSync(db.name)).toEqual(before);
});

/** Returns the statements of a database, the texts that were stated, and what does not compile. */
function stated(db: Database.Database) {
  const texts: string[] = [];
  const statements = new Proxy(statementsOf(db), {
    get(of, name) {
      return (sql: string, decode?: unknown) => {
        texts.push(sql);
        return Reflect.get(of, name)(sql, decode);
      };
    },
  });
  const wrong = (): string[] =>
    texts.flatMap((sql) => {
      try {
        db.prepare(sql);
        return [];
      } catch (error) {
        return [`${String(error)}: ${sql}`];
      }
    });
  return { statements, texts, wrong };
}

test('every query compiles on a new file, not only when somebody asks it', () => {
  const db = opened();
  migrate(db, db.name);
  db.exec(stagingTables);
  const { statements, texts, wrong } = stated(db);
  partsIn(statements);
  expect(texts.length).toBeGreaterThan(200);
  expect(wrong()).toEqual([]);
});

test('so does every query of a memory', () => {
  const db = opened();
  const place = { path: `${db.name}-memory`, keyFile: `${db.name}-key` };
  const randomHex = () => 'a1'.repeat(8);
  openMemory(place, { known: undefined, acceptLost: false, randomHex }).close();
  const memory = new Database(place.path);
  onTestFinished(() => void memory.close());
  const { statements, texts, wrong } = stated(memory);
  const key = newMemoryKey();
  const tables = tablesOf(memory, key, (work) => work(), statements);
  doNotContactIn(tables);
  auditLogIn(tables, key.signing);
  requestsIn(tables);
  expect(texts.length).toBeGreaterThan(40);
  expect(wrong()).toEqual([]);
});
