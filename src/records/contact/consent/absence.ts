/**
 * Decides whether a person is missing from the CRM, whether the absence counts yet, which contacts
 * are ours, and which of them the policy deletes.
 */
import type { Absence, AbsenceDue, DesiredRow, RecordedRow } from '../../../domain/record.ts';
import type { States } from '../../record-type.ts';

export interface AbsenceRules extends AbsenceDue {
  /** The contacts that may be deleted: none, those we created, or also those we adopted. */
  deletes: 'off' | 'created' | 'owned';
  /** Milliseconds from the opt-out to the delete; without an opt-out, from becoming due. */
  deleteAfterMs: number;
}

/**
 * Returns whether the CRM has no person with this address: every record with it is gone, flagged or
 * out of scope. An uncertified reading proves nothing about people it does not contain.
 */
export function hasLeft({ desired, certified }: States): boolean {
  return desired.length === 0 ? certified : isGone(desired);
}

/**
 * Returns whether none of the records is present. An invalid record may be present, and counts as
 * such.
 */
export function isGone(desired: readonly DesiredRow[]): boolean {
  return desired.every(({ presence, invalid }) => presence !== 'present' && !invalid);
}

/**
 * Returns whether the absence counts: the CRM flags the person as deleted, or the person was
 * missing from enough readings over a long enough time. Returns false for an uncertified reading,
 * because a record may be missing from it.
 */
export function isDue(states: States, rules: AbsenceRules): boolean {
  if (!states.certified || !hasLeft(states)) return false;
  return isFlagged(states) || isLongEnough(states.absence, rules);
}

/**
 * Returns whether every CRM record of the person is flagged as deleted. A record that is out of
 * scope, or missing from a complete reading, is not flagged.
 */
export function isFlagged({ desired, strays }: States): boolean {
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
 * Returns whether `policy.deleteAfter` has passed for a person who is due. The wait begins when the
 * opt-out is acknowledged; `isIn` means that an opt-out is still to come. Flagged people do not
 * wait.
 */
export function hasWaited(states: States, isIn: boolean, rules: AbsenceRules): boolean {
  const { deleteAfterMs } = rules;
  if (deleteAfterMs === 0 || isFlagged(states)) return true;
  const waitedMs = states.absence?.waitedMs ?? null;
  return !isIn && waitedMs !== null && waitedMs >= deleteAfterMs;
}

/** Returns whether the policy deletes contacts with this ownership. */
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

/** Returns the contacts that are not recorded as ours. */
export function notOursOf<T extends { id: string }>(
  contacts: readonly T[],
  row: RecordedRow | undefined,
): T[] {
  const ours = oursOf(contacts, row);
  return contacts.filter((contact) => !ours.includes(contact));
}
