/**
 * Finds what the people that a run would delete have in common, and how many people the CRM states
 * otherwise than before. This is slow, so it works in parts.
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
export type CountsByPart = Map<string | null, number>;

/** Adds the numbers of one range, whose people are in no other range. */
export function addCounts(sums: CountsByPart, counts: Counts): void {
  for (const { part, n } of counts) sums.set(part, (sums.get(part) ?? 0) + n);
}

/** Returns the channels of the record type that a class is about. */
export function channelsOf({ parts }: RunState, guard: GuardClass): readonly string[] {
  const { recordType: name } = guardRows[guard];
  return parts.find(({ type }) => type.name === name)?.type.capabilities.channels?.names ?? [];
}
