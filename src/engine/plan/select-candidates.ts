/** Selects the records that need a decision: the few that differ from their recorded state. */
import type { RecordProblem } from '../../domain/record-problem.ts';
import type { RecordType } from '../../records/record-type.ts';
import { inTurns } from '../context/work-in-parts.ts';
import { onlyKey } from '../context/mirror-context.ts';
import type { RunContext } from '../context/run-context.ts';
import type { Findings } from '../context/run-findings.ts';
import { lossOf, lostParts } from '../observe/lost-parts.ts';
import { keysOf } from '../observe/person-observation.ts';

/** Stages the candidates. Returns a problem for each lost channel. */
export async function candidatesOf(
  run: RunContext,
  type: RecordType,
  findings: Findings,
): Promise<RecordProblem[]> {
  await addCandidates(run, type, findings);
  const lost = await lostParts(run, type, findings.listing);
  return [...lost].map((part) => lossOf(type, part));
}

async function addCandidates(run: RunContext, type: RecordType, findings: Findings): Promise<void> {
  const { candidates, ranges, stage } = run.snapshot;
  const { name, decidesAbsent } = type;
  const key = onlyKey(run);
  if (key !== undefined) {
    for (const one of keysOf(run, type, { key, known: findings })) candidates.add(name, one);
    return;
  }
  if (run.undo) {
    for await (const chunk of inTurns(run, run.undo.chunks())) run.undo.select(name, chunk);
    return;
  }
  if (!findings.listing && !findings.whole) {
    stage(() => candidates.named(name));
    return;
  }
  for await (const range of inTurns(run, ranges.ofKeys(name))) {
    stage(() => {
      if (findings.listing) candidates.full(name, range, decidesAbsent.full);
      else candidates.fast(name, range, decidesAbsent.fast);
    });
  }
  candidates.parked(name);
}
