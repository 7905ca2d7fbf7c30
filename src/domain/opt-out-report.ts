/** Opt-outs on the platform, as they are reported to the CRM (docs/write-back.md). */

/** How a person opted out. There is no other cause. all_mail: exact cause unknown. */
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

/** One opt-out, reported for one record of the CRM. Times are in milliseconds since the epoch. */
export interface OptOutReport {
  /** The same for every attempt to report it, and another for a later opt-out of the person. */
  readonly id: string;
  readonly email: string;
  /** The CRM's id of the record; '' if it has none. */
  readonly crmId: string;
  /** The id of the channel; '*' for all mail. */
  readonly channel: string;
  readonly cause: ReturnCause;
  /** The opt-out happened after this time (null if unknown) and not later than `by`. */
  readonly after: number | null;
  readonly by: number;
}

/**
 * The states of a report.
 *
 *   needless   the CRM states the opt-out itself, or has no such record
 *   planned    to be sent
 *   sent       stored on disk before it is sent
 *   acked      the CRM accepted it
 *   rejected   the CRM refused it; sent again after a day
 *   unknown    sent, and it is not known whether it arrived
 */
export type ReturnState = 'needless' | 'planned' | 'sent' | 'acked' | 'rejected' | 'unknown';
