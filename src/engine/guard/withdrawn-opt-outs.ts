/**
 * Withholds opt-ins that would take back most of the opt-outs that the CRM stated, in all channels,
 * in one, or by one column. If a column of opt-outs comes empty, each record that stated an opt-out
 * withdraws it. In a long list, these people stay below every limit. It does not matter whether
 * they have a contact: nobody is created only to be opted out, so a first load leaves them out.
 */
import { guardRows, type GuardClass } from '../../domain/guard-classes.ts';
import type { HoldReason } from '../report/guard-rules.ts';
import type { RunState } from '../context/run-state.ts';
import { eachPart } from '../context/work-in-parts.ts';
import { addCounts, channelsOf, type CountsByPart } from './change-shape.ts';

/** People whose opt-out the CRM stated and who would be opted in. */
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
    let fresh = 0;
    yield* eachPart(guarded.ranges(of), (range) => {
      fresh += withdrawals.fresh({ ...range, guard: of });
    });
    if (fresh === 0) return;
    const all: CountsByPart = new Map();
    yield* eachPart(guarded.askedRanges(of), (range) => {
      addCounts(all, withdrawals.all({ ...range, guard: of }));
    });
    // Counting everybody is slow, and needed only where they are enough.
    if (!mostOf(of, { fresh, all, stated: new Map() })) return;
    const judged = mostOf(of, { fresh, all, stated: yield* statedOut(context, of) });
    if (!judged) return;
    withdrawn.set(of, judged);
  }
  yield* eachPart(guarded.ranges(of), (range) => {
    stage(() => withdrawals.withhold({ ...range, guard: of }));
  });
}

interface Counted {
  fresh: number;
  all: CountsByPart;
  stated: CountsByPart;
}

/** Judges all channels together, then each of them, and each column that stated opt-outs. */
function mostOf(guard: GuardClass, { fresh, all, stated }: Counted): HoldReason | undefined {
  for (const [part, n] of all) {
    const judged = judgeWithdrawn(guard, { fresh, all: n, of: stated.get(part) ?? 0 });
    if (judged) return judged;
  }
  return undefined;
}

/** Counts the people whose opt-out the CRM had stated before this run. */
function* statedOut(context: RunState, guard: GuardClass): Generator<undefined, CountsByPart> {
  const { stated, guarded } = context.run.snapshot;
  const { recordType: name } = guardRows[guard];
  const channels = channelsOf(context, guard);
  const counts: CountsByPart = new Map();
  yield* eachPart(stated.ranges(name), (range) => {
    addCounts(counts, guarded.withdrawals.stated(name, { ...range, guard }, channels));
  });
  return counts;
}
