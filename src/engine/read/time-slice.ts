/**
 * Reads a source again during a long run. A run works in slices and asks between them whether the
 * source is still what was read, so that hour fifty of a first load never sends what was true in
 * hour zero.
 *
 *   the source is still what was read       the run goes on with the plan
 *   it changed, and was read wholly         what is left is planned again, by what it says now
 *   it changed, and is not certified now    only opt-outs are planned, and the run says so
 *   it cannot be read now                   nothing more is sent, and the run says so
 *   it changed, and the user agreed to      nothing more is sent: it would not be that plan
 *   the plan
 *
 * Such a reading counts no absence.
 */
import { Interrupted, isExpected, type Problem } from '../../domain/errors.ts';
import type { RecordType } from '../../records/record-type.ts';
import type { MirrorPart } from '../context/mirror-context.ts';
import type { RunContext } from '../context/run-context.ts';
import type { Findings } from '../context/run-findings.ts';
import { readSource } from './source-read.ts';
import { readingOf } from './record-states.ts';
import { untilDone } from '../context/work-in-parts.ts';

/** How long a slice takes; milliseconds. */
export const sliceMs = 10 * 60_000;

/**
 * Takes back what is left of a plan if its source has changed since it was read. Returns what is
 * known of the part then; undefined: the source is still what was read.
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

/** The result of reading a source again; `reason` says what is wrong with it. */
interface ReadAgain {
  /** Undefined: the source could not be read. */
  findings?: Findings;
  reason?: Problem;
}

/** Reads a source again, without counting absences. Throws Interrupted, and bugs. */
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
