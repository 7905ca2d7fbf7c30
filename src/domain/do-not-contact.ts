/** The entries of the do-not-contact list, which outlive a deleted record (docs/erasure.md). */
import { z } from 'zod';
import type { Key } from './record.ts';

/**
 * The reasons why a person is on the list.
 *
 *   opt_out       unsubscribed from one channel, or was removed from it
 *   doubtful      the same, but a request of ours without a response may have caused it
 *   unsubscribed, blocked, bounce, complaint, suppressed
 *                 receives no mail at all; a bounce concerns the address only
 *   vanished      was ours, and disappeared from the platform without our doing
 *   erasure       was forgotten on request
 *   operator      opted out of one channel by a person who settled a conflict (`resolve --out`)
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
  'operator',
] as const;
export type Cause = (typeof causes)[number];

/** One fact about a person, without their identity. Times are in milliseconds since the epoch. */
export interface RememberedOptOut {
  /** The id of a channel; `all` ('*') for all mail. */
  part: string;
  cause: Cause;
  /** The platform's id of the contact that showed it, which alone revokes it; null if unknown. */
  contact: string | null;
  /** It happened after this time (null if unknown) and not later than `by`. */
  after: number | null;
  by: number;
  /** For an operator's decision: who made it and why, as JSON text; null for anything else. */
  note?: string | null;
}

/** Who settled a conflict, when (in milliseconds since the epoch), why, and on what evidence. */
export const settlement = z.object({
  at: z.number(),
  by: z.string(),
  evidence: z.string(),
  reason: z.string(),
});
export type Settlement = z.infer<typeof settlement>;

/** An open entry of the list that concerns the queried person. */
export interface Entry extends RememberedOptOut {
  /** The number of the entry; later entries have greater numbers. */
  seq: number;
  /** Whether the entry was found by the address, or only by a CRM id of the person. */
  through: 'address' | 'id';
  /** Whether all queried CRM ids belong to the entry. */
  bears: boolean;
}

/** The identity used to query and update the list. The list stores only hashes of it. */
export interface Identity {
  key: Key;
  ids: readonly string[];
}

/** Changes to the list for one person: new entries, and entries that end. */
export interface ListChanges {
  adds: readonly RememberedOptOut[];
  ends: readonly { seq: number; why: string }[];
  /**
   * Entries that stay with another address. They get no reason, which an erasure would not find.
   */
  frees?: readonly number[];
}

/** A change to the list for one person, with the person's identity. */
export type ListRemark = Identity & ListChanges;

/** The `part` of an entry that concerns all mail. No channel has this id. */
export const all = '*';
