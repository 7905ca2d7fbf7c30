/** A copy of the snapshot while it is in use. */
import { chmodSync, closeSync, existsSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { Invalid } from '../model/errors.ts';

const pagesAtOnce = 1_000;

/**
 * Copies the database to `file` (0600), as it is at one moment: what others write meanwhile is not
 * in it. The copy has its name only once it is whole and sound; until then it is `file`.part.
 */
export async function backUp(
  db: Database.Database,
  file: string,
  { at, signal }: { at: number; signal: AbortSignal },
): Promise<void> {
  const part = `${file}.part`;
  if (existsSync(file)) throw overwrites(file);
  make(part);
  for (const beside of ['-journal', '-wal', '-shm']) rmSync(part + beside, { force: true });
  db.exec('begin');
  try {
    // From its first reading on a transaction sees one moment; without, every write of others
    // would have the copy begin anew.
    db.prepare('select 1 from meta').get();
    const progress = (): number => {
      signal.throwIfAborted();
      return pagesAtOnce;
    };
    await db.backup(part, { progress });
    finish(part, at);
    make(file);
    renameSync(part, file);
  } catch (error) {
    rmSync(part, { force: true });
    throw error;
  } finally {
    db.exec('rollback');
  }
}

/** One file without others beside it, which knows that it is a copy. */
function finish(part: string, at: number): void {
  const copy = new Database(part);
  try {
    copy.pragma('journal_mode = delete');
    const found = String(copy.pragma('integrity_check(1)', { simple: true }));
    if (found !== 'ok') throw new Database.SqliteError(found, 'SQLITE_CORRUPT');
    copy.prepare(`insert or replace into meta (name, value) values ('copied-at', ?)`).run(`${at}`);
  } finally {
    copy.close();
  }
  chmodSync(part, 0o600);
}

/** Makes an empty file, and refuses to touch one that is there. */
function make(file: string): void {
  const folder = dirname(file);
  if (!existsSync(folder)) {
    throw new Invalid(`${file}: there is no folder ${folder} → make it, or name another file`);
  }
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    const isThere = error instanceof Error && 'code' in error && error.code === 'EEXIST';
    throw isThere ? overwrites(file) : error;
  }
}

function overwrites(file: string): Invalid {
  const what = file.endsWith('.part') ? 'another backup is going on, or was killed' : 'it is there';
  return new Invalid(`${file}: ${what}, and nothing is overwritten → name another, or remove it`);
}
