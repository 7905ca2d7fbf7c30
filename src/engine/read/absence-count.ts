/**
 * Counts whom the CRM has not named. A whole reading of a full run counts, once, if the source is
 * still what was read when the platform has been listed; a plan counts nothing, and shows what
 * earlier runs have counted. In other runs nobody's absence counts for anything.
 *
 * The platform's time is the `Date` of the first answer of its listing; where that has none, or
 * nothing could be listed, our clock counts alone.
 */
import type { RecordType } from '../../records/record-type.ts';
import { onlyKey } from '../context/mirror-context.ts';
import { type RunContext, supersededKeys } from '../context/run-context.ts';
import type { Findings } from '../context/run-findings.ts';
import { forEachRange } from '../context/work-in-parts.ts';

/** Returns whether a reading shows for how long somebody has not been named. */
export function isAbsenceShown({ mode }: RunContext, findings: Findings): boolean {
  return mode === 'full' && findings.certified && findings.still();
}

/** Forgets the count of everybody who is named again, and counts this reading for the others. */
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
  const times = { at: run.startedAt, platformAt: listing?.platformStartedAt };
  // If the process dies halfway, nobody is counted twice by one reading.
  await forEachRange(run, ranges.ofKeys(name), (range) => {
    const but = supersededKeys(run, type);
    transaction(() => absences.count(name, range, { name: reading, ...times, ...absence, but }));
  });
}
