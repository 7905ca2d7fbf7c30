/** People who are missing from the CRM: how many, and what happens until they are deleted. */
import { type AbsenceRules, policyDeletes } from '../../records/contact/consent/our-contacts.ts';
import { isLongEnough } from '../../records/contact/consent/absence.ts';
import type { Absence, RecordedRow } from '../../domain/record.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import { counted, instant, lasting } from '../output/format-values.ts';

/** The people who are missing. */
export interface Missing {
  people: number;
  /** How many are missing for long enough, so that they are opted out, or soon will be. */
  due: number;
  /**
   * How much longer the first of them has to be missing until they are deleted; null: nobody is.
   */
  deletedInMs: number | null;
}

/** Counts the people who are missing; null: nobody is. */
export function missingOf({ absences }: Snapshot, rules: AbsenceRules): Missing | null {
  const { deletes, deleteAfterMs } = rules;
  const { people, due, waitedMs } = absences.summary('contact', deletes === 'owned');
  if (people === 0) return null;
  const isNone = deletes === 'off' || waitedMs === null;
  return { people, due, deletedInMs: isNone ? null : Math.max(0, deleteAfterMs - waitedMs) };
}

/** Words the count for people. */
export function missingWords(missing: Missing | null): string {
  if (!missing) return 'nobody';
  const { people, due, deletedInMs } = missing;
  const first = deletedInMs === null ? '' : `; the first is deleted ${laterWords(deletedInMs)}`;
  return `${counted(people, 'person').replace('persons', 'people')}, ${due} for long enough${first}`;
}

/**
 * Returns how long one person has been missing, and what is to come; null: they are not. Durations
 * are the sums of two clocks.
 */
export function absenceOf(
  absence: Absence | undefined,
  recorded: RecordedRow | undefined,
  rules: AbsenceRules,
) {
  if (!absence) return null;
  const { readings, firstAt, lastAt, ageMs, waitedMs } = absence;
  const isOver = waitedMs === null || !policyDeletes(recorded, rules);
  return {
    readings,
    first: instant(firstAt),
    last: instant(lastAt),
    missingMs: ageMs,
    /** Whether the person is missing for long enough to be opted out. */
    due: isLongEnough(absence, rules),
    needs: { readings: rules.absentReadings, ms: rules.absentForMs },
    /** Null: the person is not due yet, or the policy deletes nobody like this. */
    deletedInMs: isOver ? null : Math.max(0, rules.deleteAfterMs - waitedMs),
  };
}

/** Words the absence of one person. */
export function absenceWords(absence: NonNullable<ReturnType<typeof absenceOf>>): string {
  const { readings, first, last, missingMs, due, needs, deletedInMs } = absence;
  const since = `not in the CRM in ${readings} readings, ${first} to ${last} (${lasting(missingMs)})`;
  if (!due) return `${since}; due after ${needs.readings} readings and ${lasting(needs.ms)}`;
  return `${since}; due${deletedInMs === null ? '' : `, deleted ${laterWords(deletedInMs)}`}`;
}

function laterWords(ms: number): string {
  return ms === 0 ? 'by the next full run' : `after ${lasting(ms)} more`;
}
