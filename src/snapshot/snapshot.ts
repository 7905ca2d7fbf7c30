/**
 * The snapshot: one SQLite file per mirror with what we last saw acknowledged, the journal of
 * changes, the runs, and the known problems; and the staging of the run that is going on.
 *
 * One statement per function. A function here never opens a transaction; whoever has several things
 * that belong together calls `transaction`.
 */
import { chmodSync, existsSync } from 'node:fs';
import Database from 'better-sqlite3';
import { Busy, Invalid } from '../domain/errors.ts';
import { absencesIn, type Absences } from './tables/absence-counts.ts';
import { copyOf, type BackupPart } from './database/database-backup.ts';
import { check, damaged, isCheckDue, isDamage, noteChecked, setAside } from './damage-check.ts';
import { makeFolderOf, refuseNoPlace } from './database/snapshot-folder.ts';
import { onDisk } from './database/disk-errors.ts';
import { fenceIn, type Token } from './database/fencing-token.ts';
import { changesIn, type Journal } from './tables/journal.ts';
import { guardedChangesIn, type GuardedChanges } from './tables/guarded-changes.ts';
import { awaitingApprovalIn, type PlansAwaitingApproval } from './tables/awaiting-approval.ts';
import { isLeased } from './database/writer-lease.ts';
import { openToLook, refuseNoFile } from './database/read-only-open.ts';
import { historyIn, type RecordHistory } from './tables/record-history.ts';
import { metaIn, type Meta } from './database/meta-table.ts';
import { migrations } from './database/migrations.ts';
import { outcomesIn, type Outcomes } from './tables/change-outcomes.ts';
import { patienceMs, waiterFor, type Wait } from './database/lock-timeout.ts';
import { retryLaterIn, type RetryLater } from './tables/retry-later.ts';
import { problemsIn, type Problems } from './tables/known-problems.ts';
import { purgeIn, type Purge } from './tables/record-purge.ts';
import { recordedIn, type Recorded } from './tables/recorded-state.ts';
import { listNewsIn, type ListNews } from './staging/do-not-contact-news.ts';
import { optOutReportsIn, type OptOutReports } from './tables/opt-out-reports.ts';
import { runsIn, type Runs } from './tables/run-history.ts';
import { shapingIn, type Shaping } from './tables/guarded-shape.ts';
import { slicingIn, type Slicing } from './staging/slice-rollback.ts';
import { rangesIn, type KeyRanges } from './database/key-range.ts';
import { statementsOf } from './database/prepared-statements.ts';
import { stagingIn, type Staging } from './staging/staging.ts';
import { stagingTables } from './staging/staging-tables.ts';
import { candidatesIn, type DecisionCandidates } from './staging/decision-candidates.ts';
import { duplicatesIn, type Duplicates } from './staging/duplicate-records.ts';

export interface Snapshot {
  meta: Meta;
  recorded: Recorded;
  journal: Journal;
  runs: Runs;
  optOutReports: OptOutReports;
  problems: Problems;
  retryLater: RetryLater;
  outcomes: Outcomes;
  recordHistory: RecordHistory;
  slicing: Slicing;
  staging: Staging;
  listNews: ListNews;
  purge: Purge;
  candidates: DecisionCandidates;
  ranges: KeyRanges;
  duplicates: Duplicates;
  /**
   * Raises the fencing token (snapshot/database/fencing-token.ts): of all that have it open only
   * this one writes from now on. For who has taken the lease, and once; and where `least` is to be
   * the least it stands at.
   */
  fence(least?: number): void;
  /** How often it was opened to be written: what the fencing token stands at. */
  generation(): number;
  absences: Absences;
  guarded: GuardedChanges;
  shaping: Shaping;
  awaitingApproval: PlansAwaitingApproval;
  /** All or nothing in staging, which no other process sees; throws Busy as `transaction` does. */
  stage(work: () => void): void;
  /**
   * All or nothing, on disk when it returns; within another one, when that returns. Waits while
   * another process has the file locked, and throws Busy when that lasts; having waited in vain
   * once, it waits no more. Throws Busy, and writes nothing, when another has raised the fencing
   * token since this one did.
   */
  transaction<T>(work: () => T): T;
  /**
   * A copy for `file`, which must not exist, while others may use it. `at` is when, in milliseconds
   * since the epoch; the copy remembers it. Throws Invalid, and the signal's reason.
   */
  copy(file: string, copy: { at: number; signal: AbortSignal }): Promise<BackupPart>;
  /**
   * The same snapshot once more, with a staging of its own, for a run of this process beside
   * another; both write under one fencing token. To be closed by itself.
   */
  sibling(): Snapshot;
  close(): void;
}

/**
 * Opens the snapshot at `path`, making it (0600) and its folder when they do not exist. `inMemory`
 * is for a plan on a mirror that has no snapshot yet: nothing is left behind. Throws Busy while
 * another process has it locked, Invalid when it is damaged or of a newer version.
 */
export function openSnapshot(path: string, options: { inMemory?: boolean } = {}): Snapshot {
  return undamaged(path, () => open(path, options));
}

/**
 * Opens it for a run, whose process holds the lease: checked when that is due, and one that is
 * damaged is set `aside` under that name for a new one. `admit` may refuse, by throwing, before
 * anything is changed. Throws as `openSnapshot` does, but for damage.
 */
