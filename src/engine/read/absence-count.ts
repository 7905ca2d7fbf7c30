/**
 * Counts in how many readings, and for how long, people have been missing from the CRM. A certified
 * reading of a full run counts once if the source is still unchanged after the platform has been
 * listed. A plan counts nothing, and uses the counts of earlier runs.
 *
 * The platform's time is the `Date` header of the first response of its listing; without one, only
 * our clock counts.
 */
import type { RecordType } from '../../records/record-type.ts';
import { onlyKey } from '../context/mirror-context.ts';
import { aheadOf } from '../context/clock-difference.ts';
import { type RunContext, supersededKeys } from '../context/run-context.ts';
import type { Findings } from '../context/run-findings.ts';
import { inTurns } from '../context/work-in-parts.ts';

/** Returns whether absences count in this run. They do not in one about a few people. */
export function isAbsenceShown({ mode, selection }: RunContext, findings: Findings): boolean {
  return mode === 'full' && !selection && findings.certified && findings.still();
}

/**
 * Deletes the counts of people who are in the CRM again, and counts this reading for the others.
 */
export async function countAbsences(
  run: RunContext,
  type: RecordType,
  { absenceCounts, reading, listing }: Findings,
): Promise<void> {
  const { name } = type;
  const { absence } = type.capabilities;
  if (!absence) return;
  const { absences, ranges, transaction } = run.snapshot;
  const only = onlyKey(run);
  transaction(() => {
    if (only === undefined) absences.dropNamed(name);
    else absences.dropIfNamed(name, only);
  });
  if (!absenceCounts) return;
  const platformAt = listing?.platformStartedAt;
  const times = { at: run.startedAt, platformAt, aheadMs: aheadOf(run) };
  // If the process dies halfway, no person is counted twice for one reading.
  for await (const range of inTurns(run, ranges.ofKeys(name))) {
    const but = supersededKeys(run, type);
    transaction(() => absences.count(name, range, { name: reading, ...times, ...absence, but }));
  }
}
