/** Who is missing from the CRM or has another address there, and what the policy then deletes. */
import { isTakenBack, statingOut } from './own-opt-outs.ts';
import { isOurs } from '../observe/observed-contact.ts';
import type {
  ContactRenamed,
  ContactStates,
  ContactSuccessor,
  DesiredContactRow,
  Membership,
} from '../observe/contact-state.ts';
import { strictest, type DesiredSubscription } from '../observe/consent-time.ts';
import type { Absence, AbsenceDue, DesiredRow, RecordedRow } from '../../../domain/record.ts';

export interface AbsenceRules extends AbsenceDue {
  /** The contacts that may be deleted: none, those we created, or also those we adopted. */
  deletes: 'off' | 'created' | 'owned';
  /** Milliseconds from the opt-out to the delete; without an opt-out, from becoming due. */
  deleteAfterMs: number;
}

/** Returns whether all the CRM's records of the address are gone; uncertified, none is proven. */
export function hasLeft({ desired, certified }: ContactStates): boolean {
  return desired.length === 0 ? certified : isGone(desired);
}

/** Returns whether none of the records is present; an invalid one may be, and counts so. */
export function isGone(desired: readonly DesiredRow[]): boolean {
  return desired.every(({ presence, invalid }) => presence !== 'present' && !invalid);
}

/**
 * Returns whether the absence counts: flagged as deleted, or missing from enough readings for long
 * enough. False for an uncertified reading, from which a record may be missing.
 */
export function isDue(states: ContactStates, rules: AbsenceRules): boolean {
  if (!states.certified || !hasLeft(states)) return false;
  return isFlagged(states) || isLongEnough(states.absence, rules);
}

/** Returns whether every CRM record is flagged as deleted, not out of scope or missing. */
export function isFlagged({ desired, strays }: ContactStates): boolean {
  const isSaid = desired.every(({ presence, invalid }) => presence === 'flagged' && !invalid);
  return desired.length > 0 && isSaid && !strays;
}

/** Returns whether the person was missing from enough readings over a long enough time. */
export function isLongEnough(
  absence: Absence | undefined,
  { absentReadings, absentForMs }: AbsenceDue,
): boolean {
  if (!absence) return false;
  const { readings, ageMs } = absence;
  return readings >= absentReadings && ageMs >= absentForMs;
}

/**
 * Returns whether `policy.deleteAfter` has passed since the opt-out was acknowledged; `isIn`: it is
 * still to come. Flagged people do not wait.
 */
export function hasWaited(states: ContactStates, isIn: boolean, rules: AbsenceRules): boolean {
  const { deleteAfterMs } = rules;
  if (deleteAfterMs === 0 || isFlagged(states)) return true;
  const waitedMs = states.absence?.waitedMs ?? null;
  return !isIn && waitedMs !== null && waitedMs >= deleteAfterMs;
}

export function policyDeletes(row: RecordedRow | undefined, { deletes }: AbsenceRules): boolean {
  const allowed = deletes === 'owned' ? ['created', 'adopted'] : ['created'];
  return deletes !== 'off' && row !== undefined && allowed.includes(row.ownership);
}

/** Returns the contact that is recorded as ours, if it is among `contacts`. */
export function oursOf<T extends { id: string }>(
  contacts: readonly T[],
  row: RecordedRow | undefined,
): T[] {
  if (!row || row.ownership === 'noted') return [];
  return contacts.filter(({ id }) => id === row.id);
}

export function notOursOf<T extends { id: string }>(
  contacts: readonly T[],
  row: RecordedRow | undefined,
): T[] {
  const ours = oursOf(contacts, row);
  return contacts.filter((contact) => !ours.includes(contact));
}

