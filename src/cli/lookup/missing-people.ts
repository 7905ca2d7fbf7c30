/** People who are missing from the CRM: how many, and what is to come until they are deleted. */
import { type AbsenceRules, isDeleted } from '../../records/contact/consent/our-contacts.ts';
import { isLongEnough } from '../../records/contact/consent/absence.ts';
import type { Absence, RecordedRow } from '../../domain/record.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import { counted, instant, lasting } from '../output/format-values.ts';

export interface Missing {
  people: number;
  /** Missing for long enough: opted out, or about to be. */
  due: number;
  /** Time the CRM has to lack them further until the first of them is deleted; null: nobody is. */
  deletedInMs: number | null;
}

/** Null: nobody is missing. */
export function missingOf({ absences }: Snapshot, rules: AbsenceRules): Missing | null {
  const { deletes, deleteAfterMs } = rules;
  const { people, due, waitedMs } = absences.summary('contact', deletes === 'owned');
  if (people === 0) return null;
  const isNone = deletes === 'off' || waitedMs === null;
  return { people, due, deletedInMs: isNone ? null : Math.max(0, deleteAfterMs - waitedMs) };
}

export function missingWords(missing: Missing | null): string {
  if (!missing) return 'nobody';
  const { people, due, deletedInMs } = missing;
  const first = deletedInMs === null ? '' : `; the first is deleted ${laterWords(deletedInMs)}`;
  return `${counted(people, 'person').replace('persons', 'people')}, ${due} for long enough${first}`;
}

/** How long one person has been missing, and what is to come; times added up by two clocks. */
export function absenceOf(
  absence: Absence | undefined,
  recorded: RecordedRow | undefined,
  rules: AbsenceRules,
) {
  if (!absence) return null;
  const { readings, firstAt, lastAt, ageMs, waitedMs } = absence;
  const isOver = waitedMs === null || !isDeleted(recorded, rules);
  return {
    readings,
    first: instant(firstAt),
    last: instant(lastAt),
    missingMs: ageMs,
    /** Whether that is long enough to be opted out. */
    due: isLongEnough(absence, rules),
    needs: { readings: rules.absentReadings, ms: rules.absentForMs },
    /** null: the person is not due yet, or policy deletes nobody like this. */
    deletedInMs: isOver ? null : Math.max(0, rules.deleteAfterMs - waitedMs),
  };
}

export function absenceWords(absence: NonNullable<ReturnType<typeof absenceOf>>): string {
  const { readings, first, last, missingMs, due, needs, deletedInMs } = absence;
  const since = `not in the CRM in ${readings} readings, ${first} to ${last} (${lasting(missingMs)})`;
  if (!due) return `${since}; due after ${needs.readings} readings and ${lasting(needs.ms)}`;
  return `${since}; due${deletedInMs === null ? '' : `, deleted ${laterWords(deletedInMs)}`}`;
}

function laterWords(ms: number): string {
  return ms === 0 ? 'by the next full run' : `after ${lasting(ms)} more`;
}
