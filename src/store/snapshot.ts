/**
 * The snapshot: one SQLite file per mirror that holds the last acknowledged state, the journal of
 * changes, the runs and the known problems, together with the staging of the current run. Its
 * functions open no transaction: a caller with several steps that belong together does.
 */
import { absencesIn } from './tables/absence-counts.ts';
import { changesIn, runChangesIn } from './tables/journal.ts';
import { judgedChangesIn } from './holds/judged-changes.ts';
import { holdsIn } from './holds/holds.ts';
import { historyIn, outcomesIn, runsIn } from './tables/run-history.ts';
import { metaIn } from './database/meta-table.ts';
import {
  problemsIn,
  retryLaterIn,
  unmanagedIn,
  unreadableOptOutsIn,
} from './tables/known-problems.ts';
import { usedNumbersIn } from './tables/used-numbers.ts';
import { purgeIn } from './tables/record-purge.ts';
import { recordedIn } from './tables/recorded-state.ts';
import { optOutReportsIn } from './tables/opt-out-reports.ts';
import { shapingIn } from './holds/change-shape.ts';
import { statedConsentsIn } from './tables/stated-consents.ts';
import { listNewsIn, slicingIn, stagingIn } from './staging/staging.ts';
import { rangesIn } from './database/key-range.ts';
import { unauditedIn } from './tables/unaudited.ts';
import { figuresIn } from './tables/run-figures.ts';
import type { Statements } from './database/prepared-statements.ts';
import { candidatesIn } from './staging/decision-candidates.ts';
import { duplicatesIn } from './staging/desired-records.ts';
import { platformDriftIn } from './staging/observed-records.ts';

type Parts = ReturnType<typeof partsIn>;

interface SnapshotCopy {
  name(): void;
  drop(): void;
}

export interface Snapshot extends Parts {
  /**
   * Raises the fencing token (store/database/writer-lease.ts), to at least `least`: from now on
   * only this process may write. A process calls it once, after taking the lease.
   */
  fence(least?: number): void;
  /** Undoes `fence`, for a process that has written nothing since and releases the lease. */
  withdrawFence(): void;
  /** The fencing token, which counts how often the snapshot was opened for writing. */
  generation(): number;
  /** The inode number of the file, which a copy of the file does not share. */
  fileNumber(): string;
  /**
   * Runs work on the staging tables, which no other process sees, all or nothing. Throws Busy as
   * `transaction` does.
   */
  stage(work: () => void): void;
  /**
   * Runs work all or nothing. It is on disk when this returns or, within another transaction, when
   * that one returns. Throws Busy if another process has the file locked for too long, or has
   * raised the fencing token since this one did.
   */
  transaction<T>(work: () => T): T;
  /**
   * Copies the snapshot for `file`, which must not exist, while others may use it. A backup stores
   * the time `at`, in milliseconds since the epoch. Throws Invalid, and the signal's reason.
   */
  copy(file: string, copy: { at?: number; signal: AbortSignal }): Promise<SnapshotCopy>;
  /**
   * Opens the same snapshot again, with its own staging tables, for a concurrent run of this
   * process. Both write under one fencing token. The caller closes it.
   */
  sibling(): Snapshot;
  close(): void;
}

/** Prepares the queries, one part for each subject. */
export function partsIn(db: Statements) {
  return {
    meta: metaIn(db),
    recorded: recordedIn(db),
    journal: changesIn(db),
    runs: runsIn(db),
    figures: figuresIn(db),
    optOutReports: optOutReportsIn(db),
    problems: problemsIn(db),
    retryLater: retryLaterIn(db),
    unreadableOptOuts: unreadableOptOutsIn(db),
    unmanaged: unmanagedIn(db),
    usedNumbers: usedNumbersIn(db),
    outcomes: outcomesIn(db),
    runChanges: runChangesIn(db),
    drift: platformDriftIn(db),
    recordHistory: historyIn(db),
    slicing: slicingIn(db),
    staging: stagingIn(db),
    listNews: listNewsIn(db),
    purge: purgeIn(db),
    candidates: candidatesIn(db),
    ranges: rangesIn(db),
    duplicates: duplicatesIn(db),
    absences: absencesIn(db),
    stated: statedConsentsIn(db),
    guarded: judgedChangesIn(db),
    shaping: shapingIn(db),
    holds: holdsIn(db),
    unaudited: unauditedIn(db),
  };
}
