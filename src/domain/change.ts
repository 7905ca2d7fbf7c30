import type { GuardClass } from './guard-classes.ts';
import type { Key, RecordTypeName } from './record.ts';

/**
 * What can be done to a record on the platform. `complete` is the second step of a template's
 * creation: the fields that only an update can set.
 */
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

/** One request the plan wants to send, about one record. */
export interface Change {
  kind: RecordTypeName;
  key: Key;
  op: Op;
  /** What of the record it concerns: a contact's channel; '' for the whole. */
  part: string;
  /** The platform's id it is sent to; undefined = whatever id the record has by then. */
  target: string | undefined;
  /** What is sent, as the kind understands it: JSON. */
  body: string;
  /** Changes of a lower phase are sent first. */
  phase: number;
  /** Which guard counts it; none: it is never held. */
  guard?: GuardClass | undefined;
}

/**
 * Whether a change is an opt-out on the CRM's word: it goes first, and nothing but the guard for
 * mass opt-outs holds it up. Earlier versions journaled it without a guard.
 */
export function isStatedOptOut({ op, guard }: Pick<Change, 'op' | 'guard'>): boolean {
  return op === 'opt_out' && (guard === undefined || guard === 'opt_out');
}

/**
 * The states of a journaled change. planned: may be dropped. sent: committed before the request
 * leaves. acked, rejected and stale are final (stale: what it was planned on no longer holds).
 * unknown: sent, outcome not known; resolved by reading.
 */
export type ChangeState = 'planned' | 'sent' | 'acked' | 'rejected' | 'stale' | 'unknown';

/** A change in the journal. */
export interface JournaledChange extends Change {
  seq: number;
  run: string;
  state: ChangeState;
  sentAt: number | undefined;
}
