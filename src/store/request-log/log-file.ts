/**
 * The file of the request log: one SQLite database beside the snapshot. A row states in plain text
 * when a request was sent, for which run, on which route and with which result. Everything else is
 * encrypted (sealed-rows.ts).
 */
import { chmodSync, existsSync, rmSync } from 'node:fs';
import Database from 'better-sqlite3';
import { Busy, Invalid } from '../../domain/errors.ts';
import { onDisk, patienceMs, refuseNoFile, waiterFor } from '../database/database-access.ts';
import { isDamage } from '../damage-check.ts';
import type { Secrets } from './sealed-rows.ts';

/** One row. */
export interface StoredRequest {
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
  /** Keyed hashes of the person's address and of the contact's id. */
  person: Buffer | null;
  contact: Buffer | null;
  content: Buffer;
}

/** The bounds of the file. */
export interface Bounds {
  /** Rows before this time, in milliseconds since the epoch, are dropped. */
  since: number;
  /** The maximum size of the rows in bytes; the oldest rows are dropped first. */
  bytes: number;
}

/** The file, open for writing. Each method throws the errors of SQLite. */
export interface LogFile {
  append(rows: readonly StoredRequest[]): void;
  /** Drops some rows that are too many or too old, and returns whether there may be more. */
  trim(bounds: Bounds): boolean;
  /**
   * Drops the rows about a person or one of these contacts, and rewrites the file without a trace
   * of them. Throws Busy if another process uses the file for too long.
   */
  forget(person: Buffer, contacts: readonly Buffer[]): void;
  close(): void;
}

/** The version of the file. */
export const version = 1;
const tables = `
  create table meta (name text primary key, value text not null) without rowid;
  create table request (
    id integer primary key, at integer not null, run text, route text not null, status integer,
    attempt integer not null, ms integer not null, size integer, rows integer,
    person blob, contact blob, content blob not null);
  create index request_by_person on request (person) where person is not null;
  pragma user_version = ${version};`;

/** How long a batch waits for another process, in milliseconds: no run is delayed by the log. */
const glanceMs = 50;

/** The number of rows that one `trim` drops at most. */
const trimmedAtOnce = 2_000;

/**
 * Opens the file at `path` for writing, and creates it (0600) if it does not exist. A file that is
 * damaged, or was written with another key, can never be read again, and is replaced. Throws
 * Invalid for a file of a newer version.
 */
export function openLogFile(path: string, secrets: Secrets): LogFile {
  refuseNoFile(path, 'the request log');
  try {
    return opened(path, secrets);
  } catch (error) {
    if (!isDamage(error) && !(error instanceof OtherKey)) throw error;
    removeLog(path);
    return opened(path, secrets);
  }
}

/** Deletes the file and what SQLite keeps beside it. */
export function removeLog(path: string): void {
  for (const end of ['-shm', '-wal', '']) rmSync(path + end, { force: true });
}

/** Thrown if a file was written with another key. */
class OtherKey extends Error {}

function opened(path: string, secrets: Secrets): LogFile {
  const isNew = !existsSync(path);
  const db = onDisk(path, () => new Database(path, { timeout: glanceMs }));
  try {
    if (isNew) chmodSync(path, 0o600);
    settle(db, secrets, path);
    return fileIn(db, path);
  } catch (error) {
    db.close();
    throw error;
  }
}

function settle(db: Database.Database, secrets: Secrets, path: string): void {
  const at = Number(db.pragma('user_version', { simple: true }));
  if (at > version) throw newer(path);
  if (at === 0) db.pragma('auto_vacuum = incremental');
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = NORMAL'); // A crash of the machine may lose the last rows.
  db.pragma('secure_delete = ON');
  if (at === 0) {
    const create = (): void => {
      db.exec(tables);
      db.prepare("insert into meta values ('proof', ?)").run(proofOf(secrets));
    };
    db.transaction(create).exclusive();
  } else if (!isOurs(db, secrets)) throw new OtherKey(path);
}

/** Returns whether the file was written with these secrets. */
export function isOurs(db: Database.Database, secrets: Secrets): boolean {
  const proof = db.prepare<[], { value: string }>("select value from meta where name = 'proof'");
  return proof.get()?.value === proofOf(secrets);
}

/** Returns the error for a file of a newer version. */
export function newer(path: string): Invalid {
  return new Invalid(`${path}: this request log was written by a newer version of crm-mirror`, {
    fix: 'run that version',
  });
}

function proofOf({ mark }: Secrets): string {
  return mark('person', 'proof of the key').toString('hex');
}

function fileIn(db: Database.Database, path: string): LogFile {
  const wait = waiterFor(db, path, { what: 'request log' });
  const patiently = <T>(work: () => T): T => {
    db.pragma(`busy_timeout = ${patienceMs}`);
    try {
      return wait(work);
    } finally {
      db.pragma(`busy_timeout = ${glanceMs}`);
    }
  };
  const add = db.prepare<[StoredRequest]>(
    `insert into request (at, run, route, status, attempt, ms, size, rows, person, contact, content)
     values (@at, @run, @route, @status, @attempt, @ms, @size, @rows, @person, @contact, @content)`,
  );
  const first = db.prepare<[], { at: number }>('select at from request order by id limit 1');
  const oldest = db.prepare<[number]>(
    `delete from request where id <=
       (select max(id) from (select id from request order by id limit ${trimmedAtOnce}))
     and at < ?`,
  );
  const dropPerson = db.prepare<[Buffer]>('delete from request where person = ?');
  const dropContact = db.prepare<[Buffer]>('delete from request where contact = ?');
  const append = db.transaction((rows: readonly StoredRequest[]) => {
    for (const row of rows) add.run(row);
  });
  const drop = db.transaction((person: Buffer, contacts: readonly Buffer[]) => {
    dropPerson.run(person);
    for (const one of contacts) dropContact.run(one);
  });
  return {
    append: (rows) => append.immediate(rows),
    trim({ since, bytes }) {
      const isFull = bytesOf(db) > bytes;
      const isOld = (first.get()?.at ?? since) < since;
      if (!isFull && !isOld) return false;
      const { changes } = oldest.run(isFull ? Number.MAX_SAFE_INTEGER : since);
      if (bytesOf(db, 'file') > bytes) db.pragma('incremental_vacuum');
      return changes === trimmedAtOnce || (isFull && changes > 0 && bytesOf(db) > bytes);
    },
    forget(person, contacts) {
      const checkpoint = db.prepare<[], { busy: number }>('pragma wal_checkpoint(truncate)');
      const [done] = patiently(() => {
        drop.immediate(person, contacts);
        db.exec('vacuum');
        return checkpoint.all();
      });
      if (done?.busy === 0) return;
      throw new Busy(`${path}: another process reads the request log, so it is not rewritten`, {
        fix: 'run it again',
      });
    },
    close: () => db.close(),
  };
}

/** Returns the bytes that the rows take up, or those of the whole file. */
function bytesOf(db: Database.Database, what: 'rows' | 'file' = 'rows'): number {
  const number = (name: string): number => Number(db.pragma(name, { simple: true }));
  const unused = what === 'rows' ? number('freelist_count') : 0;
  return (number('page_count') - unused) * number('page_size');
}
