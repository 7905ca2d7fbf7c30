/**
 * Withholds opt-ins that would take back most of the opt-outs that the CRM stated. If a column of
 * opt-outs comes empty, each record that stated an opt-out withdraws it. In a long list, these
 * people stay below every limit.
 */
import { guardRows, type GuardClass } from '../../domain/guard-classes.ts';
import type { HoldReason } from '../report/guard-rules.ts';
import type { RunState } from '../context/run-state.ts';
import { eachPart } from '../context/work-in-parts.ts';
import { statedOutOf } from './guard-population.ts';

/** People whose opt-out the CRM stated and who would be opted in again. */
interface Withdrawn {
  /** Those who are neither approved nor released, including those held since an earlier run. */
  fresh: number;
  /** All of them in this run, including those approved or released. */
  all: number;
  /** All people whose opt-out the CRM had stated before the run. */
  of: number;
}

/** Judges by the share of such people. Returns undefined if a person need not check them. */
export function judgeWithdrawn(
  guard: GuardClass,
  { fresh, all, of }: Withdrawn,
): HoldReason | undefined {
  const isHeld = fresh > 0 && all >= guardRows[guard].holdsWithdrawnFrom && 2 * all > of;
  return isHeld ? { by: 'withdrawn', people: all, of: Math.max(all, of) } : undefined;
}

/**
 * Withholds all opt-ins of the people whose opt-out the CRM no longer states, if these are most of
 * all such people. Everybody else is judged as usual.
 */
export function* holdWithdrawn(context: RunState, of: GuardClass): Generator<undefined> {
  if (guardRows[of].holdsWithdrawnFrom === Infinity) return;
  const { guarded, stage } = context.run.snapshot;
  const { withdrawals } = guarded;
  const { withdrawn } = context.review;
  if (!withdrawn.has(of)) {
    const people = { fresh: 0, all: 0, of: 0 };
    yield* eachPart(guarded.ranges(of), (range) => {
      people.fresh += withdrawals.fresh({ ...range, guard: of });
    });
    if (people.fresh === 0) return;
    yield* eachPart(guarded.askedRanges(of), (range) => {
      people.all += withdrawals.all({ ...range, guard: of });
    });
    // Counting everybody is slow, and needed only where they are enough.
    if (!judgeWithdrawn(of, people)) return;
    const judged = judgeWithdrawn(of, { ...people, of: yield* statedOutOf(context, of) });
    if (!judged) return;
    withdrawn.set(of, judged);
  }
  yield* eachPart(guarded.ranges(of), (range) => {
    stage(() => withdrawals.withhold({ ...range, guard: of }));
  });
}
