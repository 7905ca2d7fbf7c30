/**
 * Counts whom the CRM has not named. A whole reading of a full run counts, once, if the source is
 * still what was read when the platform has been listed; a plan counts nothing, and shows what
 * earlier runs have counted. In other runs nobody's absence counts for anything.
 */
import type { Course } from './course.ts';

export function countAbsences({ run, parts, known }: Course): void {
  for (const { kind } of parts) {
    const knowledge = known.get(kind);
    if (!knowledge || !kind.countsAbsence) continue;
    const absenceCounts = run.mode === 'full' && knowledge.certified && knowledge.still();
    known.set(kind, { ...knowledge, absenceCounts });
    if (!run.writes) continue;
    const { absences, transaction } = run.snapshot;
    transaction(() => {
      absences.dropNamed(kind.name);
      if (absenceCounts) absences.count(kind.name, knowledge.reading, run.startedAt);
    });
  }
}
