/**
 * Who has another address in the CRM by now is opted out under the old one, in the run that sees
 * the new one stand. Per channel, of the new address:
 *
 *   the CRM wants    recorded                  →
 *   out              any                       opt_out at once; stated, where a record says so that
 *                                              had the old address, and not merely another one
 *   in               in, or out for good       opt_out: the platform has it so, or an opt-out of
 *                                              ours that the CRM does not take back
 *   in               anything else             nothing yet: it is to be opted in first
 *   no opinion       there                     opt_out
 *   no opinion       not there                 nothing yet
 *   gone             any                       nothing: she has left the CRM
 *
 * Recorded is what this run has not found to be gone. Whatever nobody stated needs a certified
 * reading, and waits while a record that once had the old address is nowhere in the reading: until
 * the old address is absent for long enough. Where policy deletes, the old contact is
 * deleted instead, once every new address stands in every channel that the CRM does not forbid, and
 * nobody who had the old one is missing from the CRM. Until then it is not deleted for absence
 * either. What the CRM forbids, other contacts of the old address, and a contact the platform did
 * not delete are opted out all the same.
 */
import { isGone } from './absence.ts';
import { isOurs, isTakenBack, statingOut } from './own-opt-outs.ts';
import type {
  ContactStates,
  ContactSuccessor,
  DesiredContactRow,
} from '../observe/contact-rows.ts';
import { strictest, type DesiredSubscription } from '../observe/strictest-consent.ts';

/**
 * Whether the contact of this address is to be opted out of the channel for that, though nobody
 * states it. `due`: it is absent from the CRM for long enough.
 */
export function hasMoved(states: ContactStates, channel: string, due: boolean): boolean {
  const { successors, strays, certified, by } = states;
  if (!certified || successors.length === 0 || (strays && !due)) return false;
  return successors.every((next) => stands(next, channel, by));
}

type Moved = Pick<ContactStates, 'successors' | 'origins'>;

/** Whether a record that had this address states an opt-out under its new one. */
export function isForbidden(states: Moved, channel: string): boolean {
  return movedRows(states).some((row) => statingOut([row], channel).isStated);
}

/** The records that had this address, under their new ones. */
export function movedRows({ successors, origins }: Moved): DesiredContactRow[] {
  return successors.flatMap(({ desired }) => desired).filter(({ id }) => origins.includes(id));
}

/** Whether nothing needs the old contact any more. */
export function isReplaced({ successors, strays, by }: ContactStates, channels: readonly string[]) {
  const isWhole = successors.every((one) => standsWhole(one, channels, by));
  return successors.length > 0 && !strays && isWhole;
}

/** Whether somebody the CRM speaks of has no other contact yet that stands. */
export function isAwaited({ successors, by }: ContactStates, channels: readonly string[]): boolean {
  return successors.some((next) => !isGone(next.desired) && !standsWhole(next, channels, by));
}

function standsWhole(next: ContactSuccessor, channels: readonly string[], by: number): boolean {
  const { desired } = next;
  const isSound = !isGone(desired) && !desired.some(({ invalid }) => invalid);
  if (!isSound || !isThere(next)) return false;
  return channels.every((channel) => stands(next, channel, by));
}

function stands(next: ContactSuccessor, channel: string, by: number): boolean {
  const { desired, recorded } = next;
  const wish = wishOf(next, channel);
  if (wish === 'opt_out') return true;
  if (wish === 'gone' || !recorded || !isThere(next)) return false;
  if (wish === null) return !desired.some(({ invalid }) => invalid);
  const is = recorded.value.channels[channel];
  if (isOurs(is)) return !isTakenBack(is, channel, { desired, by });
  return is !== undefined;
}

function isThere({ recorded, vanished }: ContactSuccessor): boolean {
  return recorded?.id !== undefined && !vanished;
}

function wishOf({ desired }: ContactSuccessor, channel: string): DesiredSubscription {
  return strictest(desired, [channel]).get(channel) ?? null;
}
