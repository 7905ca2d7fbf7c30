/**
 * What a query is about: a row that differs from the one it finds in a single column that counts
 * is another one, and is neither found nor changed.
 */
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, onTestFinished, test } from 'vitest';
import { everything } from '../../src/store/database/key-range.ts';
import { openSnapshot } from '../../src/store/open-snapshot.ts';
import type { Snapshot } from '../../src/store/snapshot.ts';
import { scratchFolder } from '../support/waiting.ts';

type Row = Record<string, string | number | null>;

/** A snapshot, and a connection by which a test writes and reads any row. */
function open() {
  const path = join(scratchFolder(), 'snapshot.sqlite');
  const snapshot = openSnapshot(path);
  const db = new Database(path);
  onTestFinished(() => {
    db.close();
    snapshot.close();
  });
  const put = (table: string, row: Row): void => {
    const names = Object.keys(row);
    const values = names.map((name) => `@${name}`);
    db.prepare(`insert into ${table} (${names.join(', ')}) values (${values.join(', ')})`).run(row);
  };
  return { snapshot, db, put };
}

const of = { kind: 'contact', key: 'ann' } as const;
const range = { kind: 'contact', ...everything } as const;

/** A row about Ann of each table with keys. */
// prettier-ignore
const rows = {
  problem: {
    ...of, class: 'rejected', part: 'news', target: '', reason: 'no', fix: '', run: 'r', since: 1,
    desired: 'as it was', attempts: 3, retry_at: null, cause: 'platform-refused',
  },
  change: {
    ...of, run: 'r', op: 'opt_out', part: 'news', target: 'c1', body: '{}', phase: 0,
    state: 'acked', planned_at: 1, sent_at: 5, ended_at: 5, guard: 'opt_out', approved: null,
  },
  returned: {
    ...of, crm: '1', part: 'news', id: 'ret', cause: 'opt_out', made_by: 1, run: 'r',
    state: 'rejected', attempts: 3, retry_at: 5, planned_at: 1, ended_at: 5,
  },
  origin: { ...of, id: '1', since: 1 },
  twin: { ...of, id: '1' },
  stated: { ...of, id: '1', part: 'news', says: 'opt_out', gone_at: null },
  recorded: {
    ...of, id: 'c1', ownership: 'created', body: '{"channels":{}}', shown: 'x', desired: 'x',
    seen_at: 1,
  },
  // Its trigger removes what is recorded as renamed.
  renamed: { ...of, id: 'c1' },
  absence: {
    ...of, first_at: 1, last_at: 1, readings: 2, reading: 'a', marked_at: 1, age_ms: 1,
    waited_ms: 5,
  },
  hold: {
    ...of, guard: 'delete', op: 'delete', part: '', target: 'c1', body: '', ids: '[]', stated: 0,
    withdraws: 0, undoes: '', is_listed: 1, at: 1,
  },
  unaudited: { writer: 'w', at: 1, key: 'ann', entry: '{}' },
} satisfies Record<string, Row>;
const { problem, returned, origin, stated, recorded, absence } = rows;
const change: Row = { ...rows.change, seq: 1 };
const conflict: Row = { ...problem, class: 'conflict', desired: null };
const unmanaged: Row = { ...conflict, cause: 'deleted-subscribed', decided: 'opt_out' };
const proof = JSON.stringify({ only: null, certificate: { source: true, platform: true } });
// prettier-ignore
const run: Row = {
  id: 'r', mode: 'full', status: 'done', started_at: 1, ended_at: 2, number: 5, summary: proof,
  asked: '{"mapping":"m"}',
};
const summary = (more: object) => JSON.stringify({ ...JSON.parse(proof), ...more });

interface Case {
  table: string;
  row: Row;
  /** Other values of the columns that count; each alone makes another row of it. */
  not: Record<string, Row[string][]>;
  /** Other values with which it is still the same. */
  also?: Record<string, Row[string][]>;
  beside?: [table: string, row: Row][];
  /** Returns what is found: nothing is false, 0, or an empty list. */
  finds(snapshot: Snapshot): unknown;
}

