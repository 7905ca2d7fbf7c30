/**
 * Puts what was decided before the guards: what they hold is neither journaled nor sent, is planned
 * again by every run, and is kept under the hash of the plan that showed it until a person approves
 * it.
 */
import type { GuardClass } from '../model/change.ts';
import { hasShape, isFew, judge, judgeShape, weekMs, type Held, type Rush } from '../plan/guard.ts';
import { explainHeld } from '../plan/guard-words.ts';
import { approveOwn } from './approval.ts';
import { atOnce, inTurns } from './commit.ts';
import type { Course } from './course.ts';
import { isFirstLoad } from './first-load.ts';
import { ownedOf, shapeOf } from './shape.ts';
import { knowledgeNamed } from './states.ts';
import { eachOf } from './throughout.ts';
import type { Guarded } from '../snapshot/guarding.ts';
import { guardClasses, guardedKind as kind } from './withheld.ts';

/** What is held stays held, in whichever run, until it is approved or no longer wanted. */
const standing: Held = { by: 'standing' };

/** One round of decisions; of very many, others have their turn meanwhile. */
export async function guard(course: Course): Promise<void> {
  await inTurns(course.run, steps(course));
}

/** A record that was decided upon again. */
export function guardNow(course: Course): void {
  atOnce(steps(course));
}

function* steps(course: Course): Generator<undefined, void> {
  for (const of of guardClasses) {
    yield* guardOne(course, of);
    yield* eachSpan(course, of, course.run.snapshot.guarding.pass);
  }
  if (course.rounds === 0 && (yield* approveOwn(course))) {
    for (const of of guardClasses) yield* eachSpan(course, of, course.run.snapshot.guarding.pass);
  }
  course.rounds += 1;
}

function* eachSpan(
  { run: { snapshot } }: Course,
  guard: GuardClass,
  work: (guarded: Guarded) => void,
): Generator<undefined> {
  yield* eachOf(snapshot.guarding.spans(guard), (span) => {
    snapshot.stage(() => work({ ...span, guard }));
  });
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
  const limit = run.guards[of];
  const rush = yield* rushOf(course, of, fresh);
  let judged = held.get(of) ?? judge(rush, limit);
  if (!judged && hasShape(rush, limit)) judged = judgeShape(yield* shapeOf(run, of));
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

function* rushOf(course: Course, of: GuardClass, fresh: number): Generator<undefined, Rush> {
  const { run, held } = course;
  const { guarding } = run.snapshot;
  const rush = { guard: of, fresh, all: 0, unapproved: 0, week: 0 };
  yield* eachOf(guarding.askedSpans(of), (span) => {
    const { all, unapproved } = guarding.counts({ ...span, guard: of });
    rush.all += all;
    rush.unapproved += unapproved;
  });
  rush.week = guarding.sentSince(of, run.clock.now() - weekMs, run.id);
  const isCounted = held.has(of) || !isFew(rush, run.guards[of]);
  return { ...rush, of: isCounted ? yield* populationOf(course, of) : 0 };
}

/** How many people a class is about: counted once. */
function* populationOf(course: Course, of: GuardClass): Generator<undefined, number> {
  const { run, population, known } = course;
  if (of === 'delete') population.delete ??= (yield* ownedOf(run, kind)).all;
  else population.opt_in ??= knowledgeNamed(known, kind).sizes.wanted;
  return population[of] ?? 0;
}