/*
 * A contact whose CRM record now has another address is opted out under the old one once the new
 * one is in place. Per channel, for the new address:
 *
 *   the CRM wants    recorded                  →
 *   out              any                       opt_out immediately, if the record stating it had
 *                                              the old address
 *   in               in, or out by the         opt_out
 *                    person, or by us and
 *                    not withdrawn
 *   in               barred: somebody's word   opt_out: nothing more is created there
 *                    forbids the opt-in        (`isBar` in gates.ts)
 *   in               anything else             nothing yet: the new address is opted in first
 *   no opinion       there                     opt_out
 *   no opinion       not there                 nothing yet
 *   gone             any                       nothing: the person was removed from the CRM
 *
 * An opt-out that no record states needs a certified reading. It also waits while a record that
 * once had the old address is missing from the reading, until the old address has been absent for
 * long enough. If the policy deletes contacts, the old contact is deleted instead, once every new
 * address is in place in every channel and no record that had the old one is missing. A new address
 * without a contact is in place if a channel of it is barred, none is to be created, and the old
 * contact gets no mail. Until then the old contact is not deleted for absence either. Other
 * contacts with the old address are still opted out.
 */

/**
 * Returns whether every new address is in place in the channel, so that the old one is opted out
 * without a statement. `due`: the old one was absent for long enough. `barsCount`: bars are enough.
 */
export function hasMoved(
  states: ContactStates,
  channel: string,
  due: boolean,
  barsCount: boolean,
): boolean {
  const { successors, strays, certified, by } = states;
  if (!certified || successors.length === 0 || (strays && !due)) return false;
  return successors.every((next) =>
    stands(barsCount ? next : { ...next, barred: undefined }, channel, by),
  );
}

/** Returns whether an opt-out of ours under a former address also applies to these records. */
export function isCarried(
  membership: Membership | undefined,
  channel: string,
  states: ContactStates,
): boolean {
  const { bound = [] } = membership ?? {};
  const isBound = states.desired.some(({ id }) => bound.includes(id));
  return isOurs(membership) && isBound && !isTakenBack(membership, channel, states);
}

/** Returns whether a record that had this address states an opt-out under its new one. */
export function isForbidden(states: ContactStates | ContactRenamed, channel: string): boolean {
  return movedRows(states).some((row) => statingOut([row], channel).isStated);
}

/** Returns the records that had this address, as they are under their new addresses. */
export function movedRows(states: ContactStates | ContactRenamed): DesiredContactRow[] {
  const rows = states.successors.flatMap(({ desired }) => desired);
  return rows.filter(({ id }) => states.origins.includes(id));
}

/** Returns whether the new contacts are in place everywhere, so that the old one can go. */
export function isReplaced(states: ContactStates, channels: readonly string[]): boolean {
  const { successors, strays } = states;
  const isWhole = successors.every((one) => standsWhole(one, channels, states));
  return successors.length > 0 && !strays && isWhole;
}

/** Returns whether a new address of a person in the CRM is not in place in every channel yet. */
export function isAwaited(states: ContactStates, channels: readonly string[]): boolean {
  const { successors } = states;
  return successors.some((next) => !isGone(next.desired) && !standsWhole(next, channels, states));
}

function standsWhole(next: ContactSuccessor, channels: readonly string[], old: ContactStates) {
  const { desired, barred } = next;
  const isSound = !isGone(desired) && !desired.some(({ invalid }) => invalid);
  if (!isSound) return false;
  if (isThere(next)) return channels.every((channel) => stands(next, channel, old.by));
  const isIdle = (channel: string) => barred?.has(channel) || wishOf(next, channel) !== 'opt_in';
  if (barred === undefined || barred.size === 0 || !channels.every(isIdle)) return false;
  const observed = old.observed.map(({ value }) => value);
  const known = observed.length > 0 ? observed : (old.recorded?.value.contacts ?? []);
  return known.every(({ left, channels }) => left || !Object.values(channels).includes('opt_in'));
}

function stands(next: ContactSuccessor, channel: string, by: number): boolean {
  const { desired, recorded } = next;
  const wish = wishOf(next, channel);
  if (wish === 'opt_out') return true;
  if (wish === 'gone' || !recorded || !isThere(next)) return false;
  if (wish === null) return !desired.some(({ invalid }) => invalid);
  if (next.barred?.has(channel)) return true;
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
