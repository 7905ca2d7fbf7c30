/**
 * Finds what the people that a run would delete have in common, how many people the CRM states
 * otherwise than before, and how many of its opt-outs it no longer states. This is slow, so it
 * works in parts.
 *
 * Opt-ins are withheld that would take back most of the opt-outs that the CRM stated, in all
 * channels, in one, or by one column. If a column of opt-outs comes empty, each record that stated
 * an opt-out withdraws it. In a long list, these people stay below every limit. It does not matter
 * whether they have a contact: nobody is created only to be opted out, so a first load leaves them
 * out.
 */
import { type GuardClass, guardNames, guardRows } from '../../domain/guard-classes.ts';
import type { RecordTypeName } from '../../domain/record.ts';
import type { HoldReason, Shape } from '../report/guard-rules.ts';
import type { FreshId, NotIn } from '../../store/guards/guarded-shape.ts';
import type { Counts } from '../../store/guards/guarded-changes.ts';
import { onlyKey } from '../context/mirror-context.ts';
import type { RunContext } from '../context/run-context.ts';
import type { RunState } from '../context/run-state.ts';
import { eachPart, pagesOf } from '../context/work-in-parts.ts';

/** The only record type that has a shape, because only people have a mail domain and a CRM id. */
const guardedKind = 'contact';

type Whole = Pick<RunContext, 'snapshot'>;

const pageOfIds = 500;

/** Returns what the people that a guard counts as new have in common. */
export function* shapeOf(run: Whole, guard: GuardClass): Generator<undefined, Shape> {
  const domainShare = yield* domainShareOf(run, guard);
  return { domainShare, rows: yield* rowsOf(run, guard) };
}

/** Counts the records that we own, and how many of them have this mail domain. */
export function* ownedOf(
  { snapshot: { shaping, ranges } }: Whole,
  kind: RecordTypeName,
  domain = '',
): Generator<undefined, { all: number; same: number }> {
  const owned = { all: 0, same: 0 };
  yield* eachPart(ranges.ofRecorded(kind), (range) => {
    const { all, same } = shaping.owned(kind, { range, domain });
    owned.all += all;
    owned.same += same;
  });
  return owned;
}

function* domainShareOf(run: Whole, guard: GuardClass): Generator<undefined, number | undefined> {
  const { guarded, shaping } = run.snapshot;
  const domains = new Set<string>();
  yield* eachPart(guarded.ranges(guard), (range) => {
    for (const domain of shaping.domains({ ...range, guard })) domains.add(domain);
    return domains.size <= 1;
  });
  if (domains.size > 1) return undefined;
  const { all, same } = yield* ownedOf(run, guardedKind, [...domains][0]);
  return all === 0 ? 0 : same / all;
}

function* rowsOf(run: Whole, guard: GuardClass): Generator<undefined, Set<number>> {
  const { guarded, shaping, stage } = run.snapshot;
  shaping.clearIds();
  yield* eachPart(guarded.ranges(guard), (range) => {
    stage(() => shaping.addIds({ ...range, guard }));
  });
  const rows = new Set<number>();
  let last: FreshId | undefined;
  let length = 0;
  const pages = pagesOf((last?: FreshId) => shaping.nextIds(last, pageOfIds));
  yield* eachPart(pages, (page) => {
    for (const id of page) {
      if (last && shaping.isBetween(guardedKind, last, id)) {
        rows.add(length);
        length = 0;
      }
      length += 1;
      last = id;
    }
  });
  return rows.add(length);
}

/** How many people the CRM states otherwise than before in one run. */
interface Turns {
  /** People who turn to yes, and would be created or opted in. */
  toYes: number;
  /** People who turn from yes to what the others stated before. */
  toNo: number;
  /** People who had a yes or no in the CRM. */
  of: number;
}

const fewTurns = 10;

/**
 * Judges by how many people turn to yes, and from it. Both are about as many if the smaller number
 * is at least half of the larger.
 */
export function judgeSwap({ toYes, toNo, of }: Turns): HoldReason | undefined {
  if (toYes < fewTurns || 10 * toYes <= of) return undefined;
  const isSwap = 2 * Math.min(toYes, toNo) >= Math.max(toYes, toNo);
  return isSwap ? { by: 'swap', toYes, toNo } : undefined;
}

/**
 * Withholds the new changes of all classes that a swap concerns, if many people turn to yes in the
 * CRM while about as many turn from yes to what these had stated: a no, or nothing. Call it before
 * the limits of these classes are applied.
 */
export function* holdSwapped(context: RunState): Generator<undefined> {
  const { run, review } = context;
  const swapped = guardNames.filter((of) => guardRows[of].shapes.includes('swap'));
  const unheld = swapped.filter((of) => !review.held.has(of));
  if (run.undo || onlyKey(run) !== undefined || unheld.length === 0) return;
  for (const other of ['opt_out', 'none'] as const) {
    const judged = (yield* turnsOf(context, other)).map(judgeSwap).find((found) => found);
    if (!judged) continue;
    for (const of of unheld) review.held.set(of, judged);
    return;
  }
}

const optIns = 'opt_in';

/**
 * Counts who turns from `other` to yes and back, in all channels together and in each. Returns
 * nothing if few turn to yes.
 */
function* turnsOf(context: RunState, other: NotIn): Generator<undefined, Turns[]> {
  const { guarded, shaping, stated } = context.run.snapshot;
  const toYes: CountsByPart = new Map();
  yield* eachPart(guarded.ranges(optIns), (range) => {
    addCounts(toYes, shaping.turnedIn({ ...range, guard: optIns }, other));
  });
  // Counting everybody is slow, and needed only where they are enough.
  if ([...toYes.values()].every((n) => n < fewTurns)) return [];
  const toNo: CountsByPart = new Map();
  const of: CountsByPart = new Map();
  const parts = channelsOf(context, optIns);
  yield* eachPart(stated.ranges(guardedKind), (range) => {
    addCounts(toNo, shaping.turnedOut(guardedKind, { range, parts, to: other }));
    addCounts(of, shaping.stating(guardedKind, { range, parts }));
  });
  return [...toYes].map(([part, n]) => ({
    toYes: n,
    toNo: toNo.get(part) ?? 0,
    of: of.get(part) ?? 0,
  }));
}

/** Numbers of people, by channel; null is all channels together, where each person counts once. */
type CountsByPart = Map<string | null, number>;

/** Adds the numbers of one range, whose people are in no other range. */
function addCounts(sums: CountsByPart, counts: Counts): void {
  for (const { part, n } of counts) sums.set(part, (sums.get(part) ?? 0) + n);
}

/** Returns the channels of the record type that a class is about. */
export function channelsOf({ parts }: RunState, guard: GuardClass): readonly string[] {
  const { recordType: name } = guardRows[guard];
  return parts.find(({ type }) => type.name === name)?.type.capabilities.channels?.names ?? [];
}

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
