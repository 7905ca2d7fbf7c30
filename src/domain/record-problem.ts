import type { Key, RecordTypeName } from './record.ts';

/**
 * The classes of problems.
 *
 *   invalid    the record of the source cannot be used
 *   rejected   the platform refused a change
 *   conflict   CRM and platform disagree, and the person's own choice wins
 *   held       a guard holds back a class of changes; the key names the class
 */
export type ProblemClass = 'invalid' | 'rejected' | 'conflict' | 'held';

/**
 * A problem with one record that people should know of. Its texts are one line each, without
 * addresses.
 */
export interface RecordProblem {
  kind: RecordTypeName;
  /** The record's key; its place in the source when it has no key. */
  key: Key;
  class: ProblemClass;
  /** The part of the record: a channel or an operation; '' for the whole record. */
  part: string;
  /** Says what is wrong. */
  reason: string;
  /** Says how to mend it. */
  fix: string;
  /**
   * Set when an opt-out that the source states cannot be sent. Such a problem is listed first,
   * every time.
   */
  urgent?: true;
}
