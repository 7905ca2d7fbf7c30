/**
 * Releases held changes that a person has approved. An approval names the hash of the plan that
 * showed the changes. It ends with the first full run that began after the approval and could do
 * everything, and after seven days at the latest.
 */
import type { Steps } from '../context/work-in-parts.ts';
import type { RecordType } from '../../records/record-type.ts';
import { byGuard, type GuardClass, guardNames, timedGuards } from '../../domain/guard-classes.ts';
import type { RecordTypeName } from '../../domain/record.ts';
import { nothingLeft, unknownPlan, rejectedForMs } from '../report/guard-text.ts';
import { withoutYielding, yielding } from '../plan/commit-plan.ts';
import type { RunState } from '../context/run-state.ts';
import { endFirstLoad, type RunContext } from '../context/run-context.ts';
import { addHolds, holdWithheld, type Batch, batchOf } from './approval-holds.ts';
import { hasDeferred } from './plan-rules.ts';
import { modeName, type ToApprove } from '../context/mirror-context.ts';
import { weekMs } from '../report/guard-rules.ts';
import { approvePlan, isAnyLeft, noteDecision } from './plan-decisions.ts';
import { approvalsInForce, sayUnsigned } from './signed-approvals.ts';

/**
 * Approves what remains of the plan that `approve` names, if any, and ends old rejections. Returns
 * the approvals in force, and notes about those that lack signatures.
 */
export function approvalsOf(
  { snapshot, writes, clock, approvers, undo }: RunContext,
  approve: ToApprove | undefined,
) {
  const { awaitingApproval, transaction } = snapshot;
  const at = clock.now();
  if (writes && awaitingApproval.rejections().length > 0)
    transaction(() => awaitingApproval.endRejections(at - rejectedForMs));
  let hasApproved = false;
  if (approve && writes) {
    const { plan, by, reason, caller } = approve;
    const { held } = approvePlan(snapshot, {
      plan,
      only: {},
      decision: { at, by, reason },
      caller,
    });
    hasApproved = isAnyLeft(held);
  }
  // What was approved of an undo is no approval of what another run does, nor the other way round.
  const approvals = approvalsInForce(snapshot, { approvers, now: at }).filter(
    ({ plan }) => awaitingApproval.isOfUndo(plan) === (undo !== undefined),
  );
  const rejections = awaitingApproval.rejections().map(({ plan }) => plan);
  const unsigned = sayUnsigned(snapshot, { approvers, now: at });
  return { approvals, rejections, hasApproved, unsigned };
}

/**
 * Stores, approves and releases the plan of this run if `approve` names it, and returns whether it
 * did. An earlier plan with nothing left to approve only adds a note. Throws Invalid if there is no
 * such plan.
 */
export function* approveThisPlan(state: RunState): Steps<boolean> {
  const { run, approvals } = state;
  const { snapshot } = run;
  const asked = state.options.approve;
  if (!asked || state.hasApproved) return false;
  const { plan: approve, by, reason, caller } = asked;
  if (approvals.some((one) => one.plan === approve)) return false;
  const own = state.review.heldAs ?? '';
  if (approve !== own) {
    if (snapshot.awaitingApproval.get(approve)) {
      state.notes.push({ code: 'note', reason: nothingLeft(approve) });
      return false;
    }
    throw unknownPlan(snapshot.awaitingApproval.current(), approve, own);
  }
  if (snapshot.guarded.countChanges() === 0) return false;
  const decision = { at: run.clock.now(), by, reason };
  yield* addHolds(run);
  const batch = yield* batchOf(run);
  snapshot.transaction(() => {
    keepPlan(state, batch);
    snapshot.awaitingApproval.approve(own, decision);
    noteDecision(snapshot, 'approve', { plan: own, caller, ...decision });
  });
  snapshot.guarded.release(own);
  state.review.held.clear();
  state.review.withdrawn.clear();
  state.review.asked.clear();
  state.tally.released(guardNames);
  const given = snapshot.awaitingApproval.approvalOf(own);
  if (given) approvals.push(given);
  return true;
}

/**
 * Holds, in later runs too, what a round withholds. Returns a function that stores the plan of the
 * run; call it in the transaction that writes the rest of the plan. Later rounds add nothing to the
 * plan.
 */
export async function storeAwaitingApproval(state: RunState, round: number): Promise<() => void> {
  const { run } = state;
  await holdWithheld(run);
  if (round > 1) return () => undefined;
  const batch = await yielding(run, batchOf(run));
  return () => keepPlan(state, batch);
}

