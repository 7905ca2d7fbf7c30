/** An unchanged record is not staged, and whatever is in doubt is. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import type { DesiredRow } from '../../src/domain/record.ts';
import { everything } from '../../src/store/database/key-range.ts';
import { openSnapshot } from '../../src/store/open-snapshot.ts';
import type { Snapshot } from '../../src/store/snapshot.ts';

const kind = 'contact';
const range = { kind, ...everything } as const;
const ann = 'ann@example.com';
const bob = 'bob@example.com';
const body = JSON.stringify({ channels: { ch_news: 'opt_out' }, outBy: { ch_news: 'news' } });

/** Opens a snapshot that knows Ann as record 1 and Bob as record 2, and where this was done. */
function open(...statements: readonly string[]): Snapshot {
  const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'snapshot.sqlite');
  openSnapshot(path).close();
  const db = new Database(path);
  for (const [key, id] of [
    [ann, '1'],
    [bob, '2'],
  ]) {
    db.exec(
      `insert into recorded values ('${kind}', '${key}', 'con_${id}', 'created', '{}', null, 'f', 1);
       insert into origin values ('${kind}', '${id}', '${key}', 0);
       insert into stated values ('${kind}', '${key}', '${id}', 'ch_news', 'opt_out', null, 'news', null);`,
    );
  }
  for (const statement of statements) db.exec(statement);
  db.close();
  const snapshot = openSnapshot(path);
  onTestFinished(() => snapshot.close());
  return snapshot;
}

function record(more: Partial<DesiredRow> = {}): DesiredRow {
  const { key = ann } = more;
  return {
    kind,
    id: '1',
    key,
    alias: key,
    place: 'line 2',
    body,
    fingerprint: 'f',
    wants: true,
    presence: 'present',
    invalid: undefined,
    ...more,
  };
}

/** Compares a reading of these records, and returns the keys of those that were staged. */
function read({ staging, ranges, stage }: Snapshot, ...rows: readonly DesiredRow[]) {
  const { unchanged } = staging;
  stage(() => {
    unchanged.begin(2, ['ch_news']);
    unchanged.remember(range);
    unchanged.rememberIds(range);
    unchanged.endRemembering();
    for (const [nth, row] of rows.entries()) staging.addDesired([row], nth + 1);
    staging.sortKeyless({ kind });
    for (const some of ranges.ofUnsorted(kind)) staging.sortRange(some);
    for (const add of unchanged.addUnseen()) add();
  });
  return { ...unchanged.counts(), staged: staging.wantedKeys(range) };
}

const bobs = record({ key: bob, id: '2', place: 'line 3' });

test('unchanged records are counted, not staged', () => {
  expect(read(open(), record(), bobs)).toEqual({ valid: 2, wanted: 2, staged: [] });
});

const contact = (table: string, values: string): string =>
  `insert into ${table} values ('${kind}', '${ann}', ${values})`;

test.each([
  ['has no contact', `update recorded set id = null where key = '${ann}'`],
  ['is not as desired', `update recorded set desired = null where key = '${ann}'`],
  ['is not known under its id', `delete from origin where key = '${ann}'`],
  ['has another id', `insert into origin values ('${kind}', '3', '${ann}', 0)`],
  ['had another address', `insert into origin values ('${kind}', '1', 'old@example.com', 0)`],
  ['has stated nothing yet', `delete from stated where key = '${ann}'`],
  ['has stated an opt-in', `update stated set says = 'opt_in' where key = '${ann}'`],
  ['has stated it by another field', `update stated set stated_by = 'x' where key = '${ann}'`],
  ['was gone', `update stated set gone_at = 1 where key = '${ann}'`],
  [
    'has stated it as another record',
    contact('stated', `'9', 'ch_news', 'opt_out', null, 'news', null`),
  ],
  ['had another id', contact('stated', `'9', 'ch_news', 'opt_in', 1, null, null`)],
  ['was absent', contact('absence', `1, 1, 1, 'r', 1, null, 0, null`)],
  ['has a duplicate', contact('twin', `'9'`)],
  ['is the duplicate of somebody', `insert into twin values ('${kind}', 'x@example.com', '1')`],
  ['was renamed on the platform', `insert into renamed values ('${kind}', 'con_9', '${ann}')`],
  [
    'has a known problem',
    `insert into problem (kind, key, class, part, reason, fix, cause, since, run)
     values ('${kind}', '${ann}', 'conflict', 'ch_news', 'why', 'how', 'rejected', 1, 'r')`,
  ],
  [
    'has an unfinished change',
    `insert into change (run, kind, key, op, part, body, phase, state, planned_at)
     values ('r', '${kind}', '${ann}', 'opt_in', 'ch_news', '{}', 0, 'unknown', 1)`,
  ],
  [
    'has a change that is held',
    `insert into hold (guard, kind, key, op, part, target, body, ids, stated, withdraws, undoes,
       is_listed, at) values ('optIns', '${kind}', 'x', 'opt_in', 'ch_news', '', '', '["1"]',
       1, 0, '', 0, 1)`,
  ],
])('stages an unchanged record of a person who %s', (_, statement) => {
  expect(read(open(statement), record(), bobs)).toEqual({ valid: 1, wanted: 1, staged: [ann] });
});

