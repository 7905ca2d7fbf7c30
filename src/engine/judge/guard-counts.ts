/**
 * Counts what the guards judge by: the records that a percentage refers to, what the people that a
 * run would delete have in common, how many people the CRM states otherwise than before, and how
 * many of its opt-outs it no longer states. This is slow, so it works in parts.
 *
 * Opt-ins are withheld that would take back most of the opt-outs that the CRM stated, in all
 * channels, in one, or by one column. If a column of opt-outs comes empty, each record that stated
 * an opt-out withdraws it. In a long list, these people stay below every limit. It does not matter
 * whether they have a contact: nobody is created only to be opted out, so a first load leaves them
 * out.
 */
import { type Steps, eachPart, pagesOf } from '../context/work-in-parts.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { type GuardClass, guardRows, type PopulationName } from '../../domain/guard-classes.ts';
import type { RecordTypeName } from '../../domain/record.ts';
import {
  type ChangeVolume,
  type HoldReason,
  judge,
  mostOf,
  type Shape,
} from '../../domain/guards/guard-limits.ts';
import { type Meta, storedFact } from '../../store/database/meta-table.ts';
import { findingsOf, type RunResults } from '../context/run-results.ts';
import type { RunContext } from '../context/run-context.ts';
import type { FreshId, NotIn } from '../../store/holds/change-shape.ts';
import type { Counts } from '../../store/holds/judged-changes.ts';
import { type MirrorContacts, onlyKey } from '../context/mirror-context.ts';

/** Only people have a shape, because only they have a mail domain and a CRM id. */
const guardedKind = 'contact';

interface Whole {
  snapshot: Snapshot;
}

const pageOfIds = 500;

/** Returns what the people that a guard counts as new have in common. */
export function* shapeOf(run: Whole, guard: GuardClass): Steps<Shape> {
  const { guarded, shaping, stage } = run.snapshot;
  const domains = new Set<string>();
  yield* eachPart(guarded.ranges({ guard }), (range) => {
    for (const domain of shaping.domains(range)) domains.add(domain);
    return domains.size <= 1;
  });
  let domainShare: number | undefined;
  if (domains.size <= 1) {
    const { all, same } = yield* ownedOf(run, guardedKind, [...domains][0]);
    domainShare = all === 0 ? 0 : same / all;
  }
  shaping.clearIds();
  yield* eachPart(guarded.ranges({ guard }), (range) => {
    stage(() => shaping.addIds(range));
  });
  const rows = new Set<number>();
  let last: FreshId | undefined;
  let length = 0;
  const pages = pagesOf((before?: FreshId) => shaping.nextIds(before, pageOfIds));
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
  return { domainShare, rows: rows.add(length) };
}

/** Counts the records that we own, and how many of them have this mail domain. */
function* ownedOf(
  { snapshot: { shaping, ranges } }: Whole,
  kind: RecordTypeName,
  domain = '',
): Steps<{ all: number; same: number }> {
  const owned = { all: 0, same: 0 };
  yield* eachPart(ranges.ofRecorded(kind), (range) => {
    const { all, same } = shaping.owned({ ...range, domain });
    owned.all += all;
    owned.same += same;
  });
  return owned;
}

const fewTurns = 10;

interface Turns {
  toYes: number;
  toNo: number;
  of: number;
}

/**
 * Judges by how many people turn to yes in one run, and would be created or opted in (`toYes`), and
 * how many turn from yes to what the others stated before (`toNo`), of all who had a yes or no in
 * the CRM. Both are about as many if the smaller number is at least half of the larger.
 */
export function judgeSwap({ toYes, toNo, of }: Turns): HoldReason | undefined {
  if (toYes < fewTurns || 10 * toYes <= of) return undefined;
  const isSwap = 2 * Math.min(toYes, toNo) >= Math.max(toYes, toNo);
  return isSwap ? { by: 'swap', toYes, toNo } : undefined;
}

