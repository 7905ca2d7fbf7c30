/**
 * Handles access to a database file that other processes use too: errors that name the file,
 * waiting for a lock, and reading a file that this process cannot write.
 */
import { chmodSync, existsSync, readFileSync, statSync } from 'node:fs';
import Database from 'better-sqlite3';
import { Busy, Invalid } from '../../domain/errors.ts';
import { makeFolderOf } from './snapshot-folder.ts';

/** Runs work on a database. SQLite errors do not name the file, so the `path` is added to them. */
export function onDisk<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw named(error, path);
  }
}

/** Adds the `path` to an SQLite error that has none, and returns the error. */
export function named(error: unknown, path: string): unknown {
  if (!(error instanceof Database.SqliteError) || 'path' in error) return error;
  return path === ':memory:' ? error : Object.assign(error, { path });
}

/** Runs work on a database. Throws Busy if another process keeps it locked for too long. */
export type Wait = <T>(work: () => T) => T;

/** How long SQLite itself waits for a lock, in milliseconds. */
const patienceMs = 5_000;

/** What is waited for, as messages name it, and how long; by default `patienceMs`. */
interface Waiting {
  what: string;
  timeoutMs?: number | undefined;
}

/**
 * Returns a function that runs work on this database. SQLite waits for a lock by itself. In the
 * middle of a run many changes are in progress, so after the first failure no work waits until some
 * work has succeeded.
 */
export function waiterFor(
  db: Database.Database,
  path: string,
  { what, timeoutMs = patienceMs }: Waiting,
): Wait {
  let isPatient = true;
  const setPatience = (patient: boolean): void => {
    if (patient === isPatient) return;
    db.pragma(`busy_timeout = ${patient ? timeoutMs : 0}`);
    isPatient = patient;
  };
  return (work) => {
    try {
      const done = onDisk(path, work);
      setPatience(true);
      return done;
    } catch (error) {
      const code = error instanceof Database.SqliteError ? error.code : '';
      if (!code.startsWith('SQLITE_BUSY')) throw error;
      setPatience(false);
      throw new Busy(`${path}: another process has locked this ${what}`, {
        fix: 'run again when it has let go',
      });
    }
  };
}

/**
 * Opens the database at `path`; creates it (0600) and its folder if they do not exist. `what` names
 * the file in messages. Throws Invalid.
 */
export function openToWrite(path: string, what: string): Database.Database {
  refuseNoFile(path, what);
  const isMade = existsSync(path);
  if (!isMade) makeFolderOf(path);
  const db = onDisk(path, () => new Database(path, { timeout: patienceMs }));
  if (!isMade) chmodSync(path, 0o600);
  return db;
}

const safe = ['journal_mode = WAL', 'synchronous = FULL'];
/** No other connection uses the file, and no crash has to leave it whole. */
const fast = ['locking_mode = EXCLUSIVE', 'journal_mode = MEMORY', 'synchronous = OFF'];

/** `cacheKb` is what it keeps in memory; by default 16,000, which is much for one of many. */
export function setPragmas(
  db: Database.Database,
  { isThrowaway, cacheKb }: { isThrowaway?: boolean | undefined; cacheKb?: number } = {},
): void {
  for (const pragma of isThrowaway ? fast : safe) db.pragma(pragma);
  db.pragma('foreign_keys = ON');
  if (cacheKb !== undefined) db.pragma(`cache_size = -${cacheKb}`);
}

/** Of the largest file that is read into memory. */
const mostBytes = 1 << 30;

/**
 * Opens the database at `path` read-only. SQLite creates two files beside a database in use, which
 * are removed when it is closed, unless another process uses them. If the folder is not writable,
 * it cannot do so, and a file that is complete without them is read into memory instead. Throws
 * Invalid.
 */
export function openToLook(
  path: string,
  { what, timeoutMs: timeout = patienceMs }: Waiting,
): Database.Database {
  refuseNoFile(path, `the ${what}`);
  const isQuiet = isWhole(path);
  const db = onDisk(path, () => new Database(path, { readonly: true, timeout }));
  try {
    db.prepare('select 1 from sqlite_master').get();
    return isQuiet ? tidyAtClose(db, path) : db;
  } catch (error) {
    // SQLite cannot create files beside this one; on a full disk, it cannot fill them.
    const code = error instanceof Database.SqliteError ? error.code : '';
    const isFull = code.startsWith('SQLITE_IOERR_SHM') && isQuiet;
    if (!isFull && !/^SQLITE_(CANTOPEN|READONLY)/.test(code)) return db;
    db.close();
    const isClosed = isWhole(path);
    if (!isClosed || statSync(path).size > mostBytes) {
      const why = isClosed ? 'is large' : 'was not closed';
      throw new Invalid(`${path}: this ${what} lies where nothing can be written, and ${why}`, {
        fix: 'copy it, and what lies beside it, to where something can be, and look there',
      });
    }
    const bytes = readFileSync(path);
    // Bytes 18 and 19 state that other processes may use the file. SQLite refuses that for a
    // database in memory.
    bytes.fill(1, 18, 20);
    return new Database(bytes, { readonly: true });
  }
}

/**
 * Removes the files beside the database when it is closed: a read-only connection leaves them, and
 * one that may write removes them if it is the last.
 */
function tidyAtClose(db: Database.Database, path: string): Database.Database {
  const close = db.close.bind(db);
  db.close = () => {
    const wasOpen = db.open;
    close();
    if (!wasOpen || !isWhole(path)) return db;
    try {
      const last = new Database(path, { fileMustExist: true, timeout: 0 });
      try {
        last.prepare('select 1 from sqlite_master').get();
      } finally {
        last.close();
      }
    } catch (error) {
      // Another process has it, or nothing can be written there.
      if (!(error instanceof Database.SqliteError)) throw error;
    }
    return db;
  };
  return db;
}

function isWhole(path: string): boolean {
  return (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) === 0;
}

/** Throws Invalid if `path` is no regular file; `what` names the expected one. */
export function refuseNoFile(path: string, what: string): void {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats || stats.isFile()) return;
  if (stats.isDirectory()) {
    throw new Invalid(`${path}: this is a folder, and ${what} is a file`, {
      fix: 'move the folder away',
    });
  }
  throw new Invalid(`${path}: this is no regular file, as ${what} is`, { fix: 'correct the path' });
}