/**
 * Stores what the run withholds. It replaces the changes stored by earlier runs for which this run
 * could make a decision. The name of the batch is computed again if another run has locked some of
 * its people since.
 */
function keepPlan(state: RunState, before: Batch): void {
  const { run, review } = state;
  const { awaitingApproval, guarded } = run.snapshot;
  const { heldAs: plan } = review;
  if (plan === undefined) return;
  const mode = modeName(run.mode);
  // Earlier plans also show the people that this run has not read, so they stay current.
  if (review.unplanned === 0) awaitingApproval.clear(mode, clearing(run, couldAll(state)));
  const size = guarded.countChanges();
  if (size === 0) return;
  const { name: batch } = size === before.size ? before : withoutYielding(batchOf(run));
  awaitingApproval.keep({ plan, batch, size, mode, at: run.clock.now() });
  if (!run.undo) awaitingApproval.supersede(plan, state.approvals);
}

/**
 * Ends the first load and the approvals after a full run that was completed, and returns the record
 * types for which it could do everything. The first load continues if the source contained no
 * person who could be read. An approval ends only if it was in force when the run began, and if it
 * concerns only these record types. Failures of another record type or of a single channel do not
 * matter.
 */
export function closeApprovals(state: RunState): RecordType[] {
  const { run, approvals, breaker, failure, known } = state;
  const { snapshot, mode, stop } = run;
  const isDone = !failure && !stop.aborted && !breaker.stopped();
  if (run.undo && isDone && !state.parts.some(({ type }) => hasDeferred(run, type.name))) {
    const own = approvals.filter(({ plan, whole }) => (whole ?? plan) === state.plan?.hash);
    for (const { plan } of own) snapshot.awaitingApproval.end(plan, run.clock.now());
  }
  // A run about a few people releases only theirs, and completes no first load.
  if (mode !== 'full' || failure || stop.aborted || run.selection) return [];
  const whole = wholeKinds(state).filter(
    (type) => !breaker.endsEarly(type) && !hasDeferred(run, type.name),
  );
  const at = run.clock.now();
  if (whole.some((type) => type.name === 'contact' && (known.get(type)?.sizes.valid ?? 0) > 0)) {
    endFirstLoad(snapshot, run.id);
  }
  const could = couldAll(state);
  // If the export was rewritten meanwhile, no further deletes were sent.
  const settled = whole.filter(
    (type) => could.includes(type) && (!type.capabilities.absence || known.get(type)?.still()),
  );
  const others = othersThan(run, settled);
  for (const { plan } of approvals) {
    if (!snapshot.awaitingApproval.isAbout(plan, others)) snapshot.awaitingApproval.end(plan, at);
  }
  if (settled.length > 0 && snapshot.guarded.countChanges() === 0)
    snapshot.awaitingApproval.clear(mode, clearing(run, settled));
  return settled;
}

/** The record types for which everything was planned: a first load, say, deletes nobody. */
function couldAll(state: RunState): RecordType[] {
  const { run, known } = state;
  return wholeKinds(state).filter(
    (type) =>
      !type.capabilities.absence ||
      (!run.firstLoad && (run.mode !== 'full' || known.get(type)?.absenceCounts)),
  );
}

/** The record types whose source, and in a full run platform, was read completely. */
function wholeKinds({ run, parts, known }: RunState): RecordType[] {
  if (run.quarantined) return [];
  const types = parts.map(({ type }) => type);
  return types.filter((type) => {
    const knowledge = known.get(type);
    if (!knowledge?.certified) return false;
    return run.mode !== 'full' || knowledge.listing?.complete;
  });
}

/** Returns which plans a run leaves current, and from which time on those of `undo` stay so. */
function clearing(run: RunContext, judged: readonly RecordType[]) {
  return { but: othersThan(run, judged), before: run.clock.now() - weekMs };
}

function othersThan({ parts }: RunContext, kinds: readonly RecordType[]): RecordTypeName[] {
  const all = parts.map(({ type }) => type.name);
  return all.filter((name) => !kinds.some((type) => type.name === name));
}

/**
 * Counts the held records by class. For stated opt-outs, people that the run did not read count
 * too.
 */
export function countAwaitingApproval({ run, review }: RunState): Record<GuardClass, number> {
  const { countWithheld } = run.snapshot.guarded;
  return byGuard((guard) => countWithheld(guard) + (timedGuards.has(guard) ? review.unplanned : 0));
}
