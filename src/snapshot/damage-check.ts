/** A snapshot that cannot be trusted: how it is found out, and put out of the way. */
import Database from 'better-sqlite3';
import { Invalid } from '../domain/errors.ts';
import { broken, moveAside } from './database/set-file-aside.ts';
import { metaIn } from './database/meta-table.ts';
import { runsIn } from './tables/run-history.ts';
import { statementsOf } from './database/prepared-statements.ts';

const checkedName = 'checked-at';
const everyMs = 86_400_000;

/** Whether SQLite says that the file is none of its own, or broken. */
export function isDamage(error: unknown): boolean {
  if (!(error instanceof Database.SqliteError)) return false;
  return error.code === 'SQLITE_NOTADB' || error.code.startsWith('SQLITE_CORRUPT');
}

export function damaged(path: string): Invalid {
  return new Invalid(
    `${path}: this snapshot is damaged, it is not a readable database → restore a backup, ` +
      'or run `crm-mirror sync`: it sets it aside and begins anew',
  );
}

/**
 * Whether the whole file is to be read at this start (`at`: epoch milliseconds). That takes about a
 * second for every half a million people, too long for every fast run: once a day, and when the
 * last run did not live to write down its end. What is broken where a run looks, it meets anyway.
 */
export function isCheckDue(db: Database.Database, at: number): boolean {
  const [last] = runsIn(statementsOf(db)).newest(1);
  if (last && last.endedAt === null) return true;
  const checkedAt = Number(metaIn(statementsOf(db)).get(checkedName) ?? 0);
  // What lies ahead was written by a clock that was wrong.
  return at - checkedAt >= everyMs || checkedAt > at;
}

/**
 * Reads the whole file; throws an error that `isDamage` when a page of it is broken. To compare
 * every index with its table as well (integrity_check) would take five times as long.
 */
export function check(db: Database.Database): void {
  const found = String(db.pragma('quick_check(1)', { simple: true }));
  if (found !== 'ok') throw new Database.SqliteError(found, 'SQLITE_CORRUPT');
}

export function noteChecked(db: Database.Database, at: number): void {
  metaIn(statementsOf(db)).set(checkedName, String(at));
}

/** Puts a snapshot out of the way; answers its new name. Only for who holds the lease. */
export function setAside(path: string, at: number): string {
  const stamp = new Date(at).toISOString().replace(/[-:]|\.\d+/g, '');
  const name = `${path}${broken}${stamp}`;
  return moveAside(path, (count) => (count === 1 ? name : `${name}-${count}`));
}
