/**
 * The forms of a contact: desired, observed and recorded, as the staging and the snapshot hold
 * them. The fields of observed and recorded contacts are in the order of canonical JSON, so that
 * nothing has to be sorted.
 */
import { z } from 'zod';
import type { Subscription } from '../../../platform/request-schemas.ts';
import type { Change } from '../../../domain/change.ts';
import { canonicalJson } from '../../../domain/record.ts';

const subscription = z.enum(['opt_in', 'opt_out']);

/**
 * The desired state by one CRM record: its presence, and a subscription by channel (null: no
 * opinion).
 */
export const desiredBody = z.object({
  presence: z.enum(['present', 'flagged', 'outside']),
  channels: z.record(z.string(), subscription.nullable()),
  /**
   * When the person last stated their will in the CRM, in milliseconds since the epoch; null: not
   * said.
   */
  consentAt: z.number().nullable().default(null),
  /** Whether a condition of contacts.protect holds for the record. */
  protected: z.literal(true).optional(),
});
export type DesiredContact = z.infer<typeof desiredBody>;

/** The desired body where the CRM says only that the person is there. */
export const silentBody = canonicalJson({
  presence: 'present',
  channels: {},
  consentAt: null,
} satisfies DesiredContact);

/** A contact as the platform shows it, with the configured channels and those they replace only. */
export const observedBody = z.object({
  /**
   * The ways in which the contact is out of all mail; undefined also in rows of earlier versions.
   */
  causes: z
    .array(z.enum(['unsubscribed', 'blocked', 'bounce', 'complaint', 'suppressed']))
    .optional(),
  /**
   * When the contact last changed, as text of the platform. It is never compared with our time:
   * another text means that the person may have come back and left again, unseen.
   */
  changed: z.string().optional(),
  channels: z.record(z.string(), subscription),
  id: z.string(),
  /** Whether the contact is out of all mail: suppressed, or of a status other than `subscribed`. */
  left: z.boolean(),
});
export type ObservedContact = z.infer<typeof observedBody>;

/** A contact of the person that has another address on the platform by now, as last shown. */
const renamedBody = observedBody.extend({
  /** The channels in which we opted it out by its id, as long as it shows the opt-out. */
  outByUs: z.array(z.string()).optional(),
});
export type RecordedRenamed = z.infer<typeof renamedBody>;

/**
 * The time of something that nobody dated, in milliseconds since the epoch: later than `after` by
 * our clock (null: unknown), and not later than `by` by whichever clock is ahead, ours or the
 * platform's.
 */
const bracket = z.object({ after: z.number().nullable(), by: z.number() });
export type Bracket = z.infer<typeof bracket>;

const optOutCause = z.enum(['stated', 'absence', 'flag', 'address']);

/** The state of one channel: what was last acknowledged or seen, and who made an opt-out. */
const membership = z.object({
  /**
   * When our opt-out was acknowledged, by whichever clock is ahead, ours or the platform's, in
   * milliseconds since the epoch. Rows of earlier versions lack it.
   */
  acked: z.number().optional(),
  /**
   * The ids of all CRM records that had the address since the CRM stated our opt-out. With them the
   * opt-out goes to another address.
   */
  bound: z.array(z.string()).optional(),
  by: z.enum(['us', 'platform']),
  /** The reason for our opt-out. Rows of earlier versions lack it. */
  cause: optOutCause.optional(),
  /** Whether an unanswered request of ours may have made the opt-out, or it was there before. */
  doubtful: z.literal(true).optional(),
  is: subscription,
  /**
   * When the platform's opt-out was made: after we last saw the person in (null: we never did), and
   * not later than we saw them out.
   */
  made: bracket.optional(),
  /** Whether `allow` lets any record of the CRM take our opt-out back. */
  released: z.literal(true).optional(),
  /** The ids of the CRM records that state our opt-out. */
  stated: z.array(z.string()).optional(),
});
export type Membership = z.infer<typeof membership>;

/** A contact as it is recorded. */
export const recordedBody = z.object({
  /**
   * Whether `allow` took an erasure of the person back, and the platform was not read since: an
   * opt-out that it shows next may be ours.
   */
  allowed: z.literal(true).optional(),
  channels: z.record(z.string(), membership),
  /** The contacts of this address as the platform last showed them. They stay when they vanish. */
  contacts: z.array(observedBody),
  /** The channels in which the creation itself left an opt-out that nobody made. */
  defaults: z.array(z.string()),
  /** When one of the contacts went out of all mail; undefined: not known, or none did. */
  left: bracket.optional(),
  /** The channels that the person joined by themselves after leaving the ones they replace. */
  outgrown: z.array(z.string()).default([]),
  renamed: z.array(renamedBody).optional(),
  /** Whether a condition of contacts.protect held when the CRM last spoke of the person. */
  protected: z.literal(true).optional(),
});
export type RecordedContact = z.infer<typeof recordedBody>;

/** The body of a change of a contact. */
export type EnrolmentBody = z.infer<typeof enrolmentBody>;
export const enrolmentBody = z.object({
  /** Whether the CRM wants an opt-out in another channel. */
  forbids: z.boolean().default(false),
  /**
   * Whether the person has another address in the CRM by now, and no record states the opt-out or
   * delete. Such a change counts as one for absence.
   */
  moved: z.boolean().default(false),
  /**
   * The reason for an opt-out: the CRM states it, the person is missing there, is flagged as
   * deleted there, or has another address by now. Changes of earlier versions lack it.
   */
  cause: optOutCause.optional(),
  /** The ids of the CRM records that state an opt-out, and of all that it is bound to. */
  stated: z.array(z.string()).optional(),
  bound: z.array(z.string()).optional(),
  /** The fingerprint of the contact to delete, where none is recorded. */
  shown: z.string().optional(),
  /**
   * How the contact must still be (its `changed`) for an opt_in that outweighs an opt-out, and when
   * that will was stated, in milliseconds since the epoch.
   */
  changed: z.string().optional(),
  newer: z.number().optional(),
  /** The contacts of the person under former addresses, as last shown: sorted fingerprints. */
  former: z.array(z.object({ key: z.string(), shown: z.array(z.string()) })).default([]),
  /** Whether a creation leaves nothing else to do (converged-creation.ts). */
  settles: z.literal(true).optional(),
});

/** Returns the channel of a change, and the subscription that it sets. */
export function enrolment(change: Change): { channel: string; subscription: Subscription } {
  return { channel: change.part, subscription: change.op === 'opt_out' ? 'opt_out' : 'opt_in' };
}
