/** What is recorded is found by the ids that the platform has, or had, for it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import type { RecordedRow } from '../../src/domain/record.ts';
import { migrations } from '../../src/snapshot/database/migrations.ts';
import { openSnapshot } from '../../src/snapshot/snapshot.ts';

const row = (key: string, id: string | undefined, renamed: string[] = []): RecordedRow => ({
  kind: 'contact',
  key,
  id,
  ownership: 'adopted',
  body: JSON.stringify({
    channels: {},
    ...(renamed[0] && { renamed: renamed.map((c) => ({ id: c })) }),
  }),
  shown: undefined,
  desired: undefined,
  seenAt: 0,
});

test('a renamed contact is found by every key that has or had it', () => {
  const { recorded, staging, transaction, purge, close } = openSnapshot('', { inMemory: true });
  onTestFinished(() => close());
  const found = (id: string) => recorded.everOfId('contact', id, 'now').map(({ key }) => key);
  recorded.put(row('now', 'c1'));
  recorded.put(row('other', 'c1'));
  recorded.put(row('old', 'c2', ['c1', 'c3']));
  expect(found('c1')).toEqual(['old', 'other']);
  expect(found('c3')).toEqual(['old']);
  expect(found('c2')).toEqual(['old']);
  recorded.put(row('old', 'c2', ['c3']));
  expect(found('c1')).toEqual(['other']);
  staging.addNoted(row('old', undefined, ['c1']), true);
  transaction(() => staging.adoptNoted());
  expect([found('c1'), found('c3')]).toEqual([['old', 'other'], []]);
  recorded.drop('contact', 'other');
  expect(found('c1')).toEqual(['old']);
  purge.rows('contact', 'old', []);
  expect(found('c1')).toEqual([]);
});

test('a renamed contact recorded by an earlier version is found by every key', () => {
  const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'snapshot.sqlite');
  const db = new Database(path);
  const before = migrations.findIndex((step) => step.includes('create table renamed'));
  for (const step of migrations.slice(0, before)) db.exec(step);
  db.pragma(`user_version = ${before}`);
  const add = db.prepare("insert into recorded values (?, ?, null, 'adopted', ?, null, null, 0)");
  for (const { kind, key, body } of [row('old', undefined, ['c1']), row('plain', undefined)])
    add.run(kind, key, body);
  db.close();
  const { recorded, close } = openSnapshot(path);
  onTestFinished(() => close());
  expect(recorded.everOfId('contact', 'c1', 'now').map(({ key }) => key)).toEqual(['old']);
});
