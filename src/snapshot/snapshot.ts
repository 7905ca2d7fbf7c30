/**
 * The snapshot: one SQLite file per mirror with what we last saw acknowledged, the journal of
 * changes, the runs, and the known problems; and the staging of the run that is going on.
 *
 * One statement per function. A function here never opens a transaction; whoever has several things
 * that belong together calls `transaction`.
 */
import { chmodSync, existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { Busy, Invalid } from '../model/errors.ts';
import { changesIn, type Journal } from './journal.ts';
import { metaIn, type Meta } from './meta.ts';
import { migrations, stagingTables } from './migrations.ts';
import { problemsIn, type Problems } from './problems.ts';
import { recordedIn, type Recorded } from './recorded.ts';
import { runsIn, type Runs } from './runs.ts';
import { stagingIn, type Staging } from './staging.ts';
import { narrowingIn, type Narrowing } from './narrowing.ts';

export interface Snapshot {
  meta: Meta;
  recorded: Recorded;
  journal: Journal;
  runs: Runs;
  problems: Problems;
  staging: Staging;
  narrowing: Narrowing;
  /** All or nothing in staging, which no other process sees; throws Busy as `transaction` does. */
  stage(work: () => void): void;
  /**
   * All or nothing, on disk when it returns. Waits while another process has the file locked, and
   * throws Busy when that lasts; having waited in vain once, it waits no more.
   */
  transaction<T>(work: () => T): T;
  close(): void;
}

const patienceMs = 5_000;

/**
 * Opens the snapshot at `path`, making it (0600) and its folder when they do not exist. `inMemory`
 * is for a plan on a mirror that has no snapshot yet: nothing is left behind. Throws Busy while
 * another process has it locked, Invalid when it is of a newer version.
 */
export function openSnapshot(path: string, options: { inMemory?: boolean } = {}): Snapshot {
  const db = options.inMemory ? new Database(':memory:') : openFile(path);
  const patiently = waiterFor(db, path);
  try {
    return patiently(() => {
      db.pragma('journal_mode = WAL');
      db.pragma('synchronous = FULL');
      db.pragma('foreign_keys = ON');
      migrate(db, path);
      db.exec(stagingTables);
      return {
        meta: metaIn(db),
        recorded: recordedIn(db),
        journal: changesIn(db),
        runs: runsIn(db),
        problems: problemsIn(db),
        staging: stagingIn(db),
        narrowing: narrowingIn(db),
        stage: (work) => patiently(() => db.transaction(work).deferred()),
        transaction: (work) => patiently(() => db.transaction(work).immediate()),
        close: () => db.close(),
      };
    });
  } catch (error) {
    db.close();
    throw error;
  }
}

/**
 * SQLite waits by itself, and says so by a code when it did in vain. In the middle of a run many
 * changes are under way: were each to wait as long again, the end of the run would take minutes. So
 * nothing more is waited for until something succeeds again.
 */
function waiterFor(db: Database.Database, path: string): <T>(work: () => T) => T {
  let isPatient = true;
  const setPatience = (patient: boolean): void => {
    if (patient === isPatient) return;
    db.pragma(`busy_timeout = ${patient ? patienceMs : 0}`);
    isPatient = patient;
  };
  return (work) => {
    try {
      const done = work();
      setPatience(true);
      return done;
    } catch (error) {
      const code = error instanceof Database.SqliteError ? error.code : '';
      if (!code.startsWith('SQLITE_BUSY')) throw error;
      setPatience(false);
      throw new Busy(
        `${path}: another process has locked this snapshot → run again when it has let go`,
      );
    }
  };
}

function openFile(path: string): Database.Database {
  if (!existsSync(path)) {
    mkdirSync(dirname(path), { recursive: true });
    const made = new Database(path, { timeout: patienceMs });
    chmodSync(path, 0o600);
    return made;
  }
  return new Database(path, { timeout: patienceMs });
}

function migrate(db: Database.Database, path: string): void {
  if (versionOf(db, path) === migrations.length) return;
  db.transaction(() => {
    // Asked again: another process may have done it meanwhile.
    for (const step of migrations.slice(versionOf(db, path))) db.exec(step);
    db.pragma(`user_version = ${migrations.length}`);
  }).exclusive();
}

function versionOf(db: Database.Database, path: string): number {
  const version = Number(db.pragma('user_version', { simple: true }));
  if (version <= migrations.length) return version;
  throw new Invalid(
    `${path}: this snapshot was written by a newer version of crm-mirror ` +
      `(format ${version}, this one knows ${migrations.length}) → run that version, or restore an older backup`,
  );
}
