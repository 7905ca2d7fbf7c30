import { guardClasses, type GuardClass } from './guard-classes.ts';
import type { Key, RecordTypeName } from './record.ts';

/** Operations on a record. `complete` sets what only an update can set on a new template. */
export const ops = [
  'create',
  'complete',
  'opt_in',
  'opt_out',
  'update',
  'archive',
  'delete',
] as const;
export type Op = (typeof ops)[number];

/** One request in a plan, about one record. */
export interface Change {
  kind: RecordTypeName;
  key: Key;
  op: Op;
  /** The part of the record that changes: the id of a contact's channel; '' for all of it. */
  part: string;
  /** The platform's id that the request goes to; undefined for the one recorded at that time. */
  target: string | undefined;
  /** The content of the request as JSON text, in a form that contacts or templates define. */
  body: string;
  /** The sending order: changes of a lower phase are sent first. */
  phase: number;
  /** The guard class that counts the change; if undefined, it is never held. */
  guard?: GuardClass | undefined;
  /** Kept for the audit log. It is no part of the plan's hash. */
  why?: ChangeReason | undefined;
  /** What the platform shows and the change overwrites, as JSON text, for `undo`. Not hashed. */
  before?: string | undefined;
}

/** Why a change is planned, and what was there before. */
export interface ChangeReason {
  /** The id of the rule or gate that asks for the change. */
  rule: string;
  /** What the CRM states about the part: `opt_in`, `opt_out`, `gone`; undefined if nothing. */
  says?: string | undefined;
  /** When the person stated that, according to the CRM, in milliseconds since the epoch. */
  statedAt?: number | undefined;
  /** What the platform shows before the change: a subscription, `none`, or a fingerprint. */
  before: string;
  after?: string | undefined;
  /** The fingerprints of the CRM records that the decision is based on, joined by spaces. */
  records?: string | undefined;
}

/** Returns the class that counts a change. If undefined, the change is never held. */
export function guardOf(
  { kind, op }: { kind: RecordTypeName; op: Op },
  isStated = false,
): GuardClass | undefined {
  return guardClasses.find(
    ({ recordType, counts: { ops: counted, stated = isStated } }) =>
      recordType === kind && counted.includes(op) && stated === isStated,
  )?.id;
}

/** Returns whether the CRM states this opt-out. It is sent first; one guard alone can hold it. */
export function isStatedOptOut({ op, guard }: { op: Op; guard?: string | undefined }): boolean {
  return op === 'opt_out' && (guard === undefined || guard === 'opt_out');
}

/**
 * The states of a change in the journal.
 *
 *   planned                  may still be dropped
 *   sent                     committed before the request is sent
 *   acked, rejected, stale   final; stale means that the plan's assumptions no longer hold
 *   unknown                  sent without a known outcome, to be found out by a later read
 */
export type ChangeState = 'planned' | 'sent' | 'acked' | 'rejected' | 'stale' | 'unknown';

export interface JournaledChange extends Change {
  /** The number of the change; later changes have greater numbers. */
  seq: number;
  run: string;
  state: ChangeState;
  /** When it was marked as sent, in milliseconds since the epoch; undefined if it was not. */
  sentAt: number | undefined;
}

/** An acknowledged change of an earlier run, as `undo` needs it. */
export interface DoneChange {
  op: Op;
  part: string;
  target: Change['target'];
  body: Change['body'];
  before: Change['before'];
  /** The id of a later run that changed the same part of the record; undefined if none did. */
  later: string | undefined;
  isUndone: boolean;
  /** Whether it was so before anything was sent, so that it is not the doing of that run. */
  wasThere: boolean;
}
