/**
 * The forms of a contact: desired, observed, recorded; what the staging and the snapshot hold of
 * it.
 */
import { z } from 'zod';
import type { Subscription } from '../../platform/request.ts';
import type { Change } from '../../model/change.ts';

const subscription = z.enum(['opt_in', 'opt_out']);

/** What one CRM record wants, and whether it speaks of somebody who is there. */
export const desiredBody = z.object({
  presence: z.enum(['present', 'flagged', 'outside']),
  channels: z.record(z.string(), subscription.nullable()),
  /** When the person last stated their will in the CRM; milliseconds since the epoch. */
  consentAt: z.number().nullable().default(null),
});
export type DesiredContact = z.infer<typeof desiredBody>;

/** What the platform shows, of the configured channels only. */
export const observedBody = z.object({
  id: z.string(),
  /** unsubscribed, blocked, suppressed, or any status that is not `subscribed`. */
  left: z.boolean(),
  channels: z.record(z.string(), subscription),
  /**
   * When the contact last changed, in the platform's own words. Never compared with our time:
   * another one means that the person may have come back and left again, unseen.
   */
  changed: z.string().optional(),
});
export type ObservedContact = z.infer<typeof observedBody>;

/** Per channel: what was last acknowledged or seen, and for an opt-out who made it. */
const membership = z.object({
  is: subscription,
  by: z.enum(['us', 'platform']),
  /**
   * When an opt-out of the platform's was made: after we last saw the person in (null: we never
   * did), and not later than we saw them out. By our clock, milliseconds since the epoch.
   */
  made: z.object({ after: z.number().nullable(), by: z.number() }).optional(),
});
export type Membership = z.infer<typeof membership>;

export const recordedBody = z.object({
  /** What the platform showed last, of every contact of this address; kept when they vanish. */
  contacts: z.array(observedBody),
  /** Channels on which the creation itself left an opt-out that nobody made. */
  defaults: z.array(z.string()),
  channels: z.record(z.string(), membership),
});
export type RecordedContact = z.infer<typeof recordedBody>;

/**
 * What a change that may bring somebody in carries. forbids: the CRM wants an opt-out on another
 * channel. changed: of an opt_in that outweighs an opt-out, how the contact was. former: her
 * contacts under former addresses, as they were recorded.
 */
export const enrolmentBody = z.object({
  forbids: z.boolean().default(false),
  /** Where it outweighs an opt-out: how the contact must still be. */
  changed: z.string().optional(),
  former: z
    .array(z.object({ key: z.string(), id: z.string(), shown: z.string().optional() }))
    .default([]),
});

/** What a change of a subscription says. */
export function enrolment(change: Change): { channel: string; subscription: Subscription } {
  return { channel: change.part, subscription: change.op === 'opt_out' ? 'opt_out' : 'opt_in' };
}
