/**
 * What a person lets pass that a guard holds: under the hash of the plan that showed it, until the
 * first full run that began later and could do all of it has ended, seven days at most.
 */
import type { RecordType } from '../../records/record-type.ts';
import { guardNames } from '../../domain/guard-classes.ts';
import type { RecordTypeName } from '../../domain/record.ts';
import { weekMs } from '../report/guard-rules.ts';
import { nothingLeft, unknownPlan } from '../report/guard-text.ts';
import type { Approval } from '../../snapshot/tables/awaiting-approval.ts';
import { withoutYielding, yielding } from '../plan/commit-plan.ts';
import type { RunState } from '../context/run-state.ts';
import { endFirstLoad } from '../context/first-load.ts';
import { holdWithheld, sinceNow } from './hold-limit.ts';
import { addHolds, type Batch, batchOf } from './held-changes.ts';
import type { RunContext } from '../context/run-context.ts';
import { modeName } from '../context/mirror-context.ts';
import { isAnyLeft, isAwaitingApproval } from './guard-classes.ts';

/** What was approved before this run, and what it is asked to approve of an earlier plan. */
export function approvalsOf(
  { snapshot, writes, clock }: RunContext,
  approve: string | undefined,
): Approval[] {
  const now = clock.now();
  if (approve !== undefined && writes && isAnyLeft(snapshot.awaitingApproval.left(approve))) {
    snapshot.transaction(() => snapshot.awaitingApproval.approve(approve, now));
  }
  return snapshot.awaitingApproval.approvals(now - weekMs);
}

/**
 * `approve` may name this very plan: then it is kept, approved, and may pass; answers whether it
 * does. Of an earlier one of which nothing is left nothing passes.
 */
export function* approveThisPlan(context: RunState): Generator<undefined, boolean> {
  const { run, plan, approvals } = context;
  const { snapshot } = run;
  const { approve } = context.options;
  if (approve === undefined || approvals.some((one) => one.plan === approve)) return false;
  const hash = plan?.hash ?? '';
  if (approve !== hash) {
    if (snapshot.awaitingApproval.get(approve)) {
      context.notes.push(nothingLeft(approve));
      return false;
    }
    throw unknownPlan(snapshot.awaitingApproval.current(), approve, hash);
  }
  if (!isAwaitingApproval(snapshot.guarded)) return false;
  const now = run.clock.now();
  yield* addHolds(run, sinceNow(run));
  const batch = yield* batchOf(run);
  snapshot.transaction(() => {
    keepPlan(context, batch);
    snapshot.awaitingApproval.approve(hash, now);
  });
  snapshot.guarded.release(hash);
  context.review.held.clear();
  context.tally.released(guardNames);
  approvals.push({ plan: hash, at: now });
  return true;
}

/**
 * Has whom a round withholds held from now on, and keeps what the plan of the run holds; answers
 * what of that is done with the rest of the plan. Later rounds add nothing to it.
 */
export async function storeAwaitingApproval(context: RunState, round: number): Promise<() => void> {
  const { run } = context;
  await holdWithheld(run);
  if (round > 1) return () => undefined;
  const batch = await yielding(run, batchOf(run));
  return () => keepPlan(context, batch);
}

/**
 * What a run holds now, in place of what earlier ones did, if it could tell. Whom another run took
 * since the batch was named is not in it: then it is named anew.
 */
function keepPlan(context: RunState, before: Batch): void {
  const { run, plan } = context;
  const { awaitingApproval, guarded } = run.snapshot;
  if (!plan) return;
  const mode = modeName(run.mode);
  // Of whom this run has not read, what earlier ones held stays shown.
  if (context.review.unplanned === 0)
    awaitingApproval.clear(mode, othersThan(run, couldAll(context)));
  const size = guarded.countChanges();
  if (size === 0) return;
  const { name: batch } = size === before.size ? before : withoutYielding(batchOf(run));
  awaitingApproval.keep({ plan: plan.hash, batch, size, mode, at: run.clock.now() });
}

/**
 * A full run that came to its end ends the first load, unless its source named nobody who could be
 * read, and the approvals it began with that are about nothing but what it could do: answers the
 * kinds of which it could do all. How another kind fared, or a single channel, does not matter.
 */
export function closeApprovals(context: RunState): RecordType[] {
  const { run, approvals, breaker, failure, known } = context;
  const { snapshot, mode, stop } = run;
  if (mode !== 'full' || failure || stop.aborted) return [];
  const whole = wholeKinds(context).filter((type) => !breaker.endsEarly(type));
  const at = run.clock.now();
  if (whole.some((type) => type.name === 'contact' && namesAny(known, type))) {
    endFirstLoad(snapshot, run.id);
  }
  const could = couldAll(context);
  // Of an export that was written anew meanwhile no delete has left any more.
  const settled = whole.filter(
    (type) => could.includes(type) && (!type.capabilities.absence || known.get(type)?.still()),
  );
  const others = othersThan(run, settled);
  for (const { plan } of approvals) {
    if (!snapshot.awaitingApproval.isAbout(plan, others)) snapshot.awaitingApproval.end(plan, at);
  }
  if (settled.length > 0 && !isAwaitingApproval(snapshot.guarded))
    snapshot.awaitingApproval.clear(mode, others);
  return settled;
}

/** An export without anybody in it has loaded nobody. */
function namesAny(known: RunState['known'], type: RecordType): boolean {
  return (known.get(type)?.sizes.valid ?? 0) > 0;
}

/** The kinds of which all that is called for was planned: a first load, for one, deletes nobody. */
function couldAll(context: RunState): RecordType[] {
  const { run, known } = context;
  return wholeKinds(context).filter(
    (type) =>
      !type.capabilities.absence ||
      (!run.firstLoad && (run.mode !== 'full' || known.get(type)?.absenceCounts)),
  );
}

/** Those that took part, and whose readings, as far as there are two, are certified. */
function wholeKinds({ run, parts, known }: RunState): RecordType[] {
  if (run.quarantined) return [];
  const types = parts.map(({ type }) => type);
  return types.filter((type) => {
    const knowledge = known.get(type);
    if (!knowledge?.certified) return false;
    return run.mode !== 'full' || knowledge.listing?.complete;
  });
}

/** The kinds of the mirror that are none of these. */
function othersThan({ parts }: RunContext, kinds: readonly RecordType[]): RecordTypeName[] {
  const all = parts.map(({ type }) => type.name);
  return all.filter((name) => !kinds.some((type) => type.name === name));
}