const other = { kind: ['template'], key: ['bob'] };
const record = [of.kind, of.key] as const;
/** Stages an opt-out, and excuses it if that is due. */
function excused({ staging, guarded }: Snapshot): number {
  const optOut = { op: 'opt_out', guard: 'opt_out', part: 'news', target: 'c1' } as const;
  staging.addPlanned({ ...of, ...optOut, body: '{}', phase: 0 });
  return guarded.excuse({ ...everything, guard: 'opt_out', run: 'this' });
}

// prettier-ignore
const cases: Record<string, Case> = {
  'problems.get': {
    table: 'problem', row: problem,
    not: { ...other, class: ['invalid'], part: ['product'], target: ['c1'] },
    finds: ({ problems }) => problems.get({ ...of, class: 'rejected', part: 'news' }),
  },
  'problems.drop': {
    table: 'problem', row: problem,
    not: { ...other, part: ['product'], target: ['c1'] }, also: { class: ['conflict'] },
    finds: ({ problems }) => problems.drop({ ...of, part: 'news' }),
  },
  'problems.parked': {
    table: 'problem', row: problem,
    not: { ...other, desired: [null] },
    finds: ({ problems }) => problems.parked(...record),
  },
  'problems.countParked': {
    table: 'problem', row: problem,
    not: { kind: ['template'], desired: [null] },
    finds: ({ problems }) => problems.countParked('contact'),
  },
  'problems.forgetUnnoticedOf': {
    table: 'problem', row: { ...problem, desired: null },
    not: { ...other, desired: ['x', ''] },
    finds: ({ problems }) => problems.forgetUnnoticedOf(of),
  },
  'problems.forgetUnnoticed': {
    table: 'problem', row: { ...problem, desired: null },
    not: { kind: ['template'], key: ['taken'], desired: ['x', ''] },
    finds: ({ problems }) => problems.forgetUnnoticed({ ...range, but: ['taken'] }),
  },
  'problems.dropUnnamed': {
    table: 'problem', row: problem,
    not: { kind: ['template'], key: ['taken'], desired: [null, ''], retry_at: [5] },
    finds: ({ problems }) => problems.dropUnnamed({ kind: 'contact', but: ['taken'] }),
  },
  'problems.adopt, of what is known': {
    table: 'problem', row: { ...unmanaged, value: 'a' },
    not: {
      ...other, class: ['invalid'], part: ['x'], reason: ['x'], fix: ['x'], value: ['b', null],
    },
    finds({ problems, staging }) {
      const known = { class: 'conflict', part: 'news', reason: 'no', fix: '', value: 'a' } as const;
      staging.addNoticed({ ...of, ...known, cause: 'deleted-subscribed' });
      return problems.adopt({ ...range, run: 'later', at: 9 }) === 0;
    },
  },
  'retryLater.due': {
    table: 'problem', row: { ...problem, retry_at: 5 },
    not: { kind: ['template'], desired: [null], retry_at: [6, null] },
    finds: ({ retryLater }) => retryLater.due('contact', 5),
  },
  'retryLater.release': {
    table: 'problem', row: problem,
    not: { ...other, desired: [null] },
    finds: ({ retryLater }) => retryLater.release(of),
  },
  'retryLater.parts': {
    table: 'problem', row: { ...unmanaged, key: 'news' },
    not: { kind: ['template'], class: ['invalid'], key: ['ann'] },
    finds: ({ retryLater }) => retryLater.parts('contact'),
  },
  'retryLater.conflicts': {
    table: 'problem', row: { ...unmanaged, decided: null },
    not: { kind: ['template'], class: ['invalid'], key: ['news'], decided: ['acknowledged'] },
    finds: ({ retryLater }) => retryLater.conflicts('contact', 9),
  },
  'unmanaged.decided': {
    table: 'problem', row: unmanaged,
    not: { ...other, cause: ['platform-refused'], decided: ['acknowledged', null] },
    finds: (snapshot) => snapshot.unmanaged.decided(...record, 'opt_out'),
  },
  'unmanaged.decide': {
    table: 'problem', row: unmanaged,
    not: { ...other, part: ['product'], cause: ['platform-refused'] },
    finds: (snapshot) =>
      snapshot.unmanaged.decide({ ...of, part: 'news', as: 'acknowledged', fix: '' }),
  },
  'journal.isPlanned': {
    table: 'change', row: { ...change, state: 'planned' },
    not: { ...other, state: ['sent', 'stale'] },
    finds: ({ journal }) => journal.isPlanned(...record),
  },
  'journal.isDoneSince': {
    table: 'change', row: change,
    not: { ...other, state: ['rejected', 'unknown'], ended_at: [4] }, also: { ended_at: [6] },
    finds: ({ journal }) => journal.isDoneSince(...record, 5),
  },
  'journal.isDone': {
    table: 'change', row: change,
    not: {
      kind: ['template'], key: ['bob'], run: ['s'], phase: [1], op: ['opt_in'],
      part: ['product'], target: ['c2'], state: ['sent'],
    },
    finds: ({ journal }) =>
      journal.isDone({
        ...of,
        key: 'bob',
        seq: 2,
        run: 'r',
        phase: 0,
        op: 'opt_out',
        part: 'news',
        target: 'c1',
        body: '{}',
        guard: undefined,
        state: 'planned',
        sentAt: undefined,
      }),
  },
  'journal.open': {
    table: 'change', row: { ...change, state: 'sent' },
    not: { kind: ['template'], state: ['planned', 'acked', 'rejected', 'stale'] },
    also: { state: ['unknown'] },
    finds: ({ journal }) => journal.open('contact'),
  },
  'journal.doubt': {
    table: 'change', row: { ...change, state: 'sent' },
    not: { kind: ['template'], state: ['planned', 'acked'], run: ['beside'] },
    finds: ({ journal }) => journal.doubt('contact', ['beside']),
  },
  'journal.hasLeft': {
    table: 'change', row: { ...change, state: 'planned' },
    not: { kind: ['template'], state: ['sent'], run: ['beside'] },
    finds: ({ journal }) => journal.hasLeft('contact', ['beside']),
  },
  'journal.prune': {
    table: 'unaudited', row: { writer: 'w', at: 1, change: 2, outcome: 'acked' },
    not: { change: [1] },
    beside: [['change', change]],
    finds({ journal, runs }) {
      runs.start({ id: 'new', mode: 'full', at: 1, asked: '{}' });
      journal.prune(2);
      return !journal.holds('r');
    },
  },
  'runChanges.lastAt': {
    table: 'change', row: change,
    not: { ...other, state: ['rejected'] },
    finds: ({ runChanges }) => runChanges.lastAt(...record) ?? 0,
  },
  'guarded.sentSince': {
    table: 'change', row: change,
    not: {
      guard: ['delete', null], sent_at: [4, null], run: ['this'], approved: ['plan'],
      state: ['planned', 'stale', 'rejected'],
    },
    also: { state: ['sent', 'unknown'], sent_at: [6] },
    finds: ({ guarded }) => guarded.sentSince({ guard: 'opt_out', since: 5, run: 'this' }),
  },
  'guarded.excuse': {
    table: 'change', row: { ...change, state: 'stale' },
    not: {
      kind: ['template'], key: ['bob'], part: ['product'], op: ['opt_in'], run: ['this'],
      state: ['acked', 'sent'], guard: ['delete'],
    },
    also: { state: ['rejected'], guard: [null] },
    beside: [['stated', stated], ['origin', origin]],
    finds: excused,
  },
  'guarded.excuse, by what was stated': {
    table: 'stated', row: stated,
    not: { kind: ['template'], id: ['2'], part: ['product'], says: ['none', 'unread'] },
    beside: [['change', { ...change, state: 'stale' }], ['origin', origin]],
    finds: excused,
  },
  'guarded.withdrawals.stated': {
    table: 'stated', row: stated,
    not: { kind: ['template'], part: ['product'], says: ['none', 'opt_in'], gone_at: [5] },
    also: { says: ['unread'] },
    finds: ({ guarded: { withdrawals } }) =>
      withdrawals
        .stated({ ...everything, kind: 'contact', guard: 'opt_in', parts: ['news'] })
        .reduce((sum, { n }) => sum + n, 0),
  },
  'guarded.canary.sent': {
    table: 'change', row: { ...change, op: 'opt_in', guard: 'opt_in' },
    not: { guard: ['delete'], state: ['sent', 'stale'], run: ['undo', 'one', 'before'] },
    also: { state: ['rejected'], run: ['fast'] },
    beside: [
      ['run', run],
      ['run', { ...run, id: 'fast', mode: 'fast', number: 6 }],
      ['run', { ...run, id: 'undo', mode: 'undo', number: 6 }],
      ['run', { ...run, id: 'one', mode: 'single', number: 6 }],
      ['run', { ...run, id: 'before', number: 4 }],
    ],
    finds: ({ guarded }) => guarded.canary.sent({ guard: 'opt_in', run: 'r' }),
  },
  'optOutReports.dueOf': {
    table: 'returned', row: returned,
    not: { ...other, state: ['sent', 'acked', 'needless'], retry_at: [6, null] },
    also: { state: ['planned', 'unknown'] },
    finds: ({ optOutReports }) => optOutReports.dueOf({ ...of, at: 5, count: 9 }),
  },
  'optOutReports.due': {
    table: 'returned', row: returned,
    not: { kind: ['template'], state: ['sent', 'acked', 'needless'], retry_at: [6, null] },
    finds: ({ optOutReports }) => optOutReports.due({ kind: 'contact', at: 5, count: 9 }),
  },
  'optOutReports.doubt': {
    table: 'returned', row: { ...returned, state: 'sent' },
    not: { kind: ['template'], state: ['planned', 'rejected'], run: ['beside'] },
    finds: ({ optOutReports }) => optOutReports.doubt('contact', ['beside']),
  },
  'optOutReports.release': {
    table: 'returned', row: returned,
    not: { ...other, state: ['planned', 'acked'] },
    finds: ({ optOutReports }) => optOutReports.release(of),
  },
  'optOutReports.prune': {
    table: 'returned', row: returned,
    not: { key: ['bob'], state: ['planned', 'sent', 'unknown'], ended_at: [6, null] },
    also: { state: ['acked', 'needless'] },
    beside: [['recorded', { ...recorded, key: 'bob' }]],
    finds: ({ optOutReports }) => optOutReports.prune(6),
  },
  'recorded.ofOrigin': {
    table: 'origin', row: origin,
    not: { kind: ['template'], id: ['2'], key: ['bob', 'this'] },
    beside: [['recorded', recorded], ['recorded', { ...recorded, key: 'this' }]],
    finds: (snapshot) => snapshot.recorded.ofOrigin('contact', '1', 'this'),
  },
  'recorded.hasLaterOrigin': {
    table: 'origin', row: { ...origin, id: '2', since: 2 },
    not: { ...other, since: [1] },
    beside: [['origin', origin]],
    finds: (snapshot) => snapshot.recorded.hasLaterOrigin('contact', '1', 'ann'),
  },
  'recorded.everOfId': {
    table: 'recorded', row: recorded,
    not: { kind: ['template'], key: ['this'], id: ['c2', null] },
    also: { body: ['{"renamed":[{"id":"c1"}]}'] },
    finds: (snapshot) => snapshot.recorded.everOfId({ kind: 'contact', id: 'c1', notKey: 'this' }),
  },
  'recorded.everOfId, of a renamed contact': {
    table: 'recorded', row: { ...recorded, id: null, body: '{"renamed":[{"id":"c1"}]}' },
    not: { kind: ['template'], key: ['this'], body: ['{"renamed":[{"id":"c2"}]}', '{}'] },
    finds: (snapshot) => snapshot.recorded.everOfId({ kind: 'contact', id: 'c1', notKey: 'this' }),
  },
  'stated.optOutsOf': {
    table: 'stated', row: { ...stated, stated_by: 'm' },
    not: { ...other, says: ['none', 'opt_in'] }, also: { says: ['unread'] },
    finds: (snapshot) => snapshot.stated.optOutsOf({ ...of, ids: [], mapping: 'm' }),
  },
  'stated.optOutsOf, by an id': {
    table: 'stated', row: { ...stated, key: 'former' },
    not: { kind: ['template'], id: ['2'], says: ['none', 'unread'] },
    finds: (snapshot) => snapshot.stated.optOutsOf({ ...of, ids: ['1'], mapping: 'm' }),
  },
  'stated.optOutsOf, by an id that has another word for the part under this key': {
    table: 'stated', row: { ...stated, says: 'none' },
    not: { ...other, id: ['2'], part: ['product'] }, also: { says: ['opt_in'] },
    beside: [['stated', { ...stated, key: 'former' }]],
    finds: ({ stated: { optOutsOf } }) =>
      !optOutsOf({ ...of, ids: ['1'], mapping: 'm' }).includes('news'),
  },
  'absences.waitAnew': {
    table: 'absence', row: absence,
    not: { ...other, waited_ms: [null] },
    finds: ({ absences }) => absences.waitAnew({ ...of, at: 9, platformAt: undefined }),
  },
  'absences.summary': {
    table: 'absence', row: absence,
    not: { ...other, key: ['bob', 'noted', 'gone'] },
    beside: [
      ['recorded', recorded],
      ['recorded', { ...recorded, key: 'noted', ownership: 'noted' }],
      ['recorded', { ...recorded, key: 'gone', id: null }],
    ],
    finds: ({ absences }) => absences.summary({ kind: 'contact', adopted: false }).due,
  },
  'runs.proven': {
    table: 'run', row: run,
    not: {
      mode: ['fast', 'undo'],
      status: ['failed', 'held', 'interrupted', 'running'],
      summary: [
        summary({ only: 'contacts' }),
        summary({ certificate: { source: false, platform: true } }),
        summary({ certificate: { source: true, platform: null } }),
        summary({ contacts: { prevented: { sample: 1 } } }),
        summary({ deferred: { delete: 1 } }),
      ],
    },
    also: { status: ['rejected'], summary: [summary({ deferred: { delete: 0 } })] },
    finds: ({ runs }) => runs.proven(),
  },
  'runs.lastMapping': {
    table: 'run', row: run,
    not: {
      id: ['this'], mode: ['undo', 'single'], status: ['failed', 'running'], asked: ['{}'],
      summary: [summary({ only: 'templates' })],
    },
    also: {
      mode: ['fast'], status: ['rejected', 'held'], summary: [summary({ only: 'contacts' })],
    },
    finds: ({ runs }) => runs.lastMapping('this'),
  },
};

