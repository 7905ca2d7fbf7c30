import { chmodSync } from 'node:fs';
import Database from 'better-sqlite3';
import { Busy } from '../model/errors.ts';

/** The right to write a mirror: one process at a time. */
export interface Lease {
  release(): void;
}

/**
 * Takes the lease of the snapshot at `path`; throws Busy while another process holds it. It is a
 * lock of the operating system on a file beside the snapshot, so a dead holder's ends with it.
 */
export function takeLease(path: string): Lease {
  const file = `${path}-lease`;
  const db = new Database(file, { timeout: 0 });
  try {
    chmodSync(file, 0o600);
    db.exec('begin exclusive');
  } catch (error) {
    db.close();
    const code = error instanceof Database.SqliteError ? error.code : '';
    if (!code.startsWith('SQLITE_BUSY')) throw error;
    throw new Busy(`${path}: another run holds this mirror → run again when it has ended`);
  }
  return { release: () => void db.close() };
}