test('leaves aside what a channel stated that the mirror has no more', () => {
  const other = contact('stated', `'1', 'ch_old', 'opt_in', null, null, null`);
  expect(read(open(other), record(), bobs).staged).toEqual([]);
});

const invalid = { reason: 'why', fix: 'how' };
const former = 'former@example.com';
const unread = JSON.stringify({ channels: { ch_news: 'opt_out' }, unread: ['ch_news'] });

test.each<[string, DesiredRow[], string[]]>([
  ['has changed', [record({ fingerprint: 'g' })], [ann]],
  ['is flagged as deleted', [record({ presence: 'flagged' })], [ann]],
  ['is out of scope', [record({ presence: 'outside' })], [ann]],
  ['is new', [record(), record({ key: 'x@example.com', id: '7' })], ['x@example.com']],
  [
    'has the id of another person',
    [record(), record({ key: former, place: 'line 4' })],
    [ann, former],
  ],
  ['has it first', [record({ key: former, place: 'line 4' }), record()], [ann, former]],
  ['has the address of another', [record(), record({ id: '7', place: 'line 4' })], [ann]],
  ['has no address, and an id', [record(), record({ key: undefined, invalid })], [ann]],
  ['has a place that is no number', [record({ place: 'somewhere' })], [ann]],
])('stages a record that %s', (_, rows, staged) => {
  expect(read(open(), ...rows, bobs).staged).toEqual(staged);
});

test('stages a record that may state more than can be read', () => {
  const snapshot = open(`update recorded set desired = 'g' where key = '${ann}'`);
  expect(read(snapshot, record({ fingerprint: 'g', body: unread }), bobs).staged).toEqual([ann]);
});

test('stages an invalid record', () => {
  const snapshot = open();
  expect(read(snapshot, record({ invalid }), bobs).valid).toBe(1);
  expect(snapshot.staging.desired(kind, ann)).toMatchObject([{ invalid }]);
});

test('stages both of two equal records, in the order of the reading', () => {
  const snapshot = open();
  const again = record({ place: 'line 4' });
  expect(read(snapshot, record(), bobs, again)).toEqual({ valid: 1, wanted: 1, staged: [ann] });
  expect(snapshot.staging.desired(kind, ann).map(({ place }) => place)).toEqual([
    'line 2',
    'line 4',
  ]);
});

test.each(['line 17', 'line 1', 'contact 1', 'page 3, contact 41', 'sheet 2, row 4294967294'])(
  'finds a person who was not staged by key and by id, at %s',
  (place) => {
    const snapshot = open();
    const row = record({ place });
    read(snapshot, row, bobs);
    expect(snapshot.staging.keysOf(kind, ['1', '2'])).toEqual([ann, bob]);
    expect(snapshot.staging.desired(kind, ann)).toEqual([row]);
    expect(snapshot.staging.idsOf(kind, ann)).toEqual(['1']);
  },
);

test('counts as missing only people who were not read', () => {
  const snapshot = open();
  const { absences } = snapshot;
  read(snapshot, record());
  expect(absences.countNewOfRest(range)).toBe(1);
  expect(absences.countNew(range)).toBe(2);
});

test('compares a person with letters of other scripts in the tables', () => {
  const key = 'аня@example.com';
  const rename = ['recorded', 'origin', 'stated'].map(
    (table) => `update ${table} set key = '${key}' where key = '${ann}'`,
  );
  expect(read(open(...rename), record({ key }), bobs)).toMatchObject({ valid: 1, staged: [key] });
});
