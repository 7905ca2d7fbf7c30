/** Updates what is recorded for a person in one channel after reading the platform. */
import type { Contact } from '../../../platform/answer-schemas.ts';
import type { Subscription } from '../../../platform/request-schemas.ts';
import type { Membership } from './contact-state.ts';

/** One reading of a person. Times are in milliseconds since the epoch. */
export interface Observation {
  /** Whether the platform shows a contact of the person. */
  present: boolean;
  /** When the person was previously read; null if never. */
  before: number | null;
  /** When the reading ended, by our clock or the platform's, whichever is ahead. */
  by: number;
  /** Whether the contact is not the one that was read before, or has changed in any way since. */
  changed: boolean;
}

/**
 * Returns the new recorded state R after a reading, before anything is sent. If no acknowledged
 * request of ours explains an opt-out or a lost membership, it counts as made by the platform, no
 * later than the reading, whatever the CRM wants. If the contact has changed, the opt-out may have
 * been
 * made again.
 *
 *   R                O     present  →  R
 *   any              in    yes         in
 *   out by us        out   yes         out by us; an operator's settlement ends if changed
 *   out by platform  out   yes         unchanged; made by now, if the contact was changed,
 *                                      or showed no opt-out there when it was last observed
 *   anything else    out   yes         out by platform, made since it was last observed in
 *   in               —     yes         out by platform, likewise (membership was removed)
 *   —, out           —     yes         unchanged
 *   any              —     no          unchanged  (vanished; no change is known)
 */
export function seen(
  recorded: Membership | undefined,
  observed: Subscription | undefined,
  { present, before, by, changed }: Observation,
): Membership | undefined {
  if (!present) return recorded;
  if (observed === 'opt_in') return { by: 'platform', is: 'opt_in' };
  if (observed === undefined && recorded?.is !== 'opt_in') {
    return changed && recorded ? unsettled(recorded) : recorded;
  }
  const latest = Math.max(by, before ?? by);
  if (recorded?.is !== 'opt_out') {
    const after = recorded ? before : null;
    return { by: 'platform', is: 'opt_out', made: { after, by: latest } };
  }
  if (!changed) return recorded;
  const rest = unsettled(recorded);
  if (recorded.by === 'us') return rest;
  return { ...rest, made: { after: recorded.made?.after ?? null, by: latest } };
}

/** Returns a membership without its settlement, because the opt-out may be another one now. */
export function unsettled({ settled: _, ...rest }: Membership): Membership {
  return rest;
}

/**
 * Returns whether the CRM's statement is later than the opt-out can have been made, and not in the
 * future because of a wrong clock (row 17 of the rules). Times are in milliseconds since the epoch.
 */
export function isNewer(
  consentAt: number | null,
  recorded: Membership | undefined,
  now: number,
): boolean {
  const made = recorded?.is === 'opt_out' ? recorded.made : undefined;
  return consentAt !== null && made !== undefined && consentAt > made.by && consentAt <= now;
}

/** Returns the other channels to which the contacts on a page are subscribed, once for each. */
export function othersIn(
  contacts: readonly Pick<Contact, 'channels'>[],
  channels: ReadonlySet<string>,
): { id: string; name: string }[] {
  const all = contacts.flatMap((contact) => contact.channels);
  return all
    .filter(({ id, subscription }) => !channels.has(id) && subscription === 'opt_in')
    .map(({ id, name }) => ({ id, name: name ?? '' }));
}

/** Returns whether this mirror made the opt-out. */
export function isOurs(membership: Membership | undefined): membership is Membership {
  return membership?.is === 'opt_out' && membership.by === 'us';
}

/** Returns whether the person, rather than this mirror, made the opt-out. */
export function isTheirs(membership: Membership | undefined): boolean {
  return membership?.is === 'opt_out' && membership.by === 'platform';
}
