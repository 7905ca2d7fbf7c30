/**
 * The forms of a contact: desired, observed, recorded; what the staging and the snapshot hold of
 * it. Observed and recorded ones have their fields in the order of canonical JSON, which saves
 * sorting them for everybody.
 */
import { z } from 'zod';
import type { Subscription } from '../../../platform/request-schemas.ts';
import type { Change } from '../../../domain/change.ts';
import { canonicalJson } from '../../../domain/record.ts';

const subscription = z.enum(['opt_in', 'opt_out']);

/** What one CRM record wants, and whether it speaks of somebody who is there. */
export const desiredBody = z.object({
  presence: z.enum(['present', 'flagged', 'outside']),
  channels: z.record(z.string(), subscription.nullable()),
  /** When the person last stated their will in the CRM; milliseconds since the epoch. */
  consentAt: z.number().nullable().default(null),
  /** Whether a condition of contacts.protect holds for it. */
  protected: z.literal(true).optional(),
});
export type DesiredContact = z.infer<typeof desiredBody>;

/** Of somebody of whom the CRM says nothing but that they are there. */
export const silentBody = canonicalJson({
  presence: 'present',
  channels: {},
  consentAt: null,
} satisfies DesiredContact);

/** What the platform shows, of the configured channels and those they replace only. */
export const observedBody = z.object({
  /** Of whoever left: how. Records of before this was told apart do not say. */
  causes: z
    .array(z.enum(['unsubscribed', 'blocked', 'bounce', 'complaint', 'suppressed']))
    .optional(),
  /**
   * When the contact last changed, in the platform's own words. Never compared with our time:
   * another one means that the person may have come back and left again, unseen.
   */
  changed: z.string().optional(),
  channels: z.record(z.string(), subscription),
  id: z.string(),
  /** unsubscribed, blocked, suppressed, or any status that is not `subscribed`. */
  left: z.boolean(),
});
export type ObservedContact = z.infer<typeof observedBody>;

/** A contact of the person that has another address on the platform by now, as shown last. */
const renamedBody = observedBody.extend({
  /** The channels in which we opted it out by its id, while the opt-out is shown. */
  outByUs: z.array(z.string()).optional(),
});
export type RecordedRenamed = z.infer<typeof renamedBody>;

/**
 * When something happened that nobody dated, in milliseconds since the epoch: after a time by our
 * clock, and by one of whichever clock showed more, ours or the platform's.
 */
const bracket = z.object({ after: z.number().nullable(), by: z.number() });
export type Bracket = z.infer<typeof bracket>;

const optOutCause = z.enum(['stated', 'absence', 'flag', 'address']);

/** Per channel: what was last acknowledged or seen, and for an opt-out who made it. */
const membership = z.object({
  /**
   * Of an opt-out of ours: when it was acknowledged, by whichever clock showed more, ours or the
   * platform's; earlier versions do not say.
   */
  acked: z.number().optional(),
  /**
   * Of an opt-out of ours that the CRM stated: the ids of all records of the address since then.
   * With these it goes to another address.
   */
  bound: z.array(z.string()).optional(),
  by: z.enum(['us', 'platform']),
  /** Of an opt-out of ours: what it was for; earlier versions do not say. */
  cause: optOutCause.optional(),
  /** An opt-out that our request without an answer may have made, or that was there before. */
  doubtful: z.literal(true).optional(),
  is: subscription,
  /**
   * When an opt-out of the platform's was made: after we last saw the person in (null: we never
   * did), and not later than we saw them out.
   */
  made: bracket.optional(),
  /** Of an opt-out of ours: `allow` lets any record of the CRM take it back. */
  released: z.literal(true).optional(),
  /** Of an opt-out of ours that the CRM stated: the ids of the records that state it. */
  stated: z.array(z.string()).optional(),
});
export type Membership = z.infer<typeof membership>;

export const recordedBody = z.object({
  /**
   * Whether `allow` took an erasure of the person back, and the platform was not read since: an
   * opt-out that it shows next may be ours.
   */
  allowed: z.literal(true).optional(),
  channels: z.record(z.string(), membership),
  /** What the platform showed last, of every contact of this address; kept when they vanish. */
  contacts: z.array(observedBody),
  /** Channels on which the creation itself left an opt-out that nobody made. */
  defaults: z.array(z.string()),
  /** Since when one of the contacts is out of all mail, where that is known. */
  left: bracket.optional(),
  /** Channels that she joined by herself after she left the ones they took over from. */
  outgrown: z.array(z.string()).default([]),
  renamed: z.array(renamedBody).optional(),
  /** Whether a condition of contacts.protect held when the CRM last spoke of the person. */
  protected: z.literal(true).optional(),
});
export type RecordedContact = z.infer<typeof recordedBody>;

/**
 * What a change that may bring somebody in carries. forbids: the CRM wants an opt-out on another
 * channel. settles: of a creation, whether nothing is left to do once it is made
 * (converged-creation.ts). changed and newer: of an opt_in that outweighs an opt-out, how the
 * contact was, and when that will was stated. former: her contacts under former addresses, as they
 * were shown last: fingerprints, sorted.
 */
export type EnrolmentBody = z.infer<typeof enrolmentBody>;
export const enrolmentBody = z.object({
  forbids: z.boolean().default(false),
  /**
   * Of an opt-out or a delete: nobody said so, but the CRM has another address of hers by now. It
   * counts as one for absence.
   */
  moved: z.boolean().default(false),
  /**
   * Holds why an opt-out is made: the CRM states it, the person is missing there, is flagged as
   * deleted there, or has another address by now. Changes of earlier versions do not say.
   */
  cause: optOutCause.optional(),
  /** Holds the ids of the CRM records that state an opt-out, and of all that it is bound to. */
  stated: z.array(z.string()).optional(),
  bound: z.array(z.string()).optional(),
  /** Of a delete, where nothing is recorded of what was seen: the fingerprint of the contact. */
  shown: z.string().optional(),
  /** Where it outweighs an opt-out: how the contact must still be. */
  changed: z.string().optional(),
  newer: z.number().optional(),
  former: z.array(z.object({ key: z.string(), shown: z.array(z.string()) })).default([]),
  settles: z.literal(true).optional(),
});

/** What a change of a subscription says. */
export function enrolment(change: Change): { channel: string; subscription: Subscription } {
  return { channel: change.part, subscription: change.op === 'opt_out' ? 'opt_out' : 'opt_in' };
}
