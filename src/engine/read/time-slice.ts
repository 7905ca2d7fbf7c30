/**
 * A long run works in slices. Between them the CRM is asked whether it still says the same; where
 * it does not, it is read again and what is left is decided upon anew: hour fifty of a first load
 * never sends what hour zero believed.
 *
 *   the source is still what was read     → goes on with the plan
 *   it changed, and was read wholly       → what is left is planned anew, by what it says now
 *   it changed, and proves nothing now    → only opt-outs are planned, and the run says so
 *   it cannot be read now                 → nothing more is sent, and the run says so
 *   the plan is one that was agreed to    → nothing more is sent: it is not that plan any more
 *
 * No absence is counted by such a reading.
 */
import { Interrupted, isExpected } from '../../domain/errors.ts';
import type { RunState } from '../context/run-state.ts';
import type { MirrorPart } from '../context/mirror-context.ts';
import { read } from './source-read.ts';
import { unknown } from '../context/source-knowledge.ts';
import { readingOf } from './record-states.ts';
import { untilDone } from '../context/for-each-range.ts';

export const sliceMs = 10 * 60_000;

/** Those parts of which something is left when the time of the slice is over. */
export function cutShort({ run, breaker, parts, sliceEndsAt }: RunState): MirrorPart[] {
  if (run.stop.aborted || breaker.stopped() || run.clock.now() < sliceEndsAt) return [];
  return parts.filter(({ type }) => run.snapshot.slicing.hasPlanned(run.id, type.name));
}

/** Reads the source of a part again where it has changed; answers whether to decide anew. */
export async function readAgain(context: RunState, part: MirrorPart): Promise<boolean> {
  const { run, known, reasons } = context;
  const { type, source } = part;
  const before = known.get(type) ?? unknown;
  if (!type.needsCertificate || before.still()) return false;
  const { slicing, staging, transaction } = run.snapshot;
  await untilDone(run, () => transaction(() => slicing.withdraw(run.id, type.name)));
  run.snapshot.stage(() => {
    staging.forgetDesired(type.name);
    slicing.assumeDone(run.id, type.name);
  });
  known.set(type, { ...before, certified: false, still: () => false });
  if (run.agrees) {
    reasons.push(
      `the ${type.name}s of the CRM have changed since the plan was agreed to → plan again`,
    );
    return false;
  }
  try {
    const certificate = await read(run, part);
    known.set(type, { ...before, ...readingOf(source, certificate) });
    if (!certificate.complete) {
      const { why, fix } = certificate;
      reasons.push(`${why}, so only opt-outs are applied from now on → ${fix}`);
    }
    return true;
  } catch (error) {
    if (!isExpected(error) || error instanceof Interrupted) throw error;
    reasons.push(`the ${type.name}s could not be read again, so the rest waits: ${error.message}`);
    return false;
  }
}
