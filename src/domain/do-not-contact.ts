/** What has to be remembered of a person when the record is gone (README, ledger). */
import type { Key } from './record.ts';

/**
 * Why somebody is remembered. opt_out: left one channel, or was taken out of it. doubtful: the
 * same, and a request of ours that had no answer may have done it. unsubscribed, blocked, bounce,
 * complaint, suppressed: out of all mail; a bounce belongs to the address. vanished: was ours, and
 * gone from the platform without us. erasure: forgotten on demand.
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
export type Cause = (typeof causes)[number];

/** One fact about a person, without saying whom. Times in milliseconds since the epoch. */
export interface RememberedOptOut {
  /** A channel; '*' for all. */
  part: string;
  cause: Cause;
  /** The platform's id of the contact that showed it: only the same one can take it back. */
  contact: string | null;
  /** It became so after this (null: unknown), and not later than `by`. */
  after: number | null;
  by: number;
}

/** An entry of the ledger that concerns somebody, and has not ended. */
export interface Entry extends RememberedOptOut {
  seq: number;
  /** How it was found: by the address, or only by an id that the source gave that person. */
  through: 'address' | 'id';
  /** Whether every id that was asked by is on it. */
  bears: boolean;
}

/** Whom the ledger is asked about, or told of; it keeps neither. */
export interface Identity {
  /** The trimmed, lower-cased address. */
  key: Key;
  /** Every id of the source that carries the address. */
  ids: readonly string[];
}

/** What the ledger learns of one person. */
export interface ListChanges {
  adds: readonly RememberedOptOut[];
  ends: readonly { seq: number; why: string }[];
  /** Entries of another address that ids of this person bear no longer; there they stand. */
  frees?: readonly { seq: number; why: string }[];
}

export type ListRemark = Identity & ListChanges;

/** Everything: beside it a channel's name is never this. */
export const all = '*';
