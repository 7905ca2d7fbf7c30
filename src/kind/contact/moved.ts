/**
 * Who has another address in the CRM by now is opted out under the old one, once the new one
 * stands. Per channel, of the new address:
 *
 *   the CRM wants    recorded                  →
 *   out              any                       opt_out: what she says now holds for the old one too
 *   in               in, or out by platform    opt_out
 *   in               anything else             nothing yet: it is to be opted in first
 *   no opinion       there                     opt_out
 *   no opinion       not there                 nothing yet
 *   gone             any                       nothing: she has left the CRM
 *
 * Recorded is what this run has not found to be gone. Where policy deletes, the old contact is
 * deleted instead, once every new address stands in every channel that the CRM does not forbid, and
 * nobody who had the old one is missing from the CRM. Until then it is not deleted for absence
 * either. What the CRM forbids, other contacts of the old address, and a contact the platform did
 * not delete are opted out all the same.
 */
import type { States, Successor } from '../kind.ts';
import { isGone } from './absence.ts';
import { recordedBody } from './record.ts';
import { strictest, type Wish } from './strictest.ts';

/** Whether the contact of this address is to be opted out of the channel for that. */
export function hasMoved({ successors }: States, channel: string): boolean {
  if (successors.length === 0) return false;
  if (isForbidden(successors, channel)) return true;
  return successors.every((next) => stands(next, channel, wishOf(next, channel)));
}

/** Whether that is what the CRM forbids under a new address. */
export function isForbidden(successors: States['successors'], channel: string): boolean {
  return successors.some((next) => wishOf(next, channel) === 'opt_out');
}

/** Whether nothing needs the old contact any more. */
export function isReplaced({ successors, strays }: States, channels: readonly string[]): boolean {
  return successors.length > 0 && !strays && successors.every((one) => standsWhole(one, channels));
}

/** Whether somebody the CRM speaks of has no other contact yet that stands. */
export function isAwaited({ successors }: States, channels: readonly string[]): boolean {
  return successors.some((next) => !isGone(next.desired) && !standsWhole(next, channels));
}

function standsWhole(next: Successor, channels: readonly string[]): boolean {
  const { desired } = next;
  const isSound = !isGone(desired) && !desired.some(({ invalid }) => invalid);
  if (!isSound || !isThere(next)) return false;
  return channels.every((channel) => {
    const wish = wishOf(next, channel);
    return wish === 'opt_out' || stands(next, channel, wish);
  });
}

function stands(next: Successor, channel: string, wish: Wish): boolean {
  const { desired, recorded } = next;
  if (wish === 'gone' || !recorded || !isThere(next)) return false;
  if (wish === null) return !desired.some(({ invalid }) => invalid);
  const is = recordedBody.parse(JSON.parse(recorded.body)).channels[channel];
  return is?.is === 'opt_in' || is?.by === 'platform';
}

function isThere({ recorded, vanished }: Successor): boolean {
  return recorded?.id !== undefined && !vanished;
}

function wishOf({ desired }: Successor, channel: string): Wish {
  return strictest(desired, [channel]).get(channel) ?? null;
}
