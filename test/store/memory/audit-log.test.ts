import { generateKeyPairSync } from 'node:crypto';
import { appendFileSync, existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  decodeEntry,
  encodeEntry,
  readEntry,
  type WriteEntry,
} from '../../../src/store/memory/audit-entry.ts';
import type { AuditLog } from '../../../src/store/memory/audit-log.ts';
import { readMemoryKey } from '../../../src/store/memory/memory-key.ts';
import { type Memory, openMemory } from '../../../src/store/memory/memory.ts';
import { verifyLog } from '../../../src/store/memory/verify-log.ts';

let folder = '';
let memory: Memory;
let log: AuditLog;
const file = () => join(folder, 'acme.sqlite-memory');
const keyFile = () => `${file()}-key`;
const opening = { known: undefined, acceptLost: false, randomHex: () => 'a1'.repeat(8) };

function open(): void {
  memory = openMemory({ path: file(), keyFile: keyFile() }, opening);
  ({ log } = memory);
}

/** As `openssl genpkey -algorithm ed25519` does it. */
function addKey(): void {
  const { privateKey } = generateKeyPairSync('ed25519');
  appendFileSync(keyFile(), privateKey.export({ type: 'pkcs8', format: 'pem' }));
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'audit-'));
  open();
});
afterEach(() => memory.close());

const optOut = { part: '*', cause: 'blocked', contact: null, after: null, by: 5 } as const;
const write = (at: number, more: Partial<WriteEntry> = {}): WriteEntry => ({
  type: 'write',
  at,
  run: 1,
  op: 'opt_in',
  part: 'ch_news',
  rule: 'wanted-in',
  outcome: 'acked',
  before: 'none',
  status: 200,
  says: 'opt_in',
  record: '0011223344556677',
  statedAt: null,
  approval: null,
  request: null,
  after: null,
  template: null,
  ...more,
});
const fill = (n: number) =>
  log.append(
    Array.from({ length: n }, (_, at) => ({ entry: write(at), person: `p${at % 7}@example.com` })),
  );

/** Changes the file behind the log's back. */
function tamper(sql: string): void {
  memory.close();
  const db = new Database(file());
  db.exec(sql);
  db.close();
  open();
}

describe('the writes of runs', () => {
  const none = { reason: null, evidence: null, as: null, statement: null, signer: null };
  const decided = { what: 'approve', name: 'ben', about: 'part', plan: 'plan', changes: null };
  const begun = (id: string, at: number) =>
    ({
      type: 'run',
      at,
      id,
      mode: 'full',
      by: 'command',
      name: 'anna',
      mapping: null,
      undoes: null,
    }) as const;
  beforeEach(() =>
    log.append([
      { entry: write(4, { run: 0 }) },
      { entry: begun('one', 10) },
      { entry: write(11), run: 'one' },
      { entry: begun('two', 12) },
      { entry: write(13), run: 'two' },
      { entry: { type: 'decision', at: 15, ...none, ...decided } },
      { entry: write(16, { approval: 'part' }), run: 'one' },
      { entry: write(17), run: 'one' },
    ]),
  );
  const numbers = (rows: { seq: number }[]) => rows.map(({ seq }) => seq);

  test('belong to their run, whatever was written between them', () => {
    const { count, after } = log.writesOfRuns(undefined);
    expect(numbers(log.noWrites({}))).toEqual([6, 4, 2]);
    expect([2, 4, 6].map(count)).toEqual([3, 1, 0]);
    expect(numbers(after(2, 2, 9))).toEqual([3, 7, 8]);
    expect(numbers(after(2, 3, 1))).toEqual([7]);
  });

  test('are listed alone if no entry of a run is there', () => {
    const of = { before: 99, from: undefined, to: undefined, count: 9 };
    expect(numbers(log.loneWrites(of))).toEqual([1]);
    expect(numbers(log.loneWrites({ ...of, from: 5 }))).toEqual([]);
  });

  test('keep their run in a period and in a plan in which only they are', () => {
    expect(numbers(log.noWrites({ from: 16 }))).toEqual([2]);
    expect(numbers(log.noWrites({ from: 14, to: 15 }))).toEqual([2]);
    for (const plan of ['plan', 'part']) {
      const { runs, count, after } = log.writesOfRuns(plan);
      expect(numbers(log.noWrites({ plan, runs }))).toEqual([6, 2]);
      expect([2, 4].map(count)).toEqual([1, 0]);
      expect(numbers(after(2, 2, 9))).toEqual([7]);
    }
  });
});

