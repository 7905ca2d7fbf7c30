/** What a run decides about one record, and what of an earlier run it cannot undo. */
import type { Change, Op, DoneChange } from '../domain/change.ts';
import type { ListChanges } from '../domain/do-not-contact.ts';
import type { RecordProblem } from '../domain/record-problem.ts';
import type { Key, RecordedRow } from '../domain/record.ts';

/** The result of `decide`. */
export interface Decision {
  changes: Change[];
  /** The row to record before anything is sent; undefined if there is nothing to record. */
  note: RecordedRow | undefined;
  /** The changes to the do-not-contact list. */
  news?: ListChanges;
  /** Whether the record was found on the platform and is owned by the mirror from now on. */
  adopts: boolean;
  /** The settings that prevent a change to the record, each once. */
  stoppedBy?: readonly Stop[];
  forgets: Key[];
  problems: RecordProblem[];
}

export interface Undone {
  decision: Decision;
  cannot: NotUndone[];
}

/** A setting that prevents a change: contacts.protect, policy.optIns: off, or a sample. */
export type Stop = 'protect' | 'optIns' | 'sample';

/** A run that is undone, and its changes to a record, oldest first (docs/decisions/consent.md). */
export interface Undoing {
  run: string;
  changes: readonly DoneChange[];
  /** When any run's newest change to it was acknowledged, by the platform's clock if known. */
  doneAt?: number | undefined;
}

/** A change that cannot be undone, and why. */
export interface NotUndone {
  op: Op;
  part: string;
  /** A word for programs: the id of the rule or gate that forbids it, or one of undo's own. */
  rule: string;
  reason: string;
}

/** Says that a later run has changed the same part, or has undone the change. */
export function changedLater({ op, part, later = '', isUndone }: DoneChange): NotUndone {
  return isUndone
    ? { op, part, rule: 'already-undone', reason: `run ${later} has undone it already` }
    : {
        op,
        part,
        rule: 'changed-later',
        reason: `run ${later} has changed it since: undo that run first`,
      };
}
