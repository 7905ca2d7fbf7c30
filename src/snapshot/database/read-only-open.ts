/** Opening a file that others may be writing, and where perhaps nobody can write at all. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import Database from 'better-sqlite3';
import { Invalid } from '../../domain/errors.ts';
import { onDisk } from './disk-errors.ts';
import { patienceMs } from './lock-timeout.ts';

const mostBytes = 1 << 30;

/**
 * Opens the database at `path` so that nothing in it can be changed. Where nothing can be written,
 * SQLite cannot make the two files that it wants beside one that is in use: what is whole without
 * them is read into memory then. `what`: what the file is. Throws Invalid.
 */
export function openToLook(path: string, what: string): Database.Database {
  refuseNoFile(path, `the ${what}`);
  const db = onDisk(path, () => new Database(path, { readonly: true, timeout: patienceMs }));
  try {
    db.prepare('select 1 from sqlite_master').get();
    return db;
  } catch (error) {
    if (!isShut(error)) return db;
    db.close();
    return new Database(inMemory(path, what), { readonly: true });
  }
}

/** A folder in the place of a file is refused; `what` the file is. */
export function refuseNoFile(path: string, what: string): void {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats || stats.isFile()) return;
  if (stats.isDirectory()) {
    throw new Invalid(`${path}: this is a folder, and ${what} is a file → move the folder away`);
  }
  throw new Invalid(`${path}: this is no regular file, as ${what} is → correct the path`);
}

/** What SQLite says when it can make no file beside this one. */
function isShut(error: unknown): boolean {
  const code = error instanceof Database.SqliteError ? error.code : '';
  return code.startsWith('SQLITE_CANTOPEN') || code.startsWith('SQLITE_READONLY');
}

function inMemory(path: string, what: string): Buffer {
  const isWhole = !existsSync(`${path}-wal`) || statSync(`${path}-wal`).size === 0;
  if (!isWhole || statSync(path).size > mostBytes) {
    const why = isWhole ? 'is large' : 'was not closed';
    throw new Invalid(
      `${path}: this ${what} lies where nothing can be written, and ${why} → copy it, and what ` +
        'lies beside it, to where something can be, and look there',
    );
  }
  const bytes = readFileSync(path);
  // Of one in memory SQLite has no use for the mark (bytes 18 and 19) that others may be at it.
  bytes.fill(1, 18, 20);
  return bytes;
}
