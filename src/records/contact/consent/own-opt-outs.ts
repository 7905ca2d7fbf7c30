/**
 * Decides when the CRM may withdraw an opt-out that this mirror made (`our-opt-out-taken-back`).
 *
 *   cause of the opt-out                           is withdrawn by
 *   absence, a deletion flag, a changed address    any record that opts in
 *   the CRM stated it                              a record that stated it and opts in now,
 *                                                  or a `consentAt` that is later than our
 *                                                  acknowledged opt-out and not in the future
 *   `undo` took back our opt-in                    any words other than those that the CRM stated
 *                                                  then, a `consentAt` as above, or undoing that
 *   any                                            `allow`, or `resolve --in`
 *
 * One whose cause is not known counts as stated by the records that opt out when the next decision
 * about the person is made; if no record opts out then, by all records known for the address.
 */
import { isOurs, isTheirs, unsettled } from '../observe/observed-contact.ts';
import type {
  ContactStates,
  DesiredContactRow,
  Membership,
  OverriddenOptOut,
  UndoneOptIn,
  RecordedContact,
} from '../observe/contact-state.ts';
import { statedAt, statementIn, statingIn } from '../observe/consent-time.ts';
import type { Entry } from '../../../domain/do-not-contact.ts';

type Stated = Pick<ContactStates, 'desired' | 'by'>;

/** Returns the ids of the records that state an opt-out, and of all records with the address. */
export function statingOut(desired: readonly DesiredContactRow[], channel: string) {
  const stating = desired.filter(({ value }) => value.channels[channel] === 'opt_out');
  const idsOf = (rows: readonly DesiredContactRow[]) =>
    [...new Set(rows.map(({ id }) => id))].filter((id) => id !== '').toSorted();
  return { isStated: stating.length > 0, stated: idsOf(stating), bound: idsOf(desired) };
}

/**
 * Adds to an opt-out of ours the records that state it now, which alone can withdraw it from then
 * on. `stating`: the channels whose statements tell whether an opt-out by `undo` still counts.
 */
export function attributed(
  membership: Membership,
  channel: string,
  { stating, ...states }: ContactStates & { stating: readonly string[] },
): Membership {
  const { desired, origins, latest } = states;
  const { isStated, stated, bound } = statingOut(desired, channel);
  if (!isOurs(membership) || desired.length === 0) {
    return isStated ? unsettled(membership) : membership;
  }
  const { acked = latest, released, settled, undone, ...known } = membership;
  if (isStated) {
    const all = [...new Set([...(known.bound ?? []), ...bound])].toSorted();
    return { ...known, acked, bound: all, cause: 'stated', stated };
  }
  if (undone) {
    if (!states.certified) return membership;
    const all = stating.map((one) => remembering(membership, undone, one, states));
    return all.find((one) => one.undone) ?? all[0] ?? membership;
  }
  if (known.cause !== undefined || released || settled) return membership;
  const before = origins.length > 0 ? [...origins].toSorted() : bound;
  return { ...known, acked, bound: before, cause: 'stated', stated: before };
}

/**
 * Returns an opt-out by `undo` with what the CRM states, if that was not known yet, and without it
 * once the CRM has stated something else. Only a later time counts: another may be a correction, or
 * the first one that the configuration reads.
 */
function remembering(
  membership: Membership,
  undone: UndoneOptIn,
  channel: string,
  stated: Stated,
): Membership {
  const words = statementIn(stated.desired, channel);
  if (words === undefined) return membership;
  if (undone.said === undefined) return { ...membership, undone: { ...undone, said: words } };
  const isSame = words === undone.said;
  if (isSame && !isStatedAfter(membership, channel, stated)) return membership;
  const { undone: _, ...over } = membership;
  return over;
}

/** Returns whether the CRM's statement is later than our opt-out, and not in the future. */
function isStatedAfter({ acked }: Membership, channel: string, { desired, by }: Stated): boolean {
  const at = statedAt(desired, channel);
  return at !== null && acked !== undefined && at > acked && at <= by;
}

/** Returns whether the CRM's current statement withdraws an opt-out of ours. */
export function isTakenBack(
  membership: Membership | undefined,
  channel: string,
  now: Stated,
): boolean {
  if (!isOurs(membership)) return false;
  const { cause, released, settled, stated = [], undone } = membership;
  if (released || settled) return true;
  if (undone && remembering(membership, undone, channel, now).undone) return false;
  if (cause !== 'stated') return true;
  const saysIn = now.desired.some(
    ({ id, presence, value }) =>
      stated.includes(id) && presence === 'present' && value.channels[channel] === 'opt_in',
  );
  return saysIn || isStatedAfter(membership, channel, now);
}

