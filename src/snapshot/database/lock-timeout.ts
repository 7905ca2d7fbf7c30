import Database from 'better-sqlite3';
import { Busy } from '../../domain/errors.ts';
import { onDisk } from './disk-errors.ts';

/** Runs what uses a database; throws Busy when another process has it locked for too long. */
export type Wait = <T>(work: () => T) => T;

/** How long SQLite waits by itself. */
export const patienceMs = 5_000;

/**
 * SQLite waits by itself, and says so by a code when it did in vain. In the middle of a run many
 * changes are under way: were each to wait as long again, the end of the run would take minutes. So
 * nothing more is waited for until something succeeds again. `what`: what the file at `path` is.
 */
export function waiterFor(db: Database.Database, path: string, what: string): Wait {
  let isPatient = true;
  const setPatience = (patient: boolean): void => {
    if (patient === isPatient) return;
    db.pragma(`busy_timeout = ${patient ? patienceMs : 0}`);
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
      throw new Busy(
        `${path}: another process has locked this ${what} → run again when it has let go`,
      );
    }
  };
}
