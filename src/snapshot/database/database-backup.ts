/** Copies of databases while they are in use. */
import {
  chmodSync,
  closeSync,
  existsSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { Invalid } from '../../domain/errors.ts';

const pagesAtOnce = 1_000;

/** A copy that is whole and sound, and has not got its name yet. */
export interface BackupPart {
  /** Gives it its name; throws Invalid when that is taken. */
  name(): void;
  /** Leaves nothing of it, named or not. */
  drop(): void;
}

/**
 * Has every copy made, one after the other, and then named, the first of them last: where that is,
 * are the others. Nothing is left when one of them fails.
 */
export async function backUp(copies: AsyncIterable<BackupPart>): Promise<void> {
  const parts: BackupPart[] = [];
  try {
    for await (const part of copies) parts.push(part);
    for (const part of parts.toReversed()) part.name();
  } catch (error) {
    for (const part of parts) part.drop();
    throw error;
  }
}

/**
 * Copies the database for `file` (0600), as it is at one moment: what others write meanwhile is not
 * in it. Until it is named it is `file`.part. `note` may write into the copy.
 */
export async function copyOf(
  db: Database.Database,
  file: string,
  { signal, note }: { signal: AbortSignal; note?: (copy: Database.Database) => void },
): Promise<BackupPart> {
  const part = partOf(file);
  db.exec('begin');
  try {
    // From its first reading on a transaction sees one moment; without, every write of others
    // would have the copy begin anew.
    db.prepare('select 1 from meta').get();
    const progress = (): number => {
      signal.throwIfAborted();
      return pagesAtOnce;
    };
    await db.backup(`${file}.part`, { progress });
    finish(`${file}.part`, note);
    return part;
  } catch (error) {
    part.drop();
    throw error;
  } finally {
    db.exec('rollback');
  }
}

/** The same of a small text. */
export function copyOfText(text: string, file: string): BackupPart {
  const part = partOf(file);
  writeFileSync(`${file}.part`, text);
  return part;
}

/** Makes the file that a copy is written to, empty. */
function partOf(file: string): BackupPart {
  const part = `${file}.part`;
  if (existsSync(file)) throw overwrites(file);
  make(part, file);
  for (const sibling of ['-journal', '-wal', '-shm']) rmSync(part + sibling, { force: true });
  let path = part;
  return {
    name() {
      make(file, file);
      renameSync(part, file);
      path = file;
    },
    drop: () => rmSync(path, { force: true }),
  };
}

/** One file without others beside it. */
function finish(part: string, note: (copy: Database.Database) => void = () => undefined): void {
  const copy = new Database(part);
  try {
    copy.pragma('journal_mode = delete');
    const found = String(copy.pragma('integrity_check(1)', { simple: true }));
    if (found !== 'ok') throw new Database.SqliteError(found, 'SQLITE_CORRUPT');
    note(copy);
  } finally {
    copy.close();
  }
  chmodSync(part, 0o600);
}

/** Makes an empty file for what was `asked` for, and refuses to touch one that is there. */
function make(file: string, asked: string): void {
  const folder = dirname(file);
  if (!existsSync(folder)) {
    throw new Invalid(`${asked}: there is no folder ${folder}`, {
      fix: 'make it, or name another file',
    });
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
  return new Invalid(`${file}: ${what}, and nothing is overwritten`, {
    fix: 'name another, or remove it',
  });
}
