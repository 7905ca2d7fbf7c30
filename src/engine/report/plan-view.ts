/** Describes a plan for people: its changes in groups, and the reason for each. */
import type { Key } from '../../domain/record.ts';
import type { CannotUndo } from './run-summary.ts';
import type { ChangeGroup } from '../../store/staging/staging.ts';

/** A plan that can be looked at. It can be used until the next run of its mirror begins. */
export interface PlanView {
  /** The groups, each once. */
  groups: readonly ChangeGroup[];
  /** Yields the first records of a group, in plan order. Yields to other tasks in between. */
  records(group: ChangeGroup, most: number): AsyncIterable<PlannedRecord>;
  /** What cannot be undone, in a run that undoes another. */
  cannot?: readonly CannotUndo[] | undefined;
}

/** The changes of one record in one group. */
export interface PlannedRecord extends Pick<ChangeGroup, 'kind' | 'op' | 'held'> {
  key: Key;
  /** The parts of the record that change; none for the whole record. */
  parts: string[];
  /** The words of the rule that decided. */
  reason: string;
}
