/** The way back: that somebody left, as the CRM is told it (README, back to the CRM). */

/**
 * How somebody left, and there is no other cause: what is told to the CRM is an opt-out by its
 * type. all_mail: out of all mail, and how was not told apart when it was seen.
 */
export const returnCauses = [
  'opt_out',
  'all_mail',
  'unsubscribed',
  'blocked',
  'bounce',
  'complaint',
  'suppressed',
] as const;
export type ReturnCause = (typeof returnCauses)[number];

/** One opt-out for one record of the CRM. Times in milliseconds since the epoch. */
export interface OptOutReport {
  /** The same however often it is told; of a later opt-out of the same person another one. */
  readonly id: string;
  readonly email: string;
  /** The CRM's id of the record; '': it has none. */
  readonly crmId: string;
  /** The channel that was left; '*': all mail. */
  readonly channel: string;
  readonly cause: ReturnCause;
  /** It was later than this (null: nobody knows), and not later than `by`. */
  readonly after: number | null;
  readonly by: number;
}

/**
 * The states of a return. needless: the CRM says so itself, or has no such record. planned: to be
 * told. sent: on disk before it leaves. acked, and rejected: what the CRM made of it; what it
 * rejected is told again after a day. unknown: sent, and nobody knows whether it arrived.
 */
export type ReturnState = 'needless' | 'planned' | 'sent' | 'acked' | 'rejected' | 'unknown';
