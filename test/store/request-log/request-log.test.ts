/** The request log by itself, on a real file: its bounds, its failures and its keys. */
import { mkdtempSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import type { Attempt } from '../../../src/domain/exchange.ts';
import { untilHolds } from '../../support/waiting.ts';
import { type LogOptions, openRequestLog } from '../../../src/store/request-log/request-log.ts';
import { systemClock } from '../../../src/http/system-clock.ts';
import { readRequests, type RequestFilter } from '../../../src/store/request-log/read-log.ts';

const key = 'ab'.repeat(32);
const all: RequestFilter = {
  since: 0,
  run: undefined,
  route: undefined,
  failed: undefined,
  person: undefined,
};
const day = 86_400_000;

function opened(options: Partial<LogOptions> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'snapshot.sqlite.requests.sqlite');
  const warnings: string[] = [];
  const open = (other: Partial<LogOptions> = {}) =>
    openRequestLog({
      path,
      key,
      keepMs: 14 * day,
      bytes: 1e8,
      hides: ['key_live'],
      clock: { ...systemClock, now: () => 100 * day },
      warn: (reason) => void warnings.push(reason),
      ...options,
      ...other,
    });
  const read = (filter: Partial<RequestFilter> = {}, last = 10) =>
    readRequests({ path, key }, { ...all, ...filter }, last);
  return { folder, path, warnings, open, read };
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
  expect(statSync(path).size).toBeLessThanOrEqual(1e6);
  expect(read()?.newest[0]?.ms).toBe(5_999);
});

test('starts anew with another key, because nobody can read the old rows', () => {
  const { path, open, read } = opened();
  const log = open();
  log.writer().record(attempt());
  log.close();
  const other = 'cd'.repeat(32);
  expect(() => readRequests({ path, key: other }, all, 10)).toThrow('another do-not-contact list');
  open({ key: other }).close();
  expect(readRequests({ path, key: other }, all, 10)).toEqual({ newest: [], more: 0 });
  expect(() => read()).toThrow('another do-not-contact list');
});

test('says once that it cannot be written, and goes on', () => {
  // A full device in the place of the file.
  const { path, warnings, open } = opened();
  symlinkSync('/dev/full', path);
  const log = open();
  log.writer().record(attempt());
  log.writer().record(attempt());
  log.close();
  expect(warnings).toEqual([
    expect.stringMatching(/^some requests are missing .*requests\.sqlite/),
  ]);
  expect(() => log.writer().forget({ address: 'ann@example.com', contacts: [] })).toThrow(
    'cannot be opened',
  );
});

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
