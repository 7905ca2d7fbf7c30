/**
 * The request log: what was sent to the platform lately. A row states in plain text when a request
 * was sent, for which run, on which route and with which result. Everything else is encrypted, and
 * a person is a keyed hash; both keys come from the key file.
 */
import { createCipheriv, createDecipheriv, createSecretKey, hash } from 'node:crypto';
import { storedJson } from '../../domain/stored-json.ts';
import { contactKey } from '../../domain/values/contact-key.ts';
import { randomBytesOf } from './memory-key.ts';
import type { MemoryTables } from './memory-tables.ts';

/** The encrypted part of a row. */
export interface Content {
  method: string;
  path: string;
  person: string | null;
  /** The platform's id of the request. */
  requestId: string | null;
  request: string | null;
  answer: string | null;
  failure: string | null;
}

interface RequestRow {
  at: number;
  run: string | null;
  route: string;
  /** The status of the response; null if there was none. */
  status: number | null;
  attempt: number;
  ms: number;
  /** The size of the response in bytes, and the number of records if it is a list. */
  size: number | null;
  rows: number | null;
}

export interface StoredRequest extends RequestRow {
  /** Keyed hashes of the person's address and of the contact's id. */
  person: Buffer | null;
  contact: Buffer | null;
  content: Buffer;
}

/** Selects requests. Each field that is not undefined leaves out others. */
export interface RequestFilter {
  /** The earliest time, in milliseconds since the epoch. */
  since: number;
  run: string | undefined;
  /** A route, or the first word of several. */
  route: string | undefined;
  /** Only requests without a 2xx response. */
  failed: boolean | undefined;
  /** An address, or a function that recognizes one. */
  person: string | ((address: string) => boolean) | undefined;
}

export type LoggedRequest = RequestRow & Content;

/** Some requests on a route; `at` is when the last was sent, in milliseconds since the epoch. */
interface RefusedRoute {
  route: string;
  n: number;
  at: number;
}

/** The failed requests of a run with one status: null without an answer. */
export interface FailedRequests extends RefusedRoute {
  status: number | null;
}

export const requestTable = `
  create table request (
    id integer primary key, at integer not null, run text, route text not null, status integer,
    attempt integer not null, ms integer not null, size integer, rows integer,
    person blob, contact blob, content blob not null);
  create index request_by_person on request (person) where person is not null;`;

const trimmedAtOnce = 2_000;
/** What a row takes besides its content, in bytes, as far as the bound counts it. */
const otherBytes = 160;
/** The number of rows that `failedOf` and `lastRefused` look through. */
const most = 150_000;

export type Requests = ReturnType<typeof requestsIn>;

