import type { Key, RecordTypeName } from './record.ts';

/**
 * invalid: the source's record is unusable. rejected: the platform refused it. conflict: both sides
 * disagree and people come first. held: a guard withholds a class of changes, which its key names.
 */
export type ProblemClass = 'invalid' | 'rejected' | 'conflict' | 'held';

/** Something about one record that a person should know: one line each, no address in them. */
export interface Problem {
  kind: RecordTypeName;
  /** The record's key, or its place in the source when it has none. */
  key: Key;
  class: ProblemClass;
  /** What of the record it concerns: a channel, an operation; '' for the whole. */
  part: string;
  reason: string;
  fix: string;
  /** An opt-out that the source states is not sent for it: listed first, and each time. */
  urgent?: true;
}
