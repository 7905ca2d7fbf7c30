/** From when on it counts that somebody left the CRM, and when they have waited long enough. */
import type { Absence, AbsenceDue } from '../../../domain/record.ts';
import type { States } from '../../record-type.ts';
import { hasLeft, type AbsenceRules } from './crm-absence.ts';

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
