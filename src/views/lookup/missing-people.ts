/**
 * Counts people who are missing from the CRM, determines what happens until they are deleted, and
 * says why a person is not wanted any more without having opted out.
 */
import {
  type AbsenceRules,
  policyDeletes,
  isLongEnough,
} from '../../records/contact/consent/absent-people.ts';
import type { Absence, RecordedRow, Key } from '../../domain/record.ts';
import type { Config } from '../../config/config.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { counted } from '../../domain/values/counted.ts';
import { instant, lasting } from '../../compose/output/format-values.ts';

/**
 * Counts the people who are missing, or returns null if nobody is. `due` have been missing long
 * enough to be opted out, already or soon; `deletedInMs` is the time until the first of them is
 * deleted, or null if nobody is going to be.
 */
export function missingOf({ absences }: Snapshot, rules: AbsenceRules) {
  const { deletes, deleteAfterMs } = rules;
  const { people, due, waitedMs } = absences.summary({
    kind: 'contact',
    adopted: deletes === 'owned',
  });
  if (people === 0) return null;
  const isNone = deletes === 'off' || waitedMs === null;
  return { people, due, deletedInMs: isNone ? null : Math.max(0, deleteAfterMs - waitedMs) };
}

/** Formats the count for people. */
export function missingWords(missing: ReturnType<typeof missingOf>): string {
  if (!missing) return 'nobody';
  const { people, due, deletedInMs } = missing;
  const first = deletedInMs === null ? '' : `; the first is deleted ${laterWords(deletedInMs)}`;
  return `${counted(people, 'person', 'people')}, ${due} for long enough${first}`;
}

/** Returns when those missing from now on are opted out; null if they stay subscribed. */
export function optedOutAfter({ guards, policy }: Config) {
  const { absentReadings: readings, absentForMs: ms } = guards;
  return policy.absent === 'keep' ? null : { readings, ms };
}

/** Formats it: `opted out after 20 h and 2 complete readings (policy.absent)` */
export function optedOutWords(after: ReturnType<typeof optedOutAfter>): string {
  if (!after) return 'they stay subscribed (policy.absent: keep)';
  const { readings, ms } = after;
  const needs = [
    ...(ms === 0 ? [] : [lasting(ms)]),
    ...(ms > 0 && readings === 1 ? [] : [counted(readings, 'complete reading')]),
  ];
  return `opted out after ${needs.join(' and ')} (policy.absent)`;
}

/**
 * Returns how long a person has been missing and what happens next, or null if the person is not
 * missing. Durations are sums of two clocks. `isMoved`: the CRM has another address for the person,
 * so that the contact waits for that one to be in place instead of for a time.
 */
export function absenceOf(
  absence: Absence | undefined,
  recorded: RecordedRow | undefined,
  rules: AbsenceRules,
  isMoved: boolean,
) {
  if (!absence) return null;
  const { readings, firstAt, lastAt, ageMs, waitedMs } = absence;
  const isOver = isMoved || waitedMs === null || !policyDeletes(recorded, rules);
  return {
    readings,
    first: instant(firstAt),
    last: instant(lastAt),
    missingMs: ageMs,
    /** Whether the person has been missing long enough to be opted out. */
    due: isLongEnough(absence, rules),
    needs: { readings: rules.absentReadings, ms: rules.absentForMs },
    /** Null if no time is known: not due yet, another address, or nobody is deleted for absence. */
    deletedInMs: isOver ? null : Math.max(0, rules.deleteAfterMs - waitedMs),
  };
}

/** Formats the absence of one person. */
export function absenceWords(absence: NonNullable<ReturnType<typeof absenceOf>>): string {
  const { readings, first, last, missingMs, due, needs, deletedInMs } = absence;
  const since = `not in the CRM in ${counted(readings, 'reading')}, ${first} to ${last} (${lasting(missingMs)})`;
  if (!due)
    return `${since}; due after ${counted(needs.readings, 'reading')} and ${lasting(needs.ms)}`;
  return `${since}; due${deletedInMs === null ? '' : `, deleted ${laterWords(deletedInMs)}`}`;
}

function laterWords(ms: number): string {
  return ms === 0 ? 'by the next full run' : `after ${lasting(ms)} more`;
}

const kind = 'contact';

/** Returns the other addresses under which a CRM record of the person is recorded now. */
export function successorsOf({ recorded, absences }: Snapshot, key: Key): Key[] {
  const others = recorded
    .originsOf(kind, key)
    .flatMap((id) => recorded.keysOfOrigin(kind, id))
    .filter((other) => other !== key && recorded.get(kind, other) && !absences.get(kind, other));
  return [...new Set(others)];
}

/** `absence`: how long full runs have not found the person; undefined if the last one has. */
export function whyGone({ absence }: { absence: unknown }, movedTo: readonly string[]): string {
  if (movedTo.length > 0)
    return `the CRM has another address for the person: ${movedTo.join(', ')}`;
  return absence ? 'the person is missing from the CRM' : 'the CRM marks the person as deleted';
}
