/** What `undo` passes to a record type, and what the type answers (docs/decisions/undo.md). */
import type { DoneChange, Op } from '../domain/change.ts';

/** The run that is undone, and its changes to one record, oldest first. */
export interface Undoing {
  run: string;
  changes: readonly DoneChange[];
}

/** A change that cannot be undone, and why. */
export interface NotUndone {
  op: Op;
  part: string;
  /** A word for programs: the id of the rule or gate that forbids it, or one of undo's own. */
  rule: string;
  reason: string;
}

/** Says that a later run has changed the same part. */
export function changedLater({ op, part, later = '' }: DoneChange): NotUndone {
  return {
    op,
    part,
    rule: 'changed-later',
    reason: `run ${later} has changed it since: undo that run first`,
  };
}
