/** Finds damage in a snapshot, and moves a damaged snapshot out of the way. */
import { existsSync } from 'node:fs';
import Database from 'better-sqlite3';
import { hasOurHeader } from './database/schema.ts';
import { broken, filesAside, headerOf, moveAside } from './database/snapshot-folder.ts';
import { metaIn } from './database/meta-table.ts';
import { runsIn } from './tables/run-history.ts';
import { statementsOf } from './database/prepared-statements.ts';
import type { Snapshot } from './snapshot.ts';

const checkedName = 'checked-at';
const everyMs = 86_400_000;

/** Returns whether an SQLite error means that the file is not a database or is corrupt. */
export function isDamage(error: unknown): boolean {
  if (!(error instanceof Database.SqliteError)) return false;
  return error.code === 'SQLITE_NOTADB' || error.code.startsWith('SQLITE_CORRUPT');
}

/**
 * Whether the whole file has to be checked at this start. That takes about a second per half a
 * million people, so it is done once a day, and when the last run has no recorded end.
 */
export function isCheckDue(db: Database.Database, at: number): boolean {
  const [last] = runsIn(statementsOf(db)).newest(1);
  if (last && last.endedAt === null) return true;
  const checkedAt = Number(metaIn(statementsOf(db)).get(checkedName) ?? 0);
  // A time in the future was written by a wrong clock.
  return at - checkedAt >= everyMs || checkedAt > at;
}

/**
 * Reads the whole file, or one table of it. Throws an error of damage if a page is corrupt. Not
 * every index is compared with its table (integrity_check), which takes five times as long.
 */
export function check(db: Database.Database, table?: string): void {
  const found = String(db.pragma(`quick_check(${table ?? 1})`, { simple: true }));
  if (found !== 'ok') throw new Database.SqliteError(found, 'SQLITE_CORRUPT');
}

/** Records that the whole file was checked at this time. */
export function noteChecked(db: Database.Database, at: number): void {
  metaIn(statementsOf(db)).set(checkedName, String(at));
}

/** Returns whether a damaged file is known to be a snapshot: its header or the memory shows it. */
export function isOurs(path: string): boolean {
  return existsSync(`${path}-memory`) || hasOurHeader(headerOf(path));
}

/** Returns the new name of a damaged snapshot. The caller holds the lease. */
export function setAside(path: string, at: number): string {
  const stamp = new Date(at).toISOString().replace(/[-:]|\.\d+/g, '');
  const name = `${path}${broken}${stamp}`;
  return moveAside(path, (count) => (count === 1 ? name : `${name}-${count}`));
}

const saidForMs = 7 * 86_400_000;

/**
 * Returns the newest damaged snapshot that is still beside this one, and when it was set aside.
 * Undefined after a week, or if this one has older runs, because a backup was restored.
 */
export function lastAside(
  path: string,
  { runs }: Snapshot,
  now: number,
): { file: string; at: string } | undefined {
  const stamp = /-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z(-\d+)?$/;
  const file = filesAside(path).findLast((name) => stamp.test(name));
  const [, year, month, day, ...time] = stamp.exec(file ?? '') ?? [];
  if (file === undefined) return undefined;
  const at = `${year}-${month}-${day}T${time.slice(0, 3).join(':')}Z`;
  const since = Date.parse(at);
  const isOver = now - since > saidForMs || (runs.firstStart() ?? Infinity) < since;
  return isOver ? undefined : { file, at };
}
