/**
 * What a person lets pass that a guard holds: under the hash of the plan that showed it, until the
 * first full run that began later and could do all of it has ended, seven days at most.
 */
import { Invalid } from '../model/errors.ts';
import { weekMs } from '../plan/guard.ts';
import { nothingLeft, unknownPlan } from '../plan/guard-words.ts';
import type { Approval } from '../snapshot/held.ts';
import { atOnce, inTurns } from './commit.ts';
import type { Course } from './course.ts';
import { endFirstLoad } from './first-load.ts';
import { batchOf, standWithheld, type Batch } from './holding.ts';
import { modeName, type Run } from './mirror.ts';
import { guardClasses, guardedKind, isHolding, isLeft } from './withheld.ts';

/** What was approved before this run, and what it is asked to approve of an earlier plan. */
export function approvalsOf({ snapshot, approve, writes, clock }: Run): Approval[] {
  const now = clock.now();
  if (approve !== undefined && writes && isLeft(snapshot.held.left(approve))) {
    snapshot.transaction(() => snapshot.held.approve(approve, now));
  }
  return snapshot.held.approvals(now - weekMs);
}

/**
 * `approve` may name this very plan: then it is kept, approved, and may pass; answers whether it
 * does. Of an earlier one of which nothing is left nothing passes.
 */
export function* approveOwn(course: Course): Generator<undefined, boolean> {
  const { run, plan, approvals } = course;
  const { snapshot, approve } = run;
  if (approve === undefined || approvals.some((one) => one.plan === approve)) return false;
  const hash = plan?.hash ?? '';
  if (approve !== hash) {
    if (snapshot.held.get(approve)) {
      course.notes.push(nothingLeft(approve));
      return false;
    }
    throw new Invalid(unknownPlan(snapshot.held.current(), approve, hash));
  }
  if (!isHolding(snapshot.guarding)) return false;
  const now = run.clock.now();
  yield* standWithheld(run);
  const batch = yield* batchOf(run);
  snapshot.transaction(() => {
    keepPlan(course, batch);
    snapshot.held.approve(hash, now);
  });
  snapshot.guarding.release(hash);
  course.held.clear();
  course.tally.released(guardClasses);
  approvals.push({ plan: hash, at: now });
  return true;
}

/**
 * Has whom a round withholds held from now on, and keeps what the plan of the run holds; answers
 * what of that is done with the rest of the plan. Later rounds add nothing to it.
 */
export async function keepHeld(course: Course, round: number): Promise<() => void> {
  const { run } = course;
  await inTurns(run, standWithheld(run));
  if (round > 1) return () => undefined;
  const batch = await inTurns(run, batchOf(run));
  return () => keepPlan(course, batch);
}

/**
 * What a run holds now, in place of what earlier ones did, if it could tell. Whom another run took
 * since the batch was named is not in it: then it is named anew.
 */
function keepPlan(course: Course, before: Batch): void {
  const { run, plan } = course;
  const { held, guarding } = run.snapshot;
  if (!plan) return;
  const mode = modeName(run.mode);
  if (couldAll(course)) held.clear(mode);
  const size = guarding.countChanges();
  if (size === 0) return;
  const { name: batch } = size === before.size ? before : atOnce(batchOf(run));
  held.keep({ plan: plan.hash, batch, size, mode, at: run.clock.now() });
}

/**
 * A full run that came to its end ends the first load, and the approvals it began with if it could
 * do what they are about: answers whether it could. How the other kind fared, or a single channel,
 * is no matter of that.
 */
export function settleGuards(course: Course): boolean {
  const { run, approvals, brake, failure } = course;
  const { snapshot, mode, stop } = run;
  const people = wholePeople(course);
  if (mode !== 'full' || !people || failure || stop.aborted) return false;
  if (brake.endsEarly(people.kind)) return false;
  const at = run.clock.now();
  endFirstLoad(snapshot, run.id);
  // Of an export that was written anew meanwhile no delete has left any more.
  if (!couldAll(course) || !people.knowledge.still()) return false;
  for (const { plan } of approvals) snapshot.held.end(plan, at);
  if (!isHolding(snapshot.guarding)) snapshot.held.clear(mode);
  return true;
}

/** Whether all that the CRM calls for was planned: a first load, for one, deletes nobody. */
function couldAll(course: Course): boolean {
  const people = wholePeople(course);
  if (!people || course.run.firstLoad) return false;
  return course.run.mode !== 'full' || people.knowledge.absenceCounts;
}

/** People, if they took part and both their readings, as far as there are two, are certified. */
function wholePeople({ run, parts, known }: Course) {
  const kind = parts.find((part) => part.kind.name === guardedKind)?.kind;
  if (!kind || run.quarantined) return undefined;
  const knowledge = known.get(kind);
  if (!knowledge?.certified) return undefined;
  return run.mode !== 'full' || knowledge.listing?.complete ? { kind, knowledge } : undefined;
}
