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
import type { Guarded } from '../snapshot/guarding.ts';
import { guardClasses, guardedKind as kind } from './withheld.ts';

/** What is held stays held, in whichever run, until it is approved or no longer wanted. */
const standing: Held = { by: 'standing' };

/** One round of decisions; of very many, others have their turn meanwhile. */
export async function guard(course: Course): Promise<void> {
  for (const _ of steps(course)) await course.run.clock.sleep(0);
}

/** A record that was decided upon again. */
export function guardNow(course: Course): void {
  Array.from(steps(course));
}

function* steps(course: Course): Generator<undefined> {
  leaveToDelete(course);
  for (const of of guardClasses) {
    yield* guardOne(course, of);
    yield* eachSpan(course, of, course.run.snapshot.guarding.pass);
  }
  if (course.rounds === 0 && approveOwn(course)) {
    for (const of of guardClasses) yield* eachSpan(course, of, course.run.snapshot.guarding.pass);
  }
  course.rounds += 1;
}

function* eachSpan(
  { run: { snapshot } }: Course,
  guard: GuardClass,
  work: (guarded: Guarded) => void,
): Generator<undefined> {
  for (const span of snapshot.guarding.spans(guard)) {
    snapshot.stage(() => work({ ...span, guard }));
    yield;
  }
}

function* guardOne(course: Course, of: GuardClass): Generator<undefined> {
  const { run, held, plan, approvals } = course;
  const { guarding } = run.snapshot;
  const isExempt = of === 'opt_in' && isFirstLoad(run);
  let stands = false;
  let fresh = 0;
  yield* eachSpan(course, of, (guarded) => {
    guarding.follow(guarded);
    for (const approval of approvals) guarding.approve(approval, guarded);
    if (isExempt) guarding.exempt(guarded);
    stands = guarding.withholdStanding(guarded) || stands;
    fresh += guarding.fresh(guarded);
  });
  if (fresh === 0 && !stands) return;
  const rush = rushOf(course, of, fresh);
  const limit = run.guards[of];
  const judged = held.get(of) ?? judge(rush, limit);
  if (judged) {
    held.set(of, judged);
    yield* eachSpan(course, of, guarding.withhold);
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
