/**
 * Puts what was decided before the guards: what they hold is neither journaled nor sent, is planned
 * again by every run, and is kept under the hash of the plan that showed it until a person approves
 * it.
 */
import type { GuardClass } from '../model/change.ts';
import { explainHeld, judge, weekMs, type Held, type Rush } from '../plan/guard.ts';
import { approveOwn, isFirstLoad, leaveToDelete } from './approval.ts';
import type { Course } from './course.ts';
import { knowledgeNamed } from './states.ts';
import { guardClasses, guardedKind as kind } from './withheld.ts';

/** What is held stays held, in whichever run, until it is approved or no longer wanted. */
const standing: Held = { by: 'standing' };

/** One round of decisions, or a record that was decided upon again. */
export function guard(course: Course): void {
  const { run, approvals } = course;
  const { guarding } = run.snapshot;
  leaveToDelete(course);
  run.snapshot.stage(() => {
    guarding.follow();
    approvals.forEach(guarding.approve);
    for (const of of guardClasses) guardOne(course, of);
    guarding.pass();
  });
  if (course.rounds === 0) approveOwn(course);
  course.rounds += 1;
}

function guardOne(course: Course, of: GuardClass): void {
  const { run, held, plan } = course;
  const { guarding } = run.snapshot;
  if (of === 'opt_in' && isFirstLoad(run)) guarding.exempt(of);
  const stands = guarding.withholdStanding(of);
  const fresh = guarding.fresh(of);
  if (fresh === 0 && !stands) return;
  const rush = rushOf(course, of, fresh);
  const limit = run.guards[of];
  const judged = held.get(of) ?? judge(rush, limit);
  if (judged) {
    held.set(of, judged);
    guarding.withhold(of);
  }
  const found = judged ?? (stands ? standing : undefined);
  if (!found) return;
  // In later rounds a few join those who were told about.
  const told = { ...rush, fresh: guarding.countWithheld(of) };
  const fault = explainHeld(found, told, { limit, plan: plan?.hash ?? '' });
  course.tally.held({ kind, key: of, class: 'held', part: '', ...fault });
}

function rushOf(course: Course, of: GuardClass, fresh: number): Rush {
  const { run } = course;
  const { guarding } = run.snapshot;
  const since = run.clock.now() - weekMs;
  const wanted = (): number => knowledgeNamed(course.known, kind).sizes.wanted;
  return {
    guard: of,
    fresh,
    ...guarding.counts(of),
    week: guarding.sentSince(of, since, run.id),
    get of() {
      return (course.population[of] ??= of === 'delete' ? guarding.owned(kind) : wanted());
    },
    shape: () => ({ ...guarding.domains(of, kind), ids: guarding.ids(of, kind) }),
  };
}
