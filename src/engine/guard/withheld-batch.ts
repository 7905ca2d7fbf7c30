/** Names the changes that a run withholds, range by range because there may be many. */
import { hash } from 'node:crypto';
import { guardNames } from '../../domain/guard-classes.ts';
import { planning } from '../report/run-summary.ts';
import type { Guarded } from '../../store/database/key-range.ts';
import type { RunContext } from '../context/run-context.ts';
import type { RunState } from '../context/run-state.ts';
import { eachPart } from '../context/work-in-parts.ts';

/** The changes that a run withholds, named by a hash of their content. */
export interface Batch {
  name: string;
  /** The number of changes. */
  size: number;
}

/** Names and counts the changes that a run withholds. */
export function* batchOf({ snapshot }: RunContext): Generator<undefined, Batch> {
  const content = planning();
  const stated = planning();
  let size = 0;
  yield* eachWithheld(snapshot, (guarded) => {
    const changes = snapshot.guarded.withheld(guarded);
    content.add(changes);
    stated.add(changes.filter((change) => change.stated === 1));
    size += changes.length;
  });
  return { name: `${content.done().hash}-${stated.done().hash}`, size };
}

/** Returns whether a plan is not stored, or shows all changes that this run withholds. */
function* showsWithheld({ snapshot }: RunContext, plan: string): Generator<undefined, boolean> {
  let all = true;
  yield* eachWithheld(snapshot, (guarded) => {
    all &&= snapshot.awaitingApproval.shows(plan, guarded);
  });
  return all;
}

/** Calls `work` for each range of what the run withholds. */
export function* eachWithheld(
  { guarded }: RunContext['snapshot'],
  work: (guarded: Guarded) => void,
): Generator<undefined> {
  for (const guard of guardNames) {
    yield* eachPart(guarded.withheldRanges(guard), (range) => work({ ...range, guard }));
  }
}

/**
 * Returns the hash under which a person approves what the run withholds. It is the hash of the
 * plan, unless an earlier run stored this plan without some of the changes that are withheld now:
 * an approval, even if it is repeated, must cover only what it showed. Plans of `undo` always keep
 * the hash of the plan, because only that command makes their changes.
 */
export function* hashToHold({ run, plan }: RunState): Generator<undefined, string | undefined> {
  if (!plan || run.undo || (yield* showsWithheld(run, plan.hash))) return plan?.hash;
  const { name } = yield* batchOf(run);
  return hash('sha256', JSON.stringify([plan.hash, name])).slice(0, 16);
}
