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

/**
 * A problem with one record that people should know about. Its texts are one line each, without
 * addresses.
 */
export interface RecordProblem extends ProblemCommon {
  kind: RecordTypeName;
  /** The record's key, or its place in the source if it has no key. */
  key: Key;
  class: ProblemClass;
  /** The part of the record: a channel or an operation; '' for the whole record. */
  part: string;
  /** States what is wrong. */
  reason: string;
  /** States how to fix it. */
  fix: string;
  /** The record's place in the source ("line 17"), if the problem is about the source. */
  place?: string | undefined;
  /** The id of that record in the CRM. */
  crmId?: string | undefined;
  /**
   * Set if an opt-out that the source states cannot be sent. Such a problem is listed first in
   * every run.
   */
  urgent?: true;
}

/**
 * The causes of problems, by class. A cause is a stable word for programs: the texts may change, a
 * cause does not. Each stands for one thing to do.
 */
export const problemCauses = {
  invalid: [
    'opt-out-unreadable',
    'unknown-word',
    'date-in-future',
    'no-single-value',
    'id-missing',
    'id-shared',
    'address-missing',
    'address-invalid',
    'consent-time-unreadable',
    'condition-failed',
    'unreadable-record',
    'template-invalid',
  ],
  conflict: [
    'records-contradict',
    'left-all-mail',
    'left-channel',
    'left-replaced-channel',
    'left-before',
    'left-former-address',
    'subscription-removed',
    'opt-out-doubtful',
    'own-opt-out',
    'undone',
    'vanished',
    'erased',
    'several-contacts',
    'renamed',
    'renamed-claimed',
    'channel-lost',
    'deleted-subscribed',
    'deleted-protected',
    'out-of-scope-subscribed',
    'out-of-scope-protected',
    'template-edited',
    'template-differs',
    'template-vanished',
    'template-undone',
  ],
  rejected: [
    'opt-out-refused',
    'platform-refused',
    'crm-refused',
    'template-name-shared',
    'template-too-deep',
    'template-untested',
  ],
  held: ['awaiting-approval'],
  /** The cause of a problem that an earlier version recorded. The next run names the cause. */
  unknown: ['unknown'],
} as const;

/** One of `problemCauses`. */
export type ProblemCause = (typeof problemCauses)[keyof typeof problemCauses][number];

/** What a problem shares with other problems of the same cause. */
export interface ProblemCommon {
  cause: ProblemCause;
  /** The reason without what belongs to one record only. If undefined, it is the reason itself. */
  about?: string | undefined;
  /** The option of the configuration whose field holds an unknown value. */
  option?: string | undefined;
  /** The unknown value, cut short; undefined for a list or an object. It may be personal data. */
  value?: string | undefined;
}
