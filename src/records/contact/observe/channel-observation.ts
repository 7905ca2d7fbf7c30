/** Updates what is recorded of a person in one channel by a reading of the platform. */
import type { Subscription } from '../../../platform/request-schemas.ts';
import type { Membership } from './contact-state.ts';

/** One reading of a person. Times are milliseconds since the epoch. */
export interface Observation {
  /** Whether the platform shows a contact of the person. */
  present: boolean;
  /** When the person was last read before; null: never. */
  before: number | null;
  /** When the reading had ended, by whichever clock is ahead, ours or the platform's. */
  by: number;
  /** Whether the contact is not the one that was read before, or was changed in any way since. */
  changed: boolean;
}

/**
 * Returns what R becomes by a reading, before anything is sent. An opt-out or a lost membership
 * that no acknowledged request of ours explains was made by the platform, whatever the CRM wants,
 * and not later than it was read. While the contact changes, it may have been made again.
 *
 *   R                O     present  →  R
 *   any              in    yes         in
 *   out by us        out   yes         out by us
 *   out by platform  out   yes         unchanged; made by now, if the contact was changed,
 *                                      or showed no opt-out there when it was last seen
 *   else             out   yes         out by platform, made since it was last seen in
 *   in               —     yes         the same   (membership was taken away)
 *   —, out           —     yes         unchanged
 *   any              —     no          unchanged  (vanished; nothing is known to have moved)
 */
export function seen(
  recorded: Membership | undefined,
  observed: Subscription | undefined,
  { present, before, by, changed }: Observation,
): Membership | undefined {
  if (!present) return recorded;
  if (observed === 'opt_in') return { by: 'platform', is: 'opt_in' };
  if (observed === undefined && recorded?.is !== 'opt_in') return recorded;
  const latest = Math.max(by, before ?? by);
  if (recorded?.is !== 'opt_out') {
    const after = recorded ? before : null;
    return { by: 'platform', is: 'opt_out', made: { after, by: latest } };
  }
  if (recorded.by === 'us' || !changed) return recorded;
  return { ...recorded, made: { after: recorded.made?.after ?? null, by: latest } };
}

/**
 * Returns whether the CRM's statement is later than an opt-out can have been made, and not in the
 * future, as with a wrong clock (row 17 of the rules). Times are milliseconds since the epoch.
 */
export function isNewer(
  consentAt: number | null,
  recorded: Membership | undefined,
  now: number,
): boolean {
  const made = recorded?.is === 'opt_out' ? recorded.made : undefined;
  return consentAt !== null && made !== undefined && consentAt > made.by && consentAt <= now;
}
