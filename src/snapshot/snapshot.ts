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
import { Invalid } from '../model/errors.ts';
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
  /** All or nothing in staging, which no other process sees. */
  stage(work: () => void): void;
  /** All or nothing, on disk when it returns. */
  transaction<T>(work: () => T): T;
  close(): void;
}

/**
 * Opens the snapshot at `path`, making it (0600) and its folder when they do not exist. `inMemory`
 * is for a plan on a mirror that has no snapshot yet: nothing is left behind.
 */
export function openSnapshot(path: string, options: { inMemory?: boolean } = {}): Snapshot {
  const db = options.inMemory ? new Database(':memory:') : openFile(path);
  try {
    db.pragma('journal_mode = WAL');
    db.pragma('synchronous = FULL');
    db.pragma('foreign_keys = ON');
    migrate(db, path);
    db.exec(stagingTables);
  } catch (error) {
    db.close();
    throw error;
  }
  return {
    meta: metaIn(db),
    recorded: recordedIn(db),
    journal: changesIn(db),
    runs: runsIn(db),
    problems: problemsIn(db),
    staging: stagingIn(db),
    narrowing: narrowingIn(db),
    stage: (work) => db.transaction(work).deferred(),
    transaction: (work) => db.transaction(work).immediate(),
    close: () => db.close(),
  };
}

function openFile(path: string): Database.Database {
  if (!existsSync(path)) {
    mkdirSync(dirname(path), { recursive: true });
    const made = new Database(path, { timeout: 5_000 });
    chmodSync(path, 0o600);
    return made;
  }
  return new Database(path, { timeout: 5_000 });
}

function migrate(db: Database.Database, path: string): void {
  const version = Number(db.pragma('user_version', { simple: true }));
  if (version > migrations.length) {
    throw new Invalid(
      `${path}: this snapshot was written by a newer version of crm-mirror ` +
        `(format ${version}, this one knows ${migrations.length}) → run that version, or restore an older backup`,
    );
  }
  const pending = migrations.slice(version);
  if (pending.length === 0) return;
  db.transaction(() => {
    for (const step of pending) db.exec(step);
    db.pragma(`user_version = ${migrations.length}`);
  }).exclusive();
}
