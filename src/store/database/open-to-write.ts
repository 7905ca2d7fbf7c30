/** Opens a database file for writing. */
import { chmodSync, existsSync } from 'node:fs';
import Database from 'better-sqlite3';
import { onDisk, patienceMs, refuseNoFile } from './database-access.ts';
import { makeFolderOf } from './snapshot-folder.ts';

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

/** How a connection writes. */
interface Writing {
  /** Whether the database is deleted afterwards; otherwise it is written safely. */
  isThrowaway?: boolean | undefined;
  /** What it keeps in memory, in KB; by default 16,000, which is much for one of many. */
  cacheKb?: number;
}

/** Sets how a database is written. */
export function setPragmas(db: Database.Database, { isThrowaway, cacheKb }: Writing = {}): void {
  for (const pragma of isThrowaway ? fast : safe) db.pragma(pragma);
  db.pragma('foreign_keys = ON');
  if (cacheKb !== undefined) db.pragma(`cache_size = -${cacheKb}`);
}
