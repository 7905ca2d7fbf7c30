/** The request log, in a real memory: its bounds and its failures. */
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import type { Attempt } from '../../../src/domain/exchange.ts';
import { untilHolds, scratchFolder } from '../../support/waiting.ts';
import { openMemory, readMemory } from '../../../src/store/memory/memory.ts';
import { collectRequests, type LogOptions } from '../../../src/store/memory/request-log.ts';
import type { RequestFilter } from '../../../src/store/memory/requests.ts';
import { systemClock } from '../../../src/http/system-clock.ts';

const all: RequestFilter = {
  since: 0,
  run: undefined,
  route: undefined,
  failed: undefined,
  person: undefined,
};
const day = 86_400_000;

function opened(options: Partial<LogOptions> = {}) {
  const folder = scratchFolder();
  const path = join(folder, 'snapshot.sqlite-memory');
  const place = { path, keyFile: `${path}-key` };
  const randomHex = () => 'a1'.repeat(8);
  const memory = openMemory(place, { known: undefined, acceptLost: false, randomHex });
  onTestFinished(memory.close);
  const warnings: string[] = [];
  const open = (other: Partial<LogOptions> = {}) =>
    collectRequests({
      requests: memory.requests,
      keepMs: 14 * day,
      bytes: 1e8,
      hides: ['key_live'],
      clock: { ...systemClock, now: () => 100 * day },
      warn: (reason) => void warnings.push(reason),
      ...options,
      ...other,
    });
  /** As another process reads it. */
  const read = (filter: Partial<RequestFilter> = {}, last = 10) => {
    const other = readMemory(place);
    try {
      return other?.requests.read({ ...all, ...filter }, last);
    } finally {
      other?.close();
    }
  };
  return { path, memory, warnings, open, read };
}

function attempt(of: Partial<Attempt> = {}): Attempt {
  return {
    at: 100 * day,
    ms: 5,
    route: 'contacts.enrol',
    method: 'POST',
    path: '/api/contacts/channel/ch_news',
    body: '{"email":"ann@example.com"}',
    attempt: 1,
    person: 'ann@example.com',
    answer: { status: 201, headers: {}, body: '{}' },
    ...of,
  };
}

test('keeps what was recorded, with the run of its own connection', () => {
  const { open, read } = opened();
  const log = open();
  const [one, other] = [log.writer(), log.writer()];
  one.setRun('r1');
  one.record(attempt());
  other.setRun('r2');
  other.record(attempt({ person: 'bob@example.com' }));
  one.setRun(undefined);
  one.record(attempt({ attempt: 2 }));
  log.close();
  expect(read()?.newest.map(({ run, person }) => [run, person])).toEqual([
    [null, 'ann@example.com'],
    ['r2', 'bob@example.com'],
    ['r1', 'ann@example.com'],
  ]);
});

test('writes while the process goes on, so that another process can read it', async () => {
  const { open, read } = opened();
  const log = open();
  const { record } = log.writer();
  for (let count = 0; count < 500; count += 1) record(attempt());
  expect(read()?.newest).toEqual([]);
  await untilHolds(() => expect(read()).toMatchObject({ newest: { length: 10 }, more: 490 }));
  log.close();
});

test('keeps no read, a part of a long text, and never the API key', () => {
  const { open, read } = opened();
  const log = open();
  const { record } = log.writer();
  const body = JSON.stringify({ content: 'x'.repeat(10_000) });
  record(attempt({ method: 'GET', body: undefined, answer: { status: 200, headers: {}, body } }));
  const echo = { status: 401, headers: {}, body: `{"message":"key_live is unknown"}` };
  record(attempt({ route: 'templates.update', body, answer: echo }));
  log.close();
  const [last, first] = read()?.newest ?? [];
  expect(first).toMatchObject({ request: null, answer: null, size: body.length });
  expect(last?.request).toMatch(/^\{"content":"x+…$/);
  expect(last?.request?.length).toBeLessThan(4_098);
  expect(last?.answer).toBe('{"message":"‹key› is unknown"}');
});

test('keeps no name or other attribute of a contact', () => {
  const { open, read } = opened();
  const log = open();
  const contact = { id: 'c1', email: 'ann@example.com', firstName: 'Ann', properties: { age: 7 } };
  const body = JSON.stringify({ contact, event: 'contact.created' });
  log.writer().record(attempt({ answer: { status: 201, headers: {}, body } }));
  const cutOff = { status: 500, headers: {}, body: body.slice(0, 60) };
  log.writer().record(attempt({ answer: cutOff }));
  log.close();
  expect(read()?.newest.map(({ answer }) => answer)).toEqual([
    '…',
    '{"contact":{"id":"c1","email":"ann@example.com"},"event":"contact.created"}',
  ]);
});

test('drops requests that are too old, and the oldest of too many', () => {
  const { path, open, read } = opened({ bytes: 1e6 });
  const log = open();
  const { record } = log.writer();
  for (let count = 0; count < 3_000; count += 1) record(attempt({ at: 80 * day, ms: 1 }));
  record(attempt({ ms: 2 }));
  log.close();
  expect(read()).toMatchObject({ newest: [{ ms: 2 }], more: 0 });
  const full = open();
  const body = 'x'.repeat(2_000);
  for (let count = 0; count < 6_000; count += 1) full.writer().record(attempt({ ms: count, body }));
  full.close();
  const { n, bytes } = sizeIn(path);
  expect(bytes).toBeLessThanOrEqual(1e6);
  expect(n).toBeGreaterThan(100);
  expect(read()?.newest[0]?.ms).toBe(5_999);
});

test('forgets what it still collects of a person', () => {
  const { memory, open, read } = opened();
  const log = open();
  const { record, flush } = log.writer();
  record(attempt());
  record(attempt({ person: undefined, contact: 'c1' }));
  record(attempt({ person: 'bob@example.com' }));
  flush();
  memory.forget({ key: 'ann@example.com', contacts: ['c1'] }, { at: 1, by: 'eva' });
  log.close();
  expect(read()?.newest.map(({ person }) => person)).toEqual(['bob@example.com']);
});

test('counts the bytes of its rows, whatever drops them', () => {
  const { path, memory, open } = opened();
  const log = open();
  const { record, flush } = log.writer();
  for (let count = 0; count < 20; count += 1)
    record(attempt({ person: `p${count % 5}@example.com` }));
  flush();
  memory.forget({ key: 'p1@example.com', contacts: [] }, { at: 1, by: 'eva' });
  log.close();
  const { n, bytes, counted } = sizeIn(path);
  expect(n).toBe(16);
  expect(counted).toBe(bytes);
  memory.forgetRequests();
  expect(sizeIn(path)).toEqual({ n: 0, bytes: 0, counted: 0 });
});

/** The rows, the bytes that they take, and the bytes that the memory has counted. */
function sizeIn(path: string) {
  const db = new Database(path, { readonly: true });
  try {
    return db
      .prepare<[], { n: number; bytes: number; counted: number }>(
        `select count(*) n, coalesce(sum(length(content) + 160), 0) bytes,
           (select cast(value as integer) from meta where name = 'request-bytes') counted
         from request`,
      )
      .get()!;
  } finally {
    db.close();
  }
}

test('does not wait for a process that locks the file', () => {
  const { path, warnings, open, read } = opened();
  const log = open();
  const other = new Database(path);
  other.exec('begin immediate');
  log.writer().record(attempt());
  log.close();
  expect(warnings).toEqual([expect.stringContaining('database is locked')]);
  other.exec('rollback');
  other.close();
  expect(read()?.newest).toEqual([]);
});
