/** What `undo` passes to a record type, and what the type answers (docs/decisions/undo.md). */
import type { DoneChange, Op } from '../domain/change.ts';

/** The run that is undone, and its changes to one record, oldest first. */
export interface Undoing {
  run: string;
  changes: readonly DoneChange[];
  /**
   * When the newest change of any run to the record was acknowledged, by the platform's clock as
   * far as it is known, in milliseconds since the epoch.
   */
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
  if (isUndone) {
    const reason = `run ${later} has undone it already`;
    return { op, part, rule: 'already-undone', reason };
  }
  const reason = `run ${later} has changed it since: undo that run first`;
  return { op, part, rule: 'changed-later', reason };
}
