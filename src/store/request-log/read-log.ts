/** Reads the request log, also while another process writes it. */
import { existsSync } from 'node:fs';
import type Database from 'better-sqlite3';
import { Invalid } from '../../domain/errors.ts';
import { openToLook, waiterFor } from '../database/database-access.ts';
import { isDamage } from '../damage-check.ts';
import { isOurs, newer, type StoredRequest, version } from './log-file.ts';
import { type Content, type Secrets, secretsOf } from './sealed-rows.ts';

/** Selects requests. Each field that is not undefined leaves out others. */
export interface RequestFilter {
  /** The earliest time, in milliseconds since the epoch. */
  since: number;
  run: string | undefined;
  /** A route, or the first word of several. */
  route: string | undefined;
  /** Whether only requests without a 2xx response are wanted. */
  failed: boolean | undefined;
  /** An address, or a function that recognizes one. */
  person: string | ((address: string) => boolean) | undefined;
}

/** One logged request. */
export type LoggedRequest = Omit<StoredRequest, 'person' | 'contact' | 'content'> & Content;

/** The newest requests first, and how many more there are. */
export interface LoggedRequests {
  newest: LoggedRequest[];
  more: number;
}

/**
 * Returns the `last` newest requests that the filter selects, or undefined if there is no log yet.
 * `key` is the key of the do-not-contact list. Throws Invalid if the log is damaged or was written
 * with another key, and Busy.
 */
export function readRequests(
  { path, key }: { path: string; key: string | undefined },
  filter: RequestFilter,
  last: number,
): LoggedRequests | undefined {
  return withLog(path, (db) => {
    const secrets = secretsOf(key ?? '');
    if (key === undefined || !isOurs(db, secrets)) {
      throw new Invalid(
        `${path}: this request log was written with the key of another do-not-contact list`,
        { fix: 'put that key back; otherwise the next run begins the log anew' },
      );
    }
    return select(db, secrets, filter, last);
  });
}

/** The failed requests of a run, on one route and with one status. */
export interface FailedRequests {
  route: string;
  /** Null if there was no answer. */
  status: number | null;
  n: number;
  /** When the last one was sent, in milliseconds since the epoch. */
  at: number;
}

/** The number of rows that `failedOf` looks through. */
const most = 150_000;

/**
 * Counts the requests of a run that were refused or not answered. `since` is when the log begins;
 * undefined if it holds nothing. Returns undefined if there is no log yet. Throws as
 * `readRequests` does.
 */
export function failedOf(
  path: string,
  { run, from, to }: { run: string; from: number; to: number },
): { since: number | undefined; failed: FailedRequests[] } | undefined {
  return withLog(path, (db) => {
    const first = db.prepare<[], { id: number; at: number }>(
      'select id, at from request order by id limit 1',
    );
    const last = db.prepare<[], { id: number }>('select max(id) id from request');
    const oldest = first.get();
    if (!oldest) return { since: undefined, failed: [] };
    const end = (last.get()?.id ?? 0) + 1;
    const begin = idAt(db, from, { low: oldest.id, high: end });
    const past = idAt(db, to, { low: begin, high: end });
    const bound = { run, begin, end: Math.min(past, begin + most) };
    const failed = db.prepare<[typeof bound], FailedRequests>(
      `select route, status, count(*) n, max(at) at from request
       where id between @begin and @end and run = @run
         and (status is null or status not between 200 and 299)
       group by route, status order by n desc`,
    );
    return { since: oldest.at, failed: failed.all(bound) };
  });
}

/**
 * Returns, by route, the newest answer 429 and how many there are among the newest rows. Throws as
 * `readRequests` does.
 */
export function lastRefused(path: string): Omit<FailedRequests, 'status'>[] {
  const found = withLog(path, (db) =>
    db
      .prepare<[number], Omit<FailedRequests, 'status'>>(
        `select route, count(*) n, max(at) at from request
         where status = 429 and id > (select max(id) from request) - ?
         group by route order by at desc`,
      )
      .all(most),
  );
  return found ?? [];
}

/** Returns the id of the first row from `at` on: rows are written in the order of their times. */
function idAt(db: Database.Database, at: number, { low, high }: { low: number; high: number }) {
  const next = db.prepare<[number], { at: number }>(
    'select at from request where id >= ? order by id limit 1',
  );
  let [from, to] = [low, high];
  while (from < to) {
    const middle = Math.floor((from + to) / 2);
    if ((next.get(middle)?.at ?? at) < at) from = middle + 1;
    else to = middle;
  }
  return from;
}

function withLog<T>(path: string, read: (db: Database.Database) => T): T | undefined {
  if (!existsSync(path)) return undefined;
  const db = openToLook(path, { what: 'request log' });
  try {
    const patiently = waiterFor(db, path, { what: 'request log' });
    return patiently(() => {
      const at = Number(db.pragma('user_version', { simple: true }));
      if (at > version) throw newer(path);
      return at === 0 ? undefined : read(db);
    });
  } catch (error) {
    if (!isDamage(error)) throw error;
    throw new Invalid(`${path}: this request log is damaged, it is not a readable database`, {
      fix: 'the next run begins it anew',
    });
  } finally {
    db.close();
  }
}

function select(
  db: Database.Database,
  secrets: Secrets,
  { since, run, route, failed, person }: RequestFilter,
  last: number,
): LoggedRequests {
  // The keyed hashes of the people who are meant; undefined if everybody is.
  let people = typeof person === 'string' ? [secrets.mark('person', person)] : undefined;
  if (typeof person === 'function') {
    const each = db.prepare<[], { person: Buffer; content: Buffer }>(
      'select person, content from request where person is not null group by person',
    );
    people = [];
    for (const row of each.iterate()) {
      if (person(secrets.open(row.content).person ?? '')) people.push(row.person);
    }
  }
  const conditions = [
    'at >= @since',
    ...(run === undefined ? [] : ['run = @run']),
    ...(route === undefined ? [] : ["(route = @route or route like @route || '.%')"]),
    ...(failed ? ['(status is null or status not between 200 and 299)'] : []),
    ...(people ? [`person in (${people.map((one) => `x'${one.toString('hex')}'`).join()})`] : []),
  ].join(' and ');
  const bound = { since, run, route, last };
  const count = db.prepare<[typeof bound], { n: number }>(
    `select count(*) n from request where ${conditions}`,
  );
  const list = db.prepare<[typeof bound], StoredRequest>(
    `select * from request where ${conditions} order by id desc limit @last`,
  );
  const newest = list
    .all(bound)
    .map(({ at, run, route, status, attempt, ms, size, rows, content }) => {
      const plain = { at, run, route, status, attempt, ms, size, rows };
      return { ...plain, ...secrets.open(content) };
    });
  return { newest, more: (count.get(bound)?.n ?? 0) - newest.length };
}
