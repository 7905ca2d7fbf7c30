/** Copies databases while they are in use. */
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
import { codeOf, Invalid } from '../../domain/errors.ts';
import { checkFile } from './file-check.ts';

const pagesAtOnce = 1_000;

/** A complete, checked copy without its final name. */
export interface BackupPart {
  /** Gives the copy its final name. Throws Invalid if a file already has that name. */
  name(): void;
  drop(): void;
}

/**
 * Creates all copies, and then names them, the first one last: if it exists, the others exist, too.
 * If one fails, deletes all.
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
 * Copies the database for `file` (mode 0600) as it is at one moment. It is called `file`.part until
 * it is named. `note` may write into it. Throws Invalid if a file with either name exists, the
 * signal's reason, and SqliteError for a damaged copy.
 */
export async function copyOf(
  db: Database.Database,
  file: string,
  { signal, note }: { signal: AbortSignal; note?: (copy: Database.Database) => void },
): Promise<BackupPart> {
  const part = partOf(file);
  db.exec('begin');
  try {
    // From its first read on, a transaction sees one consistent state. Without it, every write by
    // another process would restart the copy.
    db.prepare('select 1 from meta').get();
    const progress = (): number => {
      signal.throwIfAborted();
      return pagesAtOnce;
    };
    await db.backup(`${file}.part`, { progress });
    await finish(`${file}.part`, note);
    return part;
  } catch (error) {
    part.drop();
    throw error;
  } finally {
    db.exec('rollback');
  }
}

/** Copies a small text for `file` in the same way. */
export function copyOfText(text: string, file: string): BackupPart {
  const part = partOf(file);
  try {
    writeFileSync(`${file}.part`, text);
    return part;
  } catch (error) {
    part.drop();
    throw error;
  }
}

function partOf(file: string): BackupPart {
  const part = `${file}.part`;
  if (existsSync(file)) throw overwrites(file);
  make(part, file);
  // SQLite does not remove its files beside a copy for which the disk is too full.
  const siblings = ['-journal', '-wal', '-shm'].map((end) => part + end);
  const drop = (files: readonly string[]): void =>
    files.forEach((one) => rmSync(one, { force: true }));
  drop(siblings);
  let isNamed = false;
  return {
    name() {
      make(file, file);
      isNamed = true;
      renameSync(part, file);
    },
    drop: () => drop([part, ...siblings, ...(isNamed ? [file] : [])]),
  };
}

/** Converts the copy to a single file without WAL, and checks it. */
async function finish(part: string, note?: (copy: Database.Database) => void): Promise<void> {
  change(part, (copy) => copy.pragma('journal_mode = delete'));
  await checkFile(part);
  if (note) change(part, note);
  chmodSync(part, 0o600);
}

function change(part: string, act: (copy: Database.Database) => void): void {
  const copy = new Database(part);
  try {
    act(copy);
  } finally {
    copy.close();
  }
}

/** Creates an empty file. Throws Invalid, naming `asked`. */
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
    throw codeOf(error) === 'EEXIST' ? overwrites(file) : error;
  }
}

function overwrites(file: string): Invalid {
  const what = file.endsWith('.part') ? 'another backup is going on, or was killed' : 'it is there';
  return new Invalid(`${file}: ${what}, and nothing is overwritten`, {
    fix: 'name another, or remove it',
  });
}
