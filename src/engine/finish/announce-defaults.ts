/**
 * Says once, after an upgrade, what a default that is new will do, and to how many people. Until a
 * run has said so, the default does nothing; what it acts upon is counted from then on.
 */
import type { RunState } from '../context/run-state.ts';
import type { RunContext } from '../context/run-context.ts';
import { onlyKey } from '../context/mirror-context.ts';
import { forEachRange } from '../context/for-each-range.ts';
import { mustAnnounce, unsaid } from '../context/first-load.ts';

/** Once everybody has been read; `settleAnnounced` follows when the run has ended. */
export async function announceDefaults(context: RunState): Promise<void> {
  const { run, notes } = context;
  const type = whollyRead(context);
  if (!run.unstated || !type || !mustAnnounce(run)) return;
  const { absences, ranges } = run.snapshot;
  const people = { missing: 0, flagged: 0 };
  await forEachRange(run, ranges.ofKeys(type.name), (range) => {
    const { missing, flagged } = absences.countSubscribed(type.name, range);
    people.missing += missing;
    people.flagged += flagged;
  });
  notes.push(wordsOf(people, run.unstated));
}

/** What was said is not said again. Within a transaction. */
export function clearAnnouncement(context: RunState): void {
  const { run } = context;
  if (run.writes && whollyRead(context)) run.snapshot.meta.drop(unsaid);
}

function whollyRead({ run, parts, known }: RunState) {
  if (onlyKey(run) !== undefined) return undefined;
  const type = parts.find((part) => part.type.absence)?.type;
  const knowledge = type && known.get(type);
  return knowledge?.certified && knowledge.whole ? type : undefined;
}

function wordsOf(
  { missing, flagged }: { missing: number; flagged: number },
  { absentReadings, absentForMs, deletes, deleteAfterMs }: NonNullable<RunContext['unstated']>,
): string {
  const readings = absentReadings === 1 ? '1 reading' : `${absentReadings} readings`;
  const later = deleteAfterMs === 0 ? 'at once' : `${inWords(deleteAfterMs)} after that`;
  return [
    'policy.absent is opt_out by default since this version: ',
    `${counted(missing)} missing from the CRM will be opted out once they have been missing in `,
    `${readings} and ${inWords(absentForMs)}, counted from now`,
    flagged === 0 ? '' : `, and ${counted(flagged)} flagged as deleted there in the next run`,
    deletes === 'off' ? '' : `, and deleted ${later} (policy.deleteAfter)`,
    ' → set policy.absent: keep to leave them subscribed',
  ].join('');
}

function counted(people: number): string {
  return people === 1 ? '1 person who is' : `${people} people who are`;
}

/** As a configuration has it: 20 h, 30 d. */
function inWords(ms: number): string {
  const hours = Math.round(ms / 3_600_000);
  if (hours * 3_600_000 !== ms) return `${Math.round(ms / 60_000)} min`;
  return hours >= 48 && hours % 24 === 0 ? `${hours / 24} d` : `${hours} h`;
}
