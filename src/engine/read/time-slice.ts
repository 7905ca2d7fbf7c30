/**
 * Reads a source again during a long run. A run works in slices and checks between them whether the
 * source is unchanged, so that in hour 50 of a first load it does not send what was true only in
 * hour 0.
 *
 *   the source is unchanged                 the run continues with the plan
 *   it changed, and was read completely     the rest is planned again, based on its new content
 *   it changed, and is not certified now    only opt-outs are planned, and the run reports it
 *   it cannot be read now                   nothing more is sent, and the run reports it
 *   it changed, and the user agreed to      nothing more is sent, because it would be another plan
 *   the plan
 *
 * Such a reading does not count absences.
 */
import { Interrupted, isExpected, type Problem } from '../../domain/errors.ts';
import type { RecordType } from '../../records/record-type.ts';
import type { MirrorPart } from '../context/mirror-context.ts';
import type { RunContext } from '../context/run-context.ts';
import type { Findings } from '../context/run-findings.ts';
import { readSource } from './source-read.ts';
import { readingOf } from './record-states.ts';
import { untilDone } from '../context/work-in-parts.ts';

/** The length of a slice, in milliseconds. */
export const sliceMs = 10 * 60_000;

/**
 * Withdraws the rest of a plan if its source has changed since it was read. Returns what is then
 * known for the record type, or undefined if the source is unchanged.
 */
export async function withdrawOutdated(
  run: RunContext,
  type: RecordType,
  findings: Findings,
): Promise<Findings | undefined> {
  if (!type.needsCertificate || findings.still()) return undefined;
  const { slicing, staging, stage, transaction } = run.snapshot;
  await untilDone(run, () => transaction(() => slicing.withdraw(run.id, type.name)));
  stage(() => {
    staging.forgetDesired(type.name);
    slicing.assumeDone(run.id, type.name);
  });
  return { ...findings, certified: false, still: () => false };
}

/** The result of reading a source again; `reason` states what is wrong with it. */
interface ReadAgain {
  /** Undefined if the source could not be read. */
  findings?: Findings;
  reason?: Problem;
}

/** Reads a source again, without counting absences. Throws Interrupted, and unexpected errors. */
export async function readAgain(
  run: RunContext,
  part: MirrorPart,
  before: Findings,
): Promise<ReadAgain> {
  try {
    const certificate = await readSource(run, part);
    const findings = { ...before, ...readingOf(part.source, certificate) };
    if (certificate.complete) return { findings };
    const { why, fix } = certificate;
    const reason = `${why}, so only opt-outs are applied from now on`;
    return { findings, reason: { code: 'source-incomplete', reason, fix } };
  } catch (error) {
    if (!isExpected(error) || error instanceof Interrupted) throw error;
    const { name } = part.type;
    const reason = `the ${name}s could not be read again, so the rest waits: ${error.message}`;
    return { reason: { code: 'source-left-out', reason } };
  }
}
