/**
 * Counts whom the CRM has not named. A whole reading of a full run counts, once, if the source is
 * still what was read when the platform has been listed; a plan counts nothing, and shows what
 * earlier runs have counted. In other runs nobody's absence counts for anything.
 */
import type { Course } from './course.ts';
import { onlyKey } from './mirror.ts';
import { overtakenIn } from './overtaken.ts';
import { throughout } from './throughout.ts';

export async function countAbsences({ run, parts, known }: Course): Promise<void> {
  for (const { kind } of parts) {
    const knowledge = known.get(kind);
    if (!knowledge || !kind.countsAbsence) continue;
    const absenceCounts = run.mode === 'full' && knowledge.certified && knowledge.still();
    known.set(kind, { ...knowledge, absenceCounts });
    if (!run.writes) continue;
    const { absences, spans, transaction } = run.snapshot;
    const only = onlyKey(run);
    transaction(() => {
      if (only === undefined) absences.dropNamed(kind.name);
      else absences.dropIfNamed(kind.name, only);
    });
    if (!absenceCounts) continue;
    const reading = { name: knowledge.reading, at: run.startedAt };
    // Cut short, whoever was counted is not counted again by this reading.
    await throughout(run, spans.ofKeys(kind.name), (span) => {
      const but = overtakenIn(run, kind);
      transaction(() => absences.count(kind.name, span, { ...reading, but }));
    });
  }
}
