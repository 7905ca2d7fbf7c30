/**
 * Announces once, after an upgrade, what a new default will do and how many people it affects. The
 * default does nothing until a run has announced it; absences count towards it from then on.
 */
import type { Problem } from '../../domain/errors.ts';
import type { RecordType } from '../../records/record-type.ts';
import type { RunState } from '../context/run-state.ts';
import { type Mirror, onlyKey } from '../context/mirror-context.ts';
import type { RunContext } from '../context/run-context.ts';
import { inTurns } from '../context/work-in-parts.ts';
import { mustAnnounce, unsaid } from '../context/first-load.ts';

/** Returns the announcement, if one is due and this record type was read completely. */
export async function announceDefaults(
  run: RunContext,
  type: RecordType | undefined,
): Promise<Problem[]> {
  if (!run.unstated || !type || !mustAnnounce(run)) return [];
  const { absences, ranges } = run.snapshot;
  const people = { missing: 0, flagged: 0 };
  for await (const range of inTurns(run, ranges.ofKeys(type.name))) {
    const { missing, flagged } = absences.countSubscribed(type.name, range);
    people.missing += missing;
    people.flagged += flagged;
  }
  const fix = 'set policy.absent: keep to leave them subscribed';
  return [{ code: 'note', reason: wordsOf(people, run.unstated), fix }];
}

/** Records that the default was announced. Must be called within a transaction. */
export function clearAnnouncement(state: RunState): void {
  const { run } = state;
  if (run.writes && whollyRead(state)) run.snapshot.meta.drop(unsaid);
}

/** Returns the record type whose absences count, if the run has read it completely. */
export function whollyRead({ run, parts, known }: RunState): RecordType | undefined {
  if (onlyKey(run) !== undefined || run.undo) return undefined;
  const type = parts.find((part) => part.type.capabilities.absence)?.type;
  const findings = type && known.get(type);
  return findings?.certified && findings.whole ? type : undefined;
}

function wordsOf(
  { missing, flagged }: { missing: number; flagged: number },
  { absentReadings, absentForMs, deletes, deleteAfterMs }: NonNullable<Mirror['unstated']>,
): string {
  const readings = absentReadings === 1 ? '1 reading' : `${absentReadings} readings`;
  const later = deleteAfterMs === 0 ? 'at once' : `${inWords(deleteAfterMs)} after that`;
  return [
    'policy.absent is opt_out by default since this version: ',
    `${counted(missing)} missing from the CRM will be opted out once they have been missing in `,
    `${readings} and ${inWords(absentForMs)}, counted from now`,
    flagged === 0 ? '' : `, and ${counted(flagged)} flagged as deleted there in the next run`,
    deletes === 'off' ? '' : `, and deleted ${later} (policy.deleteAfter)`,
  ].join('');
}

function counted(people: number): string {
  return people === 1 ? '1 person who is' : `${people} people who are`;
}

/** Returns a duration in the style of a configuration: 20 h, 30 d. */
function inWords(ms: number): string {
  const hours = Math.round(ms / 3_600_000);
  if (hours * 3_600_000 !== ms) return `${Math.round(ms / 60_000)} min`;
  return hours >= 48 && hours % 24 === 0 ? `${hours / 24} d` : `${hours} h`;
}
