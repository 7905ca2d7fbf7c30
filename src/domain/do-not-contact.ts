/** The entries of the do-not-contact list: what outlives a deleted record (docs/erasure.md). */
import type { Key } from './record.ts';

/**
 * The reasons why somebody is on the list.
 *
 *   opt_out       unsubscribed from one channel, or was taken out of it
 *   doubtful      the same, but a request of ours that had no answer may have done it
 *   unsubscribed, blocked, bounce, complaint, suppressed
 *                 receives no mail at all; a bounce belongs to the address only
 *   vanished      was ours, and disappeared from the platform without us
 *   erasure       was forgotten on demand
 */
export const causes = [
  'opt_out',
  'doubtful',
  'unsubscribed',
  'blocked',
  'bounce',
  'complaint',
  'suppressed',
  'vanished',
  'erasure',
] as const;
/** One of `causes`. */
export type Cause = (typeof causes)[number];

/** One fact about a person, without saying who it is. Times are milliseconds since the epoch. */
export interface RememberedOptOut {
  /** The id of a channel; `all` ('*') for all mail. */
  part: string;
  cause: Cause;
  /**
   * The platform's id of the contact that showed it; only the same contact can take it back. Null:
   * unknown.
   */
  contact: string | null;
  /** It happened after this time (null: unknown) and not later than `by`. */
  after: number | null;
  by: number;
}

/** An entry of the list that concerns the person asked about, and has not ended. */
export interface Entry extends RememberedOptOut {
  /** The number of the entry; later entries have greater numbers. */
  seq: number;
  /** Whether the entry was found by the address, or only by a CRM id of the person. */
  through: 'address' | 'id';
  /** Whether all CRM ids asked about belong to the entry. */
  bears: boolean;
}

/** The identity that the list is asked about or told of. The list stores hashes of it only. */
export interface Identity {
  /** The address, trimmed and in lower case. */
  key: Key;
  /** Every CRM id of a record with this address. */
  ids: readonly string[];
}

/** Changes of the list for one person: new entries, and entries that end. */
export interface ListChanges {
  adds: readonly RememberedOptOut[];
  ends: readonly { seq: number; why: string }[];
  /**
   * Entries of another address that no longer belong to this person's ids. They stay with that
   * address.
   */
  frees?: readonly { seq: number; why: string }[];
}

/** A change of the list for one person, with the person's identity. */
export type ListRemark = Identity & ListChanges;

/** The part of an entry that concerns all mail. No channel has this id. */
export const all = '*';
