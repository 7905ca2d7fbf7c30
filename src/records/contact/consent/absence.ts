/** Decides whether a person is missing from the CRM, and whether the absence counts yet. */
import type { Absence, AbsenceDue, DesiredRow } from '../../../domain/record.ts';
import type { States } from '../../record-type.ts';
import type { AbsenceRules } from './our-contacts.ts';

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