/**
 * Returns whether an opt-in withdraws an opt-out that the CRM had stated: one of ours, under this
 * address or a former one, that no operator released, or one that was never sent.
 */
export function withdrawsStated(
  channel: string,
  membership: Membership | undefined,
  former: readonly (Membership | undefined)[],
  { desired, statedOut }: ContactStates,
): boolean {
  const known = [membership, ...boundBy(former, desired)];
  if (known.some((one) => isOurs(one) && one.cause === 'stated' && !isReleased(one))) return true;
  return statedOut.includes(channel) && !known.some((one) => one && isReleased(one));
}

function isReleased({ released, settled }: Membership): boolean {
  return released === true || settled !== undefined;
}

/**
 * Returns the opt-out that an opt-in of these records overrides: the person's own, or one of ours
 * that the CRM had stated. Any statement of the CRM ends one with another cause.
 */
export function overriddenBy(
  desired: readonly DesiredContactRow[],
  membership: Membership | undefined,
  former: readonly (Membership | undefined)[],
): OverriddenOptOut | undefined {
  const found = [membership, ...boundBy(former, desired)].find(
    (one) => isTheirs(one) || (isOurs(one) && one.cause === 'stated'),
  );
  if (!found) return undefined;
  const { bound, by, cause, doubtful, made, stated } = found;
  return { after: made?.after ?? null, bound, by, cause, doubtful, stated };
}

/** Returns the opt-out that counts again if an opt-in was undone at `latest`, if it was stated. */
export function restoredFrom(
  { after, by, cause, doubtful, stated }: OverriddenOptOut,
  latest: number,
  { bound, undone }: { bound?: string[] | undefined; undone?: UndoneOptIn | undefined },
): Membership | undefined {
  const is = 'opt_out';
  if (by === 'platform') return { by, doubtful, is, made: { after, by: latest } };
  return cause === 'stated' ? { acked: latest, bound, by, cause, is, stated, undone } : undefined;
}

/** Returns the memberships under former addresses that belong to one of these records. */
function boundBy(
  former: readonly (Membership | undefined)[],
  desired: readonly DesiredContactRow[],
): (Membership | undefined)[] {
  return former.filter((one) => desired.some(({ id }) => one?.bound?.includes(id)));
}

/*
 * What a settlement by an operator (`resolve`) does, and when it ends:
 *
 *   settled as   stored                       does                      ends when
 *   opt-in       with the recorded opt-out    lets the CRM's opt-in     the opt-out may be another
 *                                             through                   one: the contact changed,
 *                                                                       or the CRM stated one;
 *                                                                       or a CRM record that stated
 *                                                                       the opt-in no longer does
 *   opt-out      on the do-not-contact list   opts the person out, as   the CRM states an opt-in
 *                                             if the CRM stated it      later, or `allow`
 */

export const isOperators = ({ cause }: Entry): boolean => cause === 'operator';

/** Returns the operator's opt-out from one of the channels, unless the CRM spoke later. */
export function settledOut(
  states: ContactStates,
  channels: readonly string[],
  channel: string,
): Entry | undefined {
  const since = laterWill(states, channel);
  return states.entries.find(
    (entry) =>
      isOperators(entry) &&
      channels.includes(entry.part) &&
      (since === undefined || entry.by >= since),
  );
}

/** Returns when the CRM stated an opinion; undefined if that is unknown, or in the future. */
export function laterWill({ desired, by }: Stated, channel: string): number | undefined {
  const at = statedAt(desired, channel);
  return at !== null && at <= by ? at : undefined;
}

/**
 * Returns recorded channels without settlements as an opt-in that have ended, because a record that
 * stated the opt-in then no longer does. An invalid record proves nothing, and opts nobody in.
 */
export function stillSettled(
  channels: RecordedContact['channels'],
  desired: readonly DesiredContactRow[],
): RecordedContact['channels'] {
  if (desired.length === 0 || desired.some(({ invalid }) => invalid)) return channels;
  const kept = Object.entries(channels).map(([channel, is]) => {
    const now = statingIn(desired, channel);
    const isOver = is.settled?.stating?.some((id) => !now.includes(id));
    return [channel, isOver ? unsettled(is) : is] as const;
  });
  return Object.fromEntries(kept);
}
