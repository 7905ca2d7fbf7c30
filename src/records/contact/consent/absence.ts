/** Who left the CRM: since when that counts, and what may be done about it then. */
import type { Absence, AbsenceDue, DesiredRow } from '../../../domain/record.ts';
import type { States } from '../../record-type.ts';
import type { AbsenceRules } from './our-contacts.ts';

/**
 * Whether the CRM no longer speaks of anybody who is there: every record of this address is gone,
 * flagged or out of scope. A reading without a certificate says nothing of whom it does not name.
 */
export function hasLeft({ desired, certified }: States): boolean {
  return desired.length === 0 ? certified : isGone(desired);
}

/** Whether none of these records is there, or may be. */
export function isGone(desired: readonly DesiredRow[]): boolean {
  return desired.every(({ presence, invalid }) => presence !== 'present' && !invalid);
}

/**
 * Whether that counts: the CRM says so itself, or enough readings, far enough apart, have missed
 * the person. What an uncertified reading lacks may be the record that says otherwise.
 */
export function isDue(states: States, rules: AbsenceRules): boolean {
  if (!states.certified || states.announces || !hasLeft(states)) return false;
  return isFlagged(states) || isLongEnough(states.absence, rules);
}

/**
 * Whether the CRM says itself that the person is gone: each of their records does. One that is out
 * of scope, or that a whole reading lacks, does not say so.
 */
export function isFlagged({ desired, strays }: States): boolean {
  const isSaid = desired.every(({ presence, invalid }) => presence === 'flagged' && !invalid);
  return desired.length > 0 && isSaid && !strays;
}

export function isLongEnough(
  absence: Absence | undefined,
  { absentReadings, absentForMs }: AbsenceDue,
): boolean {
  if (!absence) return false;
  const { readings, ageMs } = absence;
  return readings >= absentReadings && ageMs >= absentForMs;
}

/**
 * Whether somebody who is due has waited for their deletion as long as policy wants it. Who is to
 * be opted out first begins to wait when that is acknowledged.
 */
export function hasWaited(states: States, isIn: boolean, rules: AbsenceRules): boolean {
  const { deleteAfterMs } = rules;
  if (deleteAfterMs === 0 || isFlagged(states)) return true;
  const waitedMs = states.absence?.waitedMs ?? null;
  return !isIn && waitedMs !== null && waitedMs >= deleteAfterMs;
}
