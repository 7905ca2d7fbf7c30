/**
 * What a person lets pass that a guard holds: under the hash of the plan that showed it, until the
 * first full run that began later and could do all of it has ended, seven days at most.
 */
import { Invalid } from '../model/errors.ts';
import { weekMs } from '../plan/guard.ts';
import { nothingLeft, unknownPlan } from '../plan/guard-words.ts';
import { planOf } from '../plan/plan.ts';
import type { Approval } from '../snapshot/held.ts';
import type { Course } from './course.ts';
import { modeName, type Run } from './mirror.ts';
import { overtakenIn } from './overtaken.ts';
import { guardClasses, guardedKind, isHolding, isLeft } from './withheld.ts';

/** Set by the first full run that came to its end: until then everything is a first load. */
const loaded = 'loaded';

export function isFirstLoad({ firstLoad, snapshot }: Run): boolean {
  return firstLoad === true || snapshot.meta.get(loaded) === undefined;
}

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
export function approveOwn(course: Course): boolean {
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
  snapshot.transaction(() => {
    keepHeld(course, 1);
    snapshot.held.approve(hash, now);
  });
  snapshot.guarding.release(hash);
  course.held.clear();
  course.tally.released(guardClasses);
  approvals.push({ plan: hash, at: now });
  return true;
}

/**
 * What the plan of a run holds, in place of what earlier runs did, if it could tell; later rounds
 * add nothing to it, but whom they hold stays held as well.
 */
export function keepHeld(course: Course, round: number): void {
  const { run, plan } = course;
  const { held, guarding } = run.snapshot;
  held.stand();
  if (round > 1 || !plan) return;
  const mode = modeName(run.mode);
  if (couldAll(course)) held.clear(mode);
  if (!isHolding(guarding)) return;
  const batch = planOf(guarding.withheld()).hash;
  held.keep({ plan: plan.hash, batch, mode, at: run.clock.now() });
}

/**
 * A full run that came to its end ends the first load, and the approvals it began with if it could
 * do what they are about. How the other kind fared, or a single channel, is no matter of that.
 */
export function settleGuards(course: Course): void {
  const { run, approvals, brake, failure } = course;
  const { snapshot, mode, stop } = run;
  snapshot.held.stand();
  const people = wholePeople(course);
  if (mode !== 'full' || !people || failure || stop.aborted) return;
  if (brake.endsEarly(people.kind)) return;
  const at = run.clock.now();
  if (snapshot.meta.get(loaded) === undefined) snapshot.meta.set(loaded, run.id);
  // Of an export that was written anew meanwhile no delete has left any more.
  if (!couldAll(course) || !people.knowledge.still()) return;
  snapshot.held.dropUnwanted(overtakenIn(run, people.kind));
  for (const { plan } of approvals) snapshot.held.end(plan, at);
  if (!isHolding(snapshot.guarding)) snapshot.held.clear(mode);
}

/**
 * Takes out of the plan what would befall people whose deletion is approved before a run that may
 * delete them; answers how many people.
 */
export function leaveToDelete(course: Course): number {
  const { run, approvals } = course;
  if (run.mode === 'full' && couldAll(course)) return 0;
  const { stage, guarding } = run.snapshot;
  let people = 0;
  stage(() => {
    for (const one of approvals) people += guarding.leaveToDelete(one);
  });
  return people;
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
