/**
 * What a person lets pass that a guard holds: under the hash of the plan that showed it, until the
 * first full run that began later has ended well, seven days at most.
 */
import type { GuardClass } from '../model/change.ts';
import { Invalid } from '../model/errors.ts';
import { unknownPlan, weekMs } from '../plan/guard.ts';
import { planOf } from '../plan/plan.ts';
import type { Summary } from '../plan/summary.ts';
import type { Guarding } from '../snapshot/guarding.ts';
import type { Approval } from '../snapshot/held.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import type { Course } from './course.ts';
import { modeName, type Run } from './mirror.ts';

/** What guards are about: templates have none. */
export const guardedKind = 'contact';
export const guardClasses: readonly GuardClass[] = ['delete', 'opt_in'];

/** Set by the first full run that has ended well: until then everything is a first load. */
const loaded = 'loaded';

/** People who are held, by class. */
export function countHeld({ countWithheld }: Guarding): Record<GuardClass, number> {
  return { delete: countWithheld('delete'), opt_in: countWithheld('opt_in') };
}

function isHolding({ guarding }: Snapshot): boolean {
  return guardClasses.some((of) => guarding.countWithheld(of) > 0);
}

export function isFirstLoad({ firstLoad, snapshot }: Run): boolean {
  return firstLoad === true || snapshot.meta.get(loaded) === undefined;
}

/** What was approved before this run, and what it is asked to approve of an earlier plan. */
export function approvalsOf({ snapshot, approve, writes, clock }: Run): Approval[] {
  const now = clock.now();
  if (approve !== undefined && writes && snapshot.held.get(approve)) {
    snapshot.transaction(() => snapshot.held.approve(approve, now));
  }
  return snapshot.held.approvals(now - weekMs);
}

/** `approve` may name this very plan: then it is kept, approved, and let through. */
export function approveOwn(course: Course): void {
  const { run, plan, approvals } = course;
  const { snapshot, approve } = run;
  if (approve === undefined || snapshot.held.get(approve)) return;
  const hash = plan?.hash ?? '';
  if (approve !== hash) throw new Invalid(unknownPlan(snapshot.held.current(), approve, hash));
  if (!isHolding(snapshot)) return;
  const now = run.clock.now();
  snapshot.transaction(() => {
    keepHeld(course, 1);
    snapshot.held.approve(hash, now);
  });
  snapshot.guarding.release(hash);
  course.held.clear();
  course.tally.released(guardClasses);
  approvals.push({ plan: hash, at: now });
}

/** What the plan of a run holds, in place of what earlier runs did; later rounds add nothing. */
export function keepHeld(course: Course, round: number): void {
  const { run, plan, parts } = course;
  const { held, guarding } = run.snapshot;
  if (round > 1 || !plan || !parts.some((part) => part.kind.name === guardedKind)) return;
  const mode = modeName(run.mode);
  held.clear(mode);
  if (!isHolding(run.snapshot)) return;
  const batch = planOf(guarding.withheld()).hash;
  held.keep({ plan: plan.hash, batch, mode, at: run.clock.now() });
}

/** A full run that has ended well ends the approvals it began with, and the first load. */
export function settleGuards(course: Course, { status, mode }: Summary): void {
  const { run, approvals, parts } = course;
  const { snapshot } = run;
  const isWell = status === 'done' || status === 'rejected' || status === 'held';
  const isAll = mode === 'full' && parts.some((part) => part.kind.name === guardedKind);
  if (!isWell || !isAll) return;
  const at = run.clock.now();
  for (const { plan } of approvals) snapshot.held.end(plan, at);
  if (snapshot.meta.get(loaded) === undefined) snapshot.meta.set(loaded, run.id);
}