/**
 * Judges whether many people turn to yes in the CRM while about as many turn from yes to what they
 * had stated: a no, or nothing. All new changes that this concerns are withheld then.
 */
export function* judgeSwapped(
  run: Whole,
  contacts: MirrorContacts | undefined,
): Steps<HoldReason | undefined> {
  for (const other of ['opt_out', 'none'] as const) {
    const turns = yield* turnsOf(run, { other, parts: contacts?.channels ?? [] });
    const judged = turns.map(judgeSwap).find((found) => found);
    if (judged) return judged;
  }
  return undefined;
}

const optIns = 'opt_in' as const;

/** Counts who turns from `other` to yes and back, in all channels and in each, if many do. */
function* turnsOf(
  run: Whole,
  { other, parts }: { other: NotIn; parts: readonly string[] },
): Steps<Turns[]> {
  const { guarded, ranges, shaping } = run.snapshot;
  const toYes: CountsByPart = new Map();
  yield* eachPart(guarded.ranges({ guard: optIns }), (range) => {
    addCounts(toYes, shaping.turnedIn({ ...range, from: other }));
  });
  // Counting everybody is slow, and needed only where they are enough.
  if ([...toYes.values()].every((n) => n < fewTurns)) return [];
  const toNo: CountsByPart = new Map();
  const of: CountsByPart = new Map();
  yield* eachPart(ranges.ofStated(guardedKind), (range) => {
    addCounts(toNo, shaping.turnedOut({ ...range, parts, to: other }));
    addCounts(of, shaping.stating({ ...range, parts }));
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

/**
 * Judges by the share of people whose opt-out the CRM stated and who would be opted in: `fresh` of
 * them are neither approved nor released, including those held since an earlier run; `all` are all
 * of this run; `of` are all people whose opt-out the CRM had stated before the run. Returns
 * undefined if a person need not check them.
 */
export function judgeWithdrawn(
  guard: GuardClass,
  { fresh, all, of }: { fresh: number; all: number; of: number },
): HoldReason | undefined {
  const isHeld = fresh > 0 && all >= guardRows[guard].holdsWithdrawnFrom && 2 * all > of;
  return isHeld ? { by: 'withdrawn', people: all, of: Math.max(all, of) } : undefined;
}

/**
 * Judges the opt-ins of the people whose opt-out the CRM no longer states: whether these are most
 * of all such people. All channels together are judged first, then each of them, and each column
 * that stated opt-outs.
 */
export function* judgeWithdrawals(
  run: Whole,
  contacts: MirrorContacts | undefined,
  of: GuardClass,
): Steps<HoldReason | undefined> {
  const { guarded, ranges } = run.snapshot;
  const { withdrawals } = guarded;
  let fresh = 0;
  yield* eachPart(guarded.ranges({ guard: of }), (range) => {
    fresh += withdrawals.fresh(range);
  });
  if (fresh === 0) return undefined;
  const all: CountsByPart = new Map();
  yield* eachPart(guarded.askedRanges({ guard: of }), (range) => {
    addCounts(all, withdrawals.all(range));
  });
  const out: CountsByPart = new Map();
  const judged = () =>
    [...all]
      .map(([part, n]) => judgeWithdrawn(of, { fresh, all: n, of: out.get(part) ?? 0 }))
      .find((one) => one !== undefined);
  // Counting everybody is slow, and needed only where they are enough.
  if (!judged()) return undefined;
  const { recordType: name } = guardRows[of];
  const channels = contacts?.channels ?? [];
  yield* eachPart(ranges.ofStated(name), (range) => {
    addCounts(out, withdrawals.stated({ ...range, guard: of, parts: channels }));
  });
  return judged();
}

/** Withholds all opt-ins of these people. Everybody else is judged as usual. */
export function* holdWithdrawn({ snapshot }: Whole, of: GuardClass): Steps {
  const { guarded, stage } = snapshot;
  yield* eachPart(guarded.ranges({ guard: of }), (range) => {
    stage(() => void guarded.withdrawals.hold(range));
  });
}

const dayMs = 86_400_000;

const subscribed = storedFact<{ at: number; n: number }>(
  'subscribed',
  'the number of subscribed people',
);

/** How many records the guards' percentages refer to. */
export type Populations = ReturnType<typeof populationsOf>;

/**
 * Counts the records that the percentages of the guard classes refer to, each class once in a run:
 * `before` has been counted.
 */
export function populationsOf(
  { run, parts, known }: RunResults,
  before: Readonly<Partial<Record<GuardClass, number>>>,
) {
  const counted = { ...before };
  const { shaping, meta, transaction } = run.snapshot;

  /** Counts the subscribed people that the class does not change in this run, up to `enough`. */
  function* others(guard: GuardClass, enough = Infinity): Steps<number> {
    const { recordType: name } = guardRows[guard];
    const channels = name === 'contact' ? (parts.contacts?.channels ?? []) : [];
    let n = 0;
    yield* eachPart(shaping.spansOfKnown(name), (range) => {
      n += shaping.subscribed({ ...range, guard, parts: channels });
      return n < enough;
    });
    return n;
  }

  /**
   * `asked` is the number of the records that this run would change.
   *
   *   owned        recorded as ours
   *   known        ours, including those adopted by this run
   *   subscribed   ours, including those adopted by this run, and subscribed in at least one
   *                channel of the mirror: as the platform shows it, or as recorded if nothing was
   *                listed. Counted before the run's own opt-outs. A run about one person uses a
   *                count from the last day, if any
   *   wanted       in the source, and asking for something
   */
  const populations: Readonly<
    Record<PopulationName, (of: GuardClass, asked: number) => Steps<number>>
  > = {
    *owned(of) {
      return (yield* ownedOf(run, guardRows[of].recordType)).all;
    },
    *known(of) {
      const { recordType: kind } = guardRows[of];
      let n = 0;
      yield* eachPart(shaping.spansOfKnown(kind), (range) => {
        n += shaping.known(range);
      });
      return n;
    },
    *subscribed(of, asked) {
      const at = run.clock.now();
      const kept = onlyKey(run) === undefined ? undefined : subscribed.read(meta);
      if (kept && Math.abs(at - kept.at) < dayMs) return kept.n;
      const n = asked + (yield* others(of));
      if (run.writes) transaction(() => subscribed.write(meta, { at, n }));
      return n;
    },
    // eslint-disable-next-line require-yield
    *wanted(of) {
      return findingsOf(known, guardRows[of].recordType).sizes.wanted;
    },
  };

  return {
    counted,
    others,
    *count(of: GuardClass, asked: number): Steps<number> {
      return (counted[of] ??= yield* populations[guardRows[of].population](of, asked));
    },
  };
}

/**
 * Opt-outs caused by events and by `sync --person` that exceeded the limit; `at` is in milliseconds
 * since the epoch.
 */
export interface PastLimit {
  at: number;
  people: number;
  most: number;
}

const optOutsPastLimit = storedFact<PastLimit>(
  'opt-outs past the limit',
  'the opt-outs past the limit',
);

/** Records that opt-outs which are never held have exceeded the limit. */
export function noteVolume(run: RunContext, of: GuardClass, asked: ChangeVolume): void {
  const limit = run.guards[of];
  if (!run.writes || !judge(asked, limit)) return;
  const { meta, transaction } = run.snapshot;
  const people = asked.week + asked.unapproved;
  const note: PastLimit = { at: run.clock.now(), people, most: 2 * mostOf(asked, limit) };
  transaction(() => optOutsPastLimit.write(meta, note));
}

/** Returns the record of the last day, or undefined if there is none. */
export function pastLimit(meta: Meta, now: number): PastLimit | undefined {
  const kept = optOutsPastLimit.read(meta);
  return kept && Math.abs(now - kept.at) < dayMs ? kept : undefined;
}
