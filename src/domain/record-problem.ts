import type { ProblemCommon } from './problem-causes.ts';
import type { Key, RecordTypeName } from './record.ts';

/**
 * The classes of problems.
 *
 *   invalid    the record of the source cannot be used
 *   rejected   the platform refused a change
 *   conflict   CRM and platform disagree, and the person's own choice wins
 *   held       a guard holds a class of changes; the key names the class
 */
export type ProblemClass = 'invalid' | 'rejected' | 'conflict' | 'held';

/** A problem with one record for people to know. Its texts are one line each, without addresses. */
export interface RecordProblem extends ProblemCommon {
  kind: RecordTypeName;
  /** The record's key, or its place in the source if it has no key. */
  key: Key;
  class: ProblemClass;
  /** The part of the record: a channel or an operation; '' for the whole record. */
  part: string;
  reason: string;
  fix: string;
  /** The record's place in the source ("line 17"), if the problem is about the source. */
  place?: string | undefined;
  crmId?: string | undefined;
  /** Set if a stated opt-out cannot be sent. Such a problem is listed first in every run. */
  urgent?: true;
}