describe('entries', () => {
  test('an entry is read as it was written', () => {
    expect(decodeEntry(encodeEntry(write(5, { statedAt: 3 })))).toEqual(write(5, { statedAt: 3 }));
  });

  test('an entry of an older version lacks a field that came later, and is read with null', () => {
    const short = encodeEntry(write(5)).replace(/,null,null\]$/, ']');
    expect(decodeEntry(short)).toEqual(write(5));
  });

  test('a decision that an older version remembered or stored lacks who called', () => {
    const old = { type: 'decision', at: 1, what: 'allow', name: 'eva', reason: 'r' };
    const told = { ...old, about: null, evidence: null };
    const unsigned = { as: null, statement: null, signer: null, plan: null, changes: null };
    expect(readEntry(told)).toEqual({ ...told, ...unsigned });
    const body = '["decision",1,"allow","eva","r"]';
    expect(decodeEntry(body)).toEqual({ ...told, ...unsigned });
    expect(encodeEntry(decodeEntry(body))).toBe(body);
  });

  test('the entries of a person are found by the address, and no address is in the file', () => {
    fill(20);
    const person = log.people.find('p3@example.com');
    expect(log.about(person!.id).map(({ seq }) => seq)).toEqual([4, 11, 18]);
    expect(log.people.find('nobody@example.com')).toBeUndefined();
    memory.close();
    expect(readFileSync(file()).includes('example.com')).toBe(false);
    open();
  });

  test('what a killed caller appended is known, so that it is not appended again', () => {
    log.append([{ entry: write(1) }], [['a', 17]]);
    expect(log.reached('a')).toBe(17);
    expect(log.reached('b')).toBe(0);
  });
});

test('a memory that cannot be made whole is not made at all', () => {
  const path = join(folder, 'other.sqlite');
  const full = () => {
    throw new Error('the disk is full');
  };
  const place = { path, keyFile: keyFile() };
  expect(() => openMemory(place, { ...opening, randomHex: full })).toThrow('full');
  expect(existsSync(path)).toBe(false);
});

describe('verification', () => {
  const changed = 'this entry was changed';
  test('a log as it was written has no fault', () => {
    fill(100);
    log.checkpoint(5);
    log.append([{ entry: write(101) }]);
    expect(verifyLog(log)).toMatchObject({ entries: 101, last: 101, signedUpTo: 100, faults: [] });
  });

  test.each([
    [
      'a changed text',
      `update audit set body = replace(body, 'none', 'opt_out') where seq = 7`,
      7,
      changed,
    ],
    ['a hash that is a text', `update audit set hash = 'x' where seq = 7`, 7, changed],
    ['a text that is bytes', `update audit set body = x'00' where seq = 7`, 7, changed],
    ['another person', `update audit set person = 1 where seq = 7`, 7, changed],
    ['a removed entry', 'delete from audit where seq = 7', 7, 'this entry is missing'],
    ['removed two', 'delete from audit where seq in (7,8)', 7, '2 entries are missing, up to 8'],
    ['a removed beginning', 'delete from audit where seq = 1', 1, 'this entry is missing'],
    ['a removed end', 'delete from audit where seq > 18', 19, '2 entries are missing, up to 20'],
    [
      'two swapped entries',
      'update audit set seq = -7 where seq = 7; update audit set seq = 7 where seq = 8; update audit set seq = 8 where seq = -7',
      7,
      'this is entry 8, in the wrong place',
    ],
  ])('%s is found and named', (_, sql, seq, what) => {
    fill(20);
    log.checkpoint(5);
    tamper(sql);
    expect(verifyLog(log).faults).toContainEqual({ seq, what });
  });

  test('a chain that was computed anew does not fit the signed checkpoint', () => {
    fill(20);
    log.checkpoint(5);
    tamper(
      `create table kept as select * from checkpoint; delete from audit; delete from checkpoint`,
    );
    log.append(
      Array.from({ length: 21 }, (_, at) => ({ entry: write(at, { before: 'opt_out' }) })),
    );
    tamper('insert into checkpoint select * from kept');
    const what = 'the entries up to here are not those that were signed';
    expect(verifyLog(log).faults).toEqual([{ seq: 20, what }]);
  });

  test('entries that are missing at the end are found by an end that is remembered elsewhere', () => {
    fill(20);
    const head = log.head();
    tamper('delete from audit where seq > 18');
    expect(verifyLog(log).faults).toEqual([]);
    expect(verifyLog(log, { known: head }).faults).toEqual([
      { seq: 19, what: '2 entries are missing, up to 20' },
    ]);
  });
});

