/** What is recorded of one person and channel, by what was seen of them. */
import type { Subscription } from '../../../platform/request-schemas.ts';
import type { Membership } from './contact-state.ts';

/** What was seen of one person, and when. */
export interface Observation {
  present: boolean;
  /** When the person was last seen before; null: never. */
  before: number | null;
  /** By when all this was seen, by whichever clock shows more. */
  by: number;
  /** Whether the contact is another than it was, or was changed in any way since then. */
  changed: boolean;
}

/**
 * What R becomes by what was seen, before anything is sent. An opt-out or a lost membership that no
 * acknowledged request of ours explains was made by the platform, whatever the CRM wants, and at
 * the latest when it was seen: again and again, while the contact changes.
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

/** Row 17: whether the CRM's word is younger than an opt-out can be, and no slip of a clock. */
export function isNewer(
  consentAt: number | null,
  recorded: Membership | undefined,
  now: number,
): boolean {
  const made = recorded?.is === 'opt_out' ? recorded.made : undefined;
  return consentAt !== null && made !== undefined && consentAt > made.by && consentAt <= now;
}
