/**
 * Decides when the CRM may withdraw an opt-out that this mirror made (row 16).
 *
 *   cause of the opt-out                           is withdrawn by
 *   absence, a deletion flag, a changed address    any record that opts in
 *   the CRM stated it                              a record that stated it and opts in now,
 *                                                  or a `consentAt` that is later than our
 *                                                  acknowledged opt-out and not in the future
 *   any                                            `allow`, or `resolve --in`
 *
 * An opt-out recorded by an earlier version has no cause. It counts as stated by the records that
 * opt out when the next decision about the person is made; if no record opts out then, by all
 * records known for the address.
 */
import { unsettled } from '../observe/channel-observation.ts';
import type { DesiredContactRow } from '../observe/contact-rows.ts';
import type { Membership } from '../observe/contact-state.ts';
import { statedAt } from '../observe/strictest-consent.ts';

/** What the CRM now states about the person. */
interface Said {
  desired: readonly DesiredContactRow[];
  /** The ids of all CRM records that were known under this address before. */
  origins: readonly string[];
  /** When the reading ended by our clock, in milliseconds since the epoch. */
  by: number;
  /** The same time by our clock or the platform's, whichever is later. */
  latest: number;
}

/** Returns the ids of the records that state an opt-out, and of all records with the address. */
export function statingOut(desired: readonly DesiredContactRow[], channel: string) {
  const stating = desired.filter((row) => wishOf(row, channel) === 'opt_out');
  return { isStated: stating.length > 0, stated: idsOf(stating), bound: idsOf(desired) };
}

/**
 * Adds to an opt-out of ours the records that state it now; from then on only these can withdraw
 * it. Returns any other membership unchanged.
 */
export function attributed(membership: Membership, channel: string, said: Said): Membership {
  const { desired, origins, latest } = said;
  const { isStated, stated, bound } = statingOut(desired, channel);
  if (!isOurs(membership) || desired.length === 0) {
    return isStated ? unsettled(membership) : membership;
  }
  const { acked = latest, released, settled, ...known } = membership;
  if (isStated) {
    const all = [...new Set([...(known.bound ?? []), ...bound])].toSorted();
    return { ...known, acked, bound: all, cause: 'stated', stated };
  }
  if (known.cause !== undefined || released || settled) return membership;
  const before = origins.length > 0 ? [...origins].toSorted() : bound;
  return { ...known, acked, bound: before, cause: 'stated', stated: before };
}

/** Returns whether the CRM's current statement withdraws an opt-out of ours. */
export function isTakenBack(
  membership: Membership | undefined,
  channel: string,
  { desired, by }: Pick<Said, 'desired' | 'by'>,
): boolean {
  if (!isOurs(membership)) return false;
  const { acked, cause, released, settled, stated = [] } = membership;
  if (released || settled || cause !== 'stated') return true;
  const saysIn = desired.some(
    (row) =>
      stated.includes(row.id) && row.presence === 'present' && wishOf(row, channel) === 'opt_in',
  );
  const at = statedAt(desired, channel);
  return saysIn || (at !== null && acked !== undefined && at > acked && at <= by);
}

/**
 * Returns whether an opt-in of these records withdraws opt-outs of ours that the CRM had stated,
 * under this address or a former one. An opt-out that an operator released does not count.
 */
export function withdrawsStated(
  membership: Membership | undefined,
  former: readonly (Membership | undefined)[],
  desired: readonly DesiredContactRow[],
): boolean {
  const past = former.filter((one) => desired.some(({ id }) => one?.bound?.includes(id)));
  return [membership, ...past].some(
    (one) => isOurs(one) && one.cause === 'stated' && !one.released && !one.settled,
  );
}

/** Returns whether this mirror made the opt-out. */
export function isOurs(membership: Membership | undefined): membership is Membership {
  return membership?.is === 'opt_out' && membership.by === 'us';
}

/** Returns whether the person, rather than this mirror, made the opt-out. */
export function isTheirs(membership: Membership | undefined): boolean {
  return membership?.is === 'opt_out' && membership.by === 'platform';
}

function wishOf({ value }: DesiredContactRow, channel: string) {
  return value.channels[channel];
}

function idsOf(desired: readonly DesiredContactRow[]): string[] {
  return [...new Set(desired.map(({ id }) => id))].filter((id) => id !== '').toSorted();
}
