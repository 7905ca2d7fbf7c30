import { chmodSync, existsSync } from 'node:fs';
import Database from 'better-sqlite3';
import { Busy } from '../../domain/errors.ts';
import { onDisk } from './disk-errors.ts';
import { makeFolderOf } from './snapshot-folder.ts';

/** The right to write a mirror: one process at a time. */
export interface Lease {
  release(): void;
}

/** Whoever looks has the lock for an instant, which must not turn away who takes it. */
const glanceMs = 200;

/**
 * Takes the lease of the snapshot at `path`; throws Busy while another process holds it, having
 * waited for `waitMs`. It is a lock of the operating system on a file beside the snapshot, so a
 * dead holder's ends with it. What such a lock cannot cover, the fencing token does: raise it next
 * (`Snapshot.fence`).
 */
export function takeLease(path: string, waitMs = glanceMs): Lease {
  const file = fileOf(path);
  makeFolderOf(path);
  const db = onDisk(file, () => new Database(file, { timeout: waitMs }));
  try {
    chmodSync(file, 0o600);
    onDisk(file, () => db.exec('begin exclusive'));
  } catch (error) {
    db.close();
    if (!isBusy(error)) throw error;
    throw new Busy(`${path}: another run holds this mirror → run again when it has ended`);
  }
  return { release: () => void db.close() };
}

/** Whether a process holds the lease of the snapshot at `path` now; looks without taking it. */
export function isLeased(path: string): boolean {
  const file = fileOf(path);
  if (!existsSync(file)) return false;
  const db = new Database(file, { readonly: true, timeout: 0 });
  try {
    db.prepare('select 1 from sqlite_master').get();
    return false;
  } catch (error) {
    if (!isBusy(error)) throw error;
    return true;
  } finally {
    db.close();
  }
}

function fileOf(path: string): string {
  return `${path}-lease`;
}

function isBusy(error: unknown): boolean {
  return error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY');
}