export function openForRun(
  path: string,
  { at, admit }: { at: number; admit(snapshot: Snapshot): void },
): { snapshot: Snapshot; aside: string | undefined } {
  try {
    return { snapshot: open(path, { checkedAt: at, admit }), aside: undefined };
  } catch (error) {
    if (!isDamage(error)) throw error;
    const aside = setAside(path, at);
    return { snapshot: openSnapshot(path), aside };
  }
}

interface Opening {
  inMemory?: boolean;
  /** Has it checked when that is due; milliseconds since the epoch. */
  checkedAt?: number;
  admit?(snapshot: Snapshot): void;
}

function open(path: string, { inMemory, checkedAt, admit }: Opening): Snapshot {
  const db = inMemory ? new Database(':memory:') : openFile(path);
  const patiently = waiterFor(db, path, 'snapshot');
  try {
    return patiently(() => {
      db.pragma('journal_mode = WAL');
      db.pragma('synchronous = FULL');
      db.pragma('foreign_keys = ON');
      migrate(db, path);
      const snapshot = snapshotOf(db, { path, patiently });
      admit?.(snapshot);
      if (checkedAt === undefined || !isCheckDue(db, checkedAt)) return snapshot;
      check(db);
      snapshot.transaction(() => noteChecked(db, checkedAt));
      return snapshot;
    });
  } catch (error) {
    db.close();
    throw error;
  }
}

function undamaged<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw isDamage(error) ? damaged(path) : error;
  }
}

/**
 * Opens the snapshot at `path` for looking, beside whoever writes it; nothing in it can be changed.
 * Undefined when there is none yet, or one that is just being made. One of an older version is
 * brought up to date first. `checkedAt` (milliseconds since the epoch) has it checked when that is
 * due. Throws as `openSnapshot` does.
 */
export function lookInto(path: string, checkedAt?: number): Snapshot | undefined {
  if (existsSync(path)) return undamaged(path, () => lookAt(path, checkedAt));
  refuseNoPlace(path);
  return undefined;
}

function lookAt(path: string, checkedAt: number | undefined): Snapshot | undefined {
  const db = openToLook(path, 'snapshot');
  const patiently = waiterFor(db, path, 'snapshot');
  try {
    const version = patiently(() => versionOf(db, path));
    if (version === migrations.length) {
      if (checkedAt !== undefined && isCheckDue(db, checkedAt)) check(db);
      return patiently(() => snapshotOf(db, { path, patiently }));
    }
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

interface Standing {
  path: string;
  patiently: Wait;
  token?: Token;
}

function snapshotOf(
  db: Database.Database,
  { path, patiently, token = { own: undefined } }: Standing,
): Snapshot {
  db.exec(stagingTables);
  const statements = statementsOf(db);
  const staging = stagingIn(statements);
  const fence = fenceIn(db, path, token);
  // In the middle of another it is a part of that: what fails in it undoes the whole.
  const within = <T>(begin: () => T, work: () => T): T =>
    db.inTransaction ? work() : patiently(begin);
  const checked =
    <T>(work: () => T) =>
    (): T => {
      fence.check();
      return work();
    };
  return {
    meta: metaIn(statements),
    recorded: recordedIn(statements),
    journal: changesIn(statements),
    runs: runsIn(statements),
    optOutReports: optOutReportsIn(statements),
    problems: problemsIn(statements),
    retryLater: retryLaterIn(statements),
    outcomes: outcomesIn(statements),
    recordHistory: historyIn(statements),
    slicing: slicingIn(statements),
    staging,
    listNews: listNewsIn(statements),
    purge: purgeIn(statements),
    candidates: candidatesIn(statements),
    ranges: rangesIn(statements),
    duplicates: duplicatesIn(statements),
    absences: absencesIn(statements),
    guarded: guardedChangesIn(statements),
    shaping: shapingIn(statements),
    awaitingApproval: awaitingApprovalIn(statements),
    fence: (least) => patiently(() => db.transaction(() => fence.raise(least)).immediate()),
    generation: fence.generation,
    stage(work) {
      try {
        within(() => db.transaction(checked(work)).deferred(), work);
      } catch (error) {
        staging.clearForms();
        throw error;
      }
    },
    transaction: (work) => within(() => db.transaction(checked(work)).immediate(), work),
    copy: async (file, { at, signal }) => {
      const note = (copy: Database.Database) =>
        metaIn(statementsOf(copy)).set('copied-at', String(at));
      return copyOf(db, file, { signal, note });
    },
    sibling: () => standBeside(path, token),
    close: () => db.close(),
  };
}

function standBeside(path: string, token: Token): Snapshot {
  const db = openFile(path);
  try {
    const patiently = waiterFor(db, path, 'snapshot');
    db.pragma('synchronous = FULL');
    db.pragma('foreign_keys = ON');
    return snapshotOf(db, { path, patiently, token });
  } catch (error) {
    db.close();
    throw error;
  }
}

function openFile(path: string): Database.Database {
  refuseNoFile(path, 'the snapshot');
  if (!existsSync(path)) {
    makeFolderOf(path);
    const made = onDisk(path, () => new Database(path, { timeout: patienceMs }));
    chmodSync(path, 0o600);
    return made;
  }
  return onDisk(path, () => new Database(path, { timeout: patienceMs }));
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
