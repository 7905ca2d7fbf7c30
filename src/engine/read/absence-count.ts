/**
 * Counts whom the CRM has not named. A whole reading of a full run counts, once, if the source is
 * still what was read when the platform has been listed; a plan counts nothing, and shows what
 * earlier runs have counted. In other runs nobody's absence counts for anything.
 *
 * The platform's time is the `Date` of the first answer of its listing; where that has none, or
 * nothing could be listed, our clock counts alone.
 */
import type { RunState } from '../context/run-state.ts';
import { onlyKey } from '../context/mirror-context.ts';
import { supersededKeys } from '../context/superseded-records.ts';
import { forEachRange } from '../context/for-each-range.ts';

export async function countAbsences({ run, parts, known }: RunState): Promise<void> {
  for (const { type } of parts) {
    const knowledge = known.get(type);
    if (!knowledge || !type.absence) continue;
    const absenceCounts = run.mode === 'full' && knowledge.certified && knowledge.still();
    known.set(type, { ...knowledge, absenceCounts });
    if (!run.writes) continue;
    const { absences, ranges, transaction } = run.snapshot;
    const only = onlyKey(run);
    transaction(() => {
      if (only === undefined) absences.dropNamed(type.name);
      else absences.dropIfNamed(type.name, only);
    });
    if (!absenceCounts) continue;
    const { absentReadings, absentForMs } = type.absence;
    const reading = {
      name: knowledge.reading,
      at: run.startedAt,
      platformAt: knowledge.listing?.date,
      absentReadings,
      absentForMs,
    };
    // Cut short, whoever was counted is not counted again by this reading.
    await forEachRange(run, ranges.ofKeys(type.name), (range) => {
      const but = supersededKeys(run, type);
      transaction(() => absences.count(type.name, range, { ...reading, but }));
    });
  }
}