describe.each(Object.entries(cases))(
  '%s',
  (_, { table, row, not, also = {}, beside = [], finds }) => {
    function found({ snapshot, db, put }: ReturnType<typeof open>, variant: Row): boolean {
      snapshot.staging.clear();
      for (const name of new Set([table, 'run', 'change', ...beside.map(([of]) => of)]))
        db.exec(`delete from ${name}`);
      for (const one of beside) put(...one);
      put(table, variant);
      const is = snapshot.transaction(() => finds(snapshot));
      return Array.isArray(is) ? is.length > 0 : Boolean(is);
    }

    test('is about one row, and about no other', () => {
      const opened = open();
      const foundIn = (of: Case['not']) =>
        Object.entries(of).flatMap(([name, values]) =>
          values.map((value) => [name, value, found(opened, { ...row, [name]: value })]),
        );
      expect(found(opened, row)).toBe(true);
      expect(foundIn(also).filter(([, , is]) => !is)).toEqual([]);
      expect(foundIn(not).filter(([, , is]) => is)).toEqual([]);
    });
  },
);

test.each([
  ['problem', problem, ({ retryLater }: Snapshot) => retryLater.release(of)],
  ['returned', returned, ({ optOutReports }: Snapshot) => optOutReports.release(of)],
])('what is released of a %s is tried at once, as if for the first time', (table, row, release) => {
  const { snapshot, db, put } = open();
  put(table, { ...row, retry_at: 5 });
  snapshot.transaction(() => release(snapshot));
  const after = db.prepare(`select attempts, retry_at from ${table}`).get();
  expect(after).toEqual({ attempts: 0, retry_at: 0 });
});

test('a purge leaves no row about the record in any table, and every row about others', () => {
  const { snapshot, db, put } = open();
  const names = db.prepare(`select name from sqlite_schema where type = 'table'`).pluck().all();
  const withKey = names.map(String).filter((name) => {
    const columns = db.prepare(`pragma table_info(${name})`).all() as { name: string }[];
    return columns.some((column) => column.name === 'key');
  });
  expect(Object.keys(rows).toSorted()).toEqual(withKey.toSorted());
  for (const [table, row] of Object.entries(rows)) {
    put(table, row);
    put(table, { ...row, key: 'bob', ...('id' in row && { id: '2' }) });
  }
  snapshot.transaction(() => snapshot.purge.rows('contact', 'ann', ['1']));
  for (const table of withKey) {
    const left = db.prepare(`select key from ${table}`).pluck().all();
    expect([table, ...left]).toEqual([table, 'bob']);
  }
});