export function requestsIn(tables: MemoryTables) {
  const { one, all, number, value, values, each, run } = tables;
  const { meta, keyFor, immediately, hastily } = tables;
  const secrets = secretsOf(keyFor);
  const add = run<StoredRequest>(
    `insert into request (at, run, route, status, attempt, ms, size, rows, person, contact, content)
     values (@at, @run, @route, @status, @attempt, @ms, @size, @rows, @person, @contact, @content)`,
  );
  const first = one<[], { id: number; at: number }>(
    'select id, at from request order by id limit 1',
  );
  const last = value<[], number>('select max(id) from request');
  const next = value<[id: number], number>(
    'select at from request where id >= ? order by id limit 1',
  );
  const size = `length(content) + ${otherBytes}`;
  const dropOldest = values<{ since: number; excess: number }, number>(
    `delete from request where id in (
       select id from (
         select id, at, sum(size) over (order by id) - size older from (
           select id, at, ${size} size from request order by id limit ${trimmedAtOnce}))
       where at < @since or older < @excess) returning ${size}`,
  );
  const failed = all<{ run: string; begin: number; end: number }, FailedRequests>(
    `select route, status, count(*) n, max(at) at from request
     where id between @begin and @end and run = @run
       and (status is null or status not between 200 and 299)
     group by route, status order by n desc`,
  );
  /** The sum of the sizes of the rows, kept up in the transaction that changes them. */
  const bytes = (): number => Number(meta.get('request-bytes') ?? 0);
  const grow = (by: number): void => void meta.set('request-bytes', String(bytes() + by));
  const sum = (sizes: readonly number[]): number => sizes.reduce((all, size) => all + size, 0);
  /** Returns the id of the first row from `at` on: rows are written in the order of their times. */
  const idAt = (at: number, { low, high }: { low: number; high: number }): number => {
    let [from, to] = [low, high];
    while (from < to) {
      const middle = Math.floor((from + to) / 2);
      if ((next(middle) ?? at) < at) from = middle + 1;
      else to = middle;
    }
    return from;
  };
  return {
    secrets,
    append(rows: readonly StoredRequest[]): void {
      hastily(() => {
        for (const row of rows) add(row);
        grow(sum(rows.map(({ content }) => content.length + otherBytes)));
      });
    },
    /**
     * Drops some rows that are before `since`, and the oldest if all take more than `bytes`.
     * Returns whether there may be more to drop.
     */
    trim({ since, bytes: mostBytes }: { since: number; bytes: number }): boolean {
      if (bytes() <= mostBytes && (first()?.at ?? since) >= since) return false;
      return hastily(() => {
        const dropped = dropOldest({ since, excess: bytes() - mostBytes });
        grow(-sum(dropped));
        return dropped.length === trimmedAtOnce;
      });
    },
    /** Drops the rows about a person, and about these contacts. Call it within a transaction. */
    forget(person: string, contacts: readonly string[]): void {
      const drop = (what: 'person' | 'contact', text: string): number[] =>
        values<[mark: Buffer], number>(`delete from request where ${what} = ? returning ${size}`)(
          secrets.mark(what, text),
        );
      grow(-sum([...drop('person', person), ...contacts.flatMap((id) => drop('contact', id))]));
    },
    read(
      { since, run: ofRun, route, failed: isFailed, person }: RequestFilter,
      count: number,
    ): { newest: LoggedRequest[]; more: number } {
      // The keyed hashes of the people who are meant; undefined if everybody is.
      let people = typeof person === 'string' ? [secrets.mark('person', person)] : undefined;
      if (typeof person === 'function') {
        people = [];
        const everybody = each<[], { person: Buffer; content: Buffer }>(
          'select person, content from request where person is not null group by person',
        );
        for (const row of everybody()) {
          if (person(secrets.open(row.content).person ?? '')) people.push(row.person);
        }
      }
      const inPeople = people?.map((mark) => `x'${mark.toString('hex')}'`).join();
      const conditions = [
        'at >= @since',
        ...(ofRun === undefined ? [] : ['run = @run']),
        ...(route === undefined ? [] : ["(route = @route or route like @route || '.%')"]),
        ...(isFailed ? ['(status is null or status not between 200 and 299)'] : []),
        ...(inPeople === undefined ? [] : [`person in (${inPeople})`]),
      ].join(' and ');
      const bound = { since, run: ofRun, route, count };
      const total = number<typeof bound>(`select count(*) from request where ${conditions}`);
      const newest = all<typeof bound, RequestRow & { content: Buffer }>(
        `select at, run, route, status, attempt, ms, size, rows, content
         from request where ${conditions} order by id desc limit @count`,
      )(bound).map(({ content, ...plain }) => ({ ...plain, ...secrets.open(content) }));
      return { newest, more: total(bound) - newest.length };
    },
    /** Counts the failed requests of a run. `since` is when the log begins. */
    failedOf({ run: ofRun, from, to }: { run: string; from: number; to: number }): {
      since: number | undefined;
      failed: FailedRequests[];
    } {
      const oldest = first();
      if (!oldest) return { since: undefined, failed: [] };
      const high = (last() ?? 0) + 1;
      const begin = idAt(from, { low: oldest.id, high });
      const end = Math.min(idAt(to, { low: begin, high }), begin + most);
      return { since: oldest.at, failed: failed({ run: ofRun, begin, end }) };
    },
    /** By route, the newest answer 429 and how many are among the newest rows. */
    lastRefused: () =>
      all<[rows: number], RefusedRoute>(
        `select route, count(*) n, max(at) at from request
         where status = 429 and id > (select max(id) from request) - ?
         group by route order by at desc`,
      )(most),
    /** Deletes all rows. Returns whether there were any. */
    clear: (): boolean =>
      first() !== undefined &&
      immediately(() => {
        grow(-bytes());
        return run<[]>('delete from request')() > 0;
      }),
  };
}

type Text = string | null;
type Row = [string, string, Text, Text, Text, Text, Text];
const sealedRow = storedJson<Row>('a row of the request log');

const cipher = 'aes-256-gcm';
const nonceBytes = 12;
const tagBytes = 16;
const markBytes = 16;

export type Secrets = ReturnType<typeof secretsOf>;

export function secretsOf(keyFor: MemoryTables['keyFor']) {
  const sealing = createSecretKey(keyFor('request log 1: rows'));
  const marking = keyFor('request log 1: people').toString('hex');
  const nextNonce = randomBytesOf(nonceBytes);
  return {
    /**
     * The keyed hash of a person's address, or of a contact's id, in a third of the time of an
     * HMAC. The half that is kept cannot be extended to that of another text.
     */
    mark: (what: 'person' | 'contact', text: string): Buffer =>
      hash('sha256', `${marking} ${what} ${contactKey(text)}`, 'buffer').subarray(0, markBytes),
    seal({ method, path, person, requestId, request, answer, failure }: Content): Buffer {
      const row: Row = [method, path, person, requestId, request, answer, failure];
      const nonce = nextNonce();
      const closing = createCipheriv(cipher, sealing, nonce);
      const body = closing.update(sealedRow.encode(row), 'utf8');
      closing.final();
      return Buffer.concat([nonce, closing.getAuthTag(), body]);
    },
    /** Decrypts a row. Throws an error if it was encrypted with another key or was changed. */
    open(sealed: Uint8Array): Content {
      const body = nonceBytes + tagBytes;
      const opening = createDecipheriv(cipher, sealing, sealed.subarray(0, nonceBytes));
      opening.setAuthTag(sealed.subarray(nonceBytes, body));
      const text = Buffer.concat([opening.update(sealed.subarray(body)), opening.final()]);
      const row = sealedRow.decode(text.toString('utf8'));
      const [method, path, person, requestId, request, answer, failure] = row;
      return { method, path, person, requestId, request, answer, failure };
    },
  };
}