describe('the key', () => {
  test('a new key is named by an entry, and both are valid', () => {
    fill(3);
    log.checkpoint(5);
    const old = memory.key.signing;
    memory.close();
    addKey();
    open();
    const next = memory.key.signing;
    expect(next.id).not.toBe(old.id);
    fill(1);
    log.checkpoint(6);
    const last = [...log.entries(4)].map(({ body }) => decodeEntry(body));
    expect(last).toEqual([{ type: 'key', at: 6, id: next.id, publicKey: next.publicKey }]);
    const { keys, faults, signedUpTo } = verifyLog(log);
    expect({ keys, faults, signedUpTo }).toEqual({
      keys: [old.id, next.id],
      faults: [],
      signedUpTo: 5,
    });
  });

  test('a further key changes nothing but the signatures: what was kept is found as before', () => {
    fill(20);
    const list = memory.list();
    list.write([{ key: 'ann@example.com', ids: [], adds: [optOut], ends: [] }], 5);
    memory.close();
    const { secret } = readMemoryKey(keyFile()) ?? {};
    addKey();
    open();
    expect(memory.key.secret).toBe(secret);
    expect(log.people.find('p3@example.com')).toBeDefined();
    expect(memory.list().concerning({ key: 'ann@example.com', ids: [] })).toHaveLength(1);
  });
});

describe('keeping', () => {
  test('older entries are removed, and the rest is still proven', () => {
    fill(20);
    log.checkpoint(5);
    expect(log.prune(10, 99)).toBe(10);
    log.checkpoint(100);
    expect(verifyLog(log)).toMatchObject({ first: 11, last: 21, signedUpTo: 21, faults: [] });
    tamper('delete from audit where seq = 11');
    expect(verifyLog(log).faults[0]?.seq).toBeLessThan(12);
  });

  test.each([
    ['by 60 days', 40, 0],
    ['by years, as a clock that jumps ahead tells: the rest stays', 72, 4000],
  ])('entries that are old %s are removed', (_, removed, jump) => {
    const day = 86_400_000;
    const last = 100 + jump;
    for (let at = 0; at <= 100; at += 1) {
      log.append([{ entry: write(at * day) }]);
      log.checkpoint(at * day);
    }
    expect(log.prune((last - 60) * day, last * day)).toBe(removed);
    log.append([{ entry: write(last * day) }]);
    log.checkpoint(last * day);
    // The next run, at the same wrong time, and the one after it.
    expect(log.prune((last - 60) * day, last * day)).toBeLessThan(2);
    expect(log.prune((last - 59) * day, (last + 1) * day)).toBeLessThan(3);
    expect(verifyLog(log).faults).toEqual([]);
  });

  test('an erasure keeps the proof and drops the person', () => {
    fill(20);
    const mark = log.people.find('p3@example.com')!;
    memory.forget({ key: 'p3@example.com', contacts: [] }, { at: 50, by: 'ann on mail-1' });
    expect(log.people.find('p3@example.com')).toBeUndefined();
    expect(log.about(mark.id)).toHaveLength(3);
    expect(verifyLog(log).faults).toEqual([]);
    log.append([{ entry: write(60), person: 'p3@example.com' }]);
    expect(log.people.find('p3@example.com')).not.toEqual(mark);
  });
});
