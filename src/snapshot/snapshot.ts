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
import { absencesIn, type Absences } from './absence.ts';
import { backUp } from './backup.ts';
import { changesIn, type Journal } from './journal.ts';
import { guardingIn, type Guarding } from './guarding.ts';
import { heldIn, type HeldPlans } from './held.ts';
import { isLeased } from './lease.ts';
import { metaIn, type Meta } from './meta.ts';
import { migrations, stagingTables } from './migrations.ts';
import { outcomesIn, type Outcomes } from './outcomes.ts';
import { parkingIn, type Parking } from './parking.ts';
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
  parking: Parking;
  outcomes: Outcomes;
  staging: Staging;
  narrowing: Narrowing;
  absences: Absences;
  guarding: Guarding;
  held: HeldPlans;
  /** All or nothing in staging, which no other process sees; throws Busy as `transaction` does. */
  stage(work: () => void): void;
  /**
   * All or nothing, on disk when it returns. Waits while another process has the file locked, and
   * throws Busy when that lasts; having waited in vain once, it waits no more.
   */
  transaction<T>(work: () => T): T;
  /**
   * Copies it to `file`, which must not exist, while others may use it. `at` is when, in
   * milliseconds since the epoch; the copy remembers it. Throws Invalid, and the signal's reason.
   */
  backUp(file: string, copy: { at: number; signal: AbortSignal }): Promise<void>;
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
      return snapshotOf(db, patiently);
    });
  } catch (error) {
    db.close();
    throw error;
  }
}

/**
 * Opens the snapshot at `path` for looking, beside whoever writes it; nothing in it can be changed.
 * Undefined when there is none yet, or one that is just being made. One of an older version is
 * brought up to date first. Throws as `openSnapshot` does.
 */
export function lookInto(path: string): Snapshot | undefined {
  if (!existsSync(path)) return undefined;
  const db = new Database(path, { readonly: true, timeout: patienceMs });
  const patiently = waiterFor(db, path);
  try {
    const version = patiently(() => versionOf(db, path));
    if (version === migrations.length) return patiently(() => snapshotOf(db, patiently));
    db.close();
    return version === 0 ? undefined : renewed(path);
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Its tables are not changed under a process that knows them only as they were. */
function renewed(path: string): Snapshot {
  if (!isLeased(path)) return openSnapshot(path);
  throw new Busy(
    `${path}: an older version of crm-mirror is writing this snapshot → look again when it has ended`,
  );
}

type Wait = <T>(work: () => T) => T;

function snapshotOf(db: Database.Database, patiently: Wait): Snapshot {
  db.exec(stagingTables);
  return {
    meta: metaIn(db),
    recorded: recordedIn(db),
    journal: changesIn(db),
    runs: runsIn(db),
    problems: problemsIn(db),
    parking: parkingIn(db),
    outcomes: outcomesIn(db),
    staging: stagingIn(db),
    narrowing: narrowingIn(db),
    absences: absencesIn(db),
    guarding: guardingIn(db),
    held: heldIn(db),
    stage: (work) => patiently(() => db.transaction(work).deferred()),
    transaction: (work) => patiently(() => db.transaction(work).immediate()),
    backUp: async (file, copy) => backUp(db, file, copy),
    close: () => db.close(),
  };
}

/**
 * SQLite waits by itself, and says so by a code when it did in vain. In the middle of a run many
 * changes are under way: were each to wait as long again, the end of the run would take minutes. So
 * nothing more is waited for until something succeeds again.
 */
function waiterFor(db: Database.Database, path: string): Wait {
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
