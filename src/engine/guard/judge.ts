/**
 * Judges which planned changes are sent, wait for somebody, or are left to a later run. The list
 * `reasons` says why a change may wait, in the order in which the reasons are tried: first those
 * about one class after the other, then those about the whole plan.
 *
 * What is held is neither journaled nor sent, and every run plans it again. It is stored with the
 * plan that showed it, until a person approves it or, for stated opt-outs, until the holding time
 * is over. It is reported as a problem of the run, with the way to approve it.
 */
import { type Steps, eachPart } from '../context/work-in-parts.ts';
import { type GuardClass, guardNames, guardRows, timedGuards } from '../../domain/guard-classes.ts';
import {
  type ChangeVolume,
  hasShape,
  type HoldReason,
  isFew,
  judge as judgeVolume,
  judgeShape,
  weekMs,
} from '../report/guard-rules.ts';
import { withoutYielding, yielding } from '../plan/commit-plan.ts';
import { type RunState, findingsOf, kindsIn } from '../context/run-state.ts';
import { isFirstLoad } from '../context/run-context.ts';
import {
  approveThisPlan,
  beginHolds,
  endsOf,
  hashToHold,
  keepAsked,
  keepReason,
  storedReasons,
} from './holds.ts';
import { askRules, type AskedReason, isClosedNow, judgeRules } from './plan-rules.ts';
import { onlyKey } from '../context/mirror-context.ts';
import { noteVolume, othersOf, populationOf } from './guard-population.ts';
import { holdSwapped, shapeOf, holdWithdrawn } from './change-shape.ts';
import { deferToCanaries, failedCanary, passApproved } from './canaries.ts';
import type { Guarded } from '../../store/database/key-range.ts';
import { explainHeld, whyOf } from '../report/guard-text.ts';

/** Judges one round of decisions, and yields to other tasks in between. */
export async function judgePlan(state: RunState): Promise<void> {
  await beginHolds(state);
  await yielding(state.run, steps(state, 'run'));
}

/**
 * Judges, without yielding, the new decision for a record whose creation was acknowledged. Opt-outs
 * from channels that came with the creation, and template fields that only an update can set, count
 * as part of the creation.
 */
export function judgeAtOnce(state: RunState): void {
  withoutYielding(steps(state, 'creation'));
}

/** One class of changes, in the plan of one round. */
interface Judging {
  state: RunState;
  of: GuardClass;
  cause: 'run' | 'creation';
  /** Whether the class is counted here and never held. */
  neverHolds: boolean;
  /** Whether the plan has changes of the class. */
  isPlanned: boolean;
  /** Whether anything waits from an earlier run. */
  hasHolds: boolean;
  /** Whether some of that waits in this plan, or would if this run had read it. */
  stands: boolean;
  /** Whether anything asks or defers by configuration. */
  isRuled: boolean;
  /** Why changes of the class are held now, if any are. */
  found: HoldReason | undefined;
  /** What rules and canaries ask about the class. */
  asked: AskedReason | undefined;
  volume: ChangeVolume;
}

/**
 * A reason to hold a change. `ends`: by a decision of a person, when its time is over, or when the
 * run that found it has ended. Those about a class come first, then those about the whole plan, and
 * last what leaves the rest to a later time.
 */
interface Reason {
  id: string;
  ends: 'decision' | 'time' | 'run';
  about: 'class' | 'plan' | 'time';
  applies(judging: Judging): boolean;
  judge(judging: Judging): Steps;
}

const reasons: readonly Reason[] = [
  {
    id: 'rejected',
    ends: 'decision',
    about: 'class',
    // Nobody can reject an opt-out that the CRM states.
    applies: ({ state: { run }, of, hasHolds }) => hasHolds && !timedGuards.has(of) && !run.undo,
    judge: (judging) => eachRange(judging, ({ reject }, range) => reject(range)),
  },
  {
    id: 'opt-out held',
    ends: 'run',
    about: 'class',
    applies: ({ of }) => guardRows[of].withoutHeldOf !== undefined,
    judge: (judging) =>
      eachRange(judging, ({ keepOut }, range) => {
        const by = guardRows[judging.of].withoutHeldOf;
        if (by) keepOut({ ...range, by });
      }),
  },
  {
    id: 'approved',
    ends: 'run',
    about: 'class',
    applies: ({ state: { review }, cause, hasHolds }) =>
      hasHolds || review.rounds > 0 || cause === 'creation',
    *judge(judging) {
      const { state, of } = judging;
      // What was approved before a canary failed does not count.
      const since = failedCanary(state.review, of)?.approvalsGiven ?? -1;
      const approvals = state.approvals.filter((one) => one.number > since).map(({ id }) => id);
      const undoes = state.run.undo?.run ?? '';
      yield* eachRange(judging, (guarded, range) => {
        guarded.follow(range);
        if (approvals.length > 0) guarded.approve({ ...range, approvals, undoes });
      });
    },
  },
  {
    id: 'withdrawn',
    ends: 'decision',
    about: 'class',
    applies: ({ of }) => guardRows[of].holdsWithdrawnFrom < Infinity,
    *judge(judging) {
      yield* holdWithdrawn(judging.state, judging.of);
      judging.found = judging.state.review.withdrawn.get(judging.of);
    },
  },
  { id: 'waiting', ends: 'time', about: 'class', applies: () => true, judge: judgeWaiting },
  { id: 'limit', ends: 'decision', about: 'class', applies: () => true, judge: judgeLimit },
  {
    id: 'rule',
    ends: 'decision',
    about: 'plan',
    applies: ({ cause, isRuled }) => cause === 'run' && isRuled,
    *judge(judging) {
      const { state, of } = judging;
      const asked = yield* judgeRules(state, of);
      judging.asked = asked;
      if (!asked || state.review.held.has(of)) return;
      judging.found = state.review.withdrawn.get(of) ?? asked;
    },
  },
  {
    id: 'window',
    ends: 'time',
    about: 'time',
    applies: ({ state, of, cause }) => cause === 'run' && isClosedNow(state.run, of),
    judge: (judging) =>
      eachRange(judging, ({ defer }, range) => void defer({ ...range, by: 'window' })),
  },
  {
    id: 'canary',
    ends: 'time',
    about: 'time',
    applies: ({ state: { run }, cause }) => cause === 'run' && run.canary !== undefined,
    judge: ({ state, of }) => deferToCanaries(state, of),
  },
];

function* steps(state: RunState, cause: Judging['cause']): Steps {
  const { run, review } = state;
  const { guarded, holds } = run.snapshot;
  const kinds = kindsIn(state);
  const classes = guardNames.filter((of) => kinds.includes(guardRows[of].recordType));
  const isRuled = run.rules.length > 0 || run.windows.length > 0 || run.canary !== undefined;
  const isAboutOne = cause === 'creation' || onlyKey(run) !== undefined;
  const hasHolds = holds.isAny();
  const planned = guarded.classes();
  const all = classes.map((of): Judging => {
    const neverHolds = isAboutOne && guardRows[of].exempt.includes('single run');
    const volume = { guard: of, fresh: 0, all: 0, unapproved: 0, week: 0, of: 0 };
    const nothing = { stands: false, found: undefined, asked: undefined };
    const isPlanned = planned.includes(of);
    return { state, of, cause, neverHolds, isPlanned, hasHolds, isRuled, ...nothing, volume };
  });
  if (cause === 'run') yield* holdSwapped(state);
  for (const judging of all) {
    yield* tryReasons([judging], 'class');
    if (!isRuled) yield* pass(judging);
  }
  if (cause === 'run') {
    passApproved(state);
    yield* askRules(state, classes);
  }
  yield* tryReasons(all, 'plan');
  yield* tryReasons(all, 'time');
  if (cause === 'run' && run.writes && onlyKey(run) === undefined) {
    const asked = all.flatMap((one): [GuardClass, string][] =>
      one.asked ? [[one.of, one.asked.says]] : [],
    );
    keepAsked(run, new Map(asked));
  }
  if (isRuled) for (const judging of all) yield* pass(judging);
  if (review.rounds === 0) review.heldAs = yield* hashToHold(state);
  for (const judging of all) {
    if (!judging.found) continue;
    const n = guarded.countHeld(judging.of);
    if (n > 0 || judging.stands) reportHeld(judging, judging.found, n);
  }
  if (review.rounds === 0 && (yield* approveThisPlan(state))) {
    yield* tryReasons(all, 'time');
    for (const judging of all) yield* pass(judging);
    passApproved(state);
  }
  review.rounds += 1;
}

function* tryReasons(all: readonly Judging[], kind: Reason['about']): Steps {
  for (const reason of reasons.filter(({ about }) => about === kind))
    for (const judging of all) if (reason.applies(judging)) yield* reason.judge(judging);
}

type Ranged = (guarded: RunState['run']['snapshot']['guarded'], range: Guarded) => void;

function* eachRange({ state, of: guard, isPlanned }: Judging, work: Ranged): Steps {
  if (!isPlanned) return;
  const { snapshot } = state.run;
  const { guarded } = snapshot;
  yield* eachPart(guarded.ranges(guard), (range) => {
    snapshot.stage(() => work(guarded, { ...range, guard }));
  });
}

function pass(judging: Judging): Steps {
  return eachRange(judging, (guarded, range) => void guarded.pass(range));
}

/**
 * Marks the changes of a class that pass regardless of their number, and holds what an earlier run
 * held. Counts how many people or templates are new.
 */
function* judgeWaiting(judging: Judging): Steps {
  const { state, of, cause, neverHolds, hasHolds, volume } = judging;
  const { run, review } = state;
  const isTimed = timedGuards.has(of);
  // What a rule holds may be exempt from the limit, or be stated by the CRM later.
  const canAsk = (run.rules.length > 0 || run.canary !== undefined) && !isTimed;
  const isAsked = canAsk && storedReasons(run.snapshot.meta)[of]?.asked !== undefined;
  const { exempt } = guardRows[of];
  const isExempt =
    (exempt.includes('creation') && cause === 'creation') ||
    (exempt.includes('first load') && isFirstLoad(run) && !review.held.has(of));
  yield* eachRange(judging, (guarded, range) => {
    if (isExempt) guarded.exempt(range);
    if (isTimed && !neverHolds) {
      if (hasHolds) guarded.expire({ ...range, ...endsOf(run, of) });
      guarded.excuse({ ...range, run: run.id });
    }
    if (!neverHolds && hasHolds) {
      const hold = isAsked ? guarded.holdExempt : guarded.holdStanding;
      judging.stands = hold(range) > 0 || judging.stands;
    }
    volume.fresh += guarded.fresh(range);
  });
  if (isTimed && !neverHolds && hasHolds) {
    review.unplanned = yield* countUnplanned(state, of);
    judging.stands ||= review.unplanned > 0;
  } else if (isTimed && !neverHolds) review.unplanned = 0;
}

/** Counts the people with held opt-outs that an incremental reading did not contain. */
function* countUnplanned(state: RunState, of: GuardClass): Steps<number> {
  const { holds } = state.run.snapshot;
  const { whole, certified } = findingsOf(state, guardRows[of].recordType);
  let n = 0;
  if (whole && certified) return n;
  yield* eachPart(holds.ranges(of), (range) => {
    n += holds.countUnplanned({ ...range, guard: of });
  });
  return n;
}

/** Holds what is new of a class if it is too much, or looks like an accident. */
function* judgeLimit(judging: Judging): Steps {
  const { state, of, neverHolds, stands } = judging;
  const { run, review } = state;
  const { fresh } = judging.volume;
  if (neverHolds) {
    if (fresh > 0) noteVolume(run, of, yield* volumeOf(state, of, fresh));
    judging.found = undefined;
    return;
  }
  const withdrawn = judging.found;
  if (fresh === 0 && !stands && !withdrawn) return;
  const limit = run.guards[of];
  const volume = yield* volumeOf(state, of, fresh);
  judging.volume = volume;
  let found = review.held.get(of) ?? judgeVolume(volume, limit);
  if (!found && hasShape(volume, limit)) found = judgeShape(yield* shapeOf(run, of));
  if (found) {
    review.held.set(of, found);
    yield* eachRange(judging, (guarded, range) => void guarded.holdNew(range));
  }
  // What an earlier run held waits until it is approved or no longer wanted.
  const before = storedReasons(run.snapshot.meta)[of];
  if (stands) found ??= { by: 'earlier run', says: before?.asked ?? before?.first };
  // What was found in a canary tells the approver more than a number does.
  const failed = failedCanary(review, of);
  if (found && failed) found = { by: 'canary', says: failed.says };
  judging.found = withdrawn ?? found;
}

function* volumeOf(state: RunState, of: GuardClass, fresh: number): Steps<ChangeVolume> {
  const { run } = state;
  const { held } = state.review;
  const { guarded } = run.snapshot;
  const volume = { guard: of, fresh, all: 0, unapproved: 0, week: 0 };
  // Stated opt-outs that are held or approved do not count against later ones.
  const leavesOut = !guardRows[of].countsHeld && onlyKey(run) === undefined;
  let asked = 0;
  yield* eachPart(guarded.askedRanges(of), (range) => {
    const { all, unapproved, judged } = guarded.counts({ ...range, guard: of });
    asked += all;
    volume.all += leavesOut ? judged : all;
    volume.unapproved += leavesOut ? judged : unapproved;
  });
  const since = run.clock.now() - weekMs;
  volume.week = guarded.sentSince({ guard: of, since, run: run.id });
  const isCounted = held.has(of) || !isFew(volume, run.guards[of]);
  return {
    ...volume,
    isEverybody: volume.all >= guardRows[of].holdsAllFrom && (yield* othersOf(state, of, 1)) === 0,
    of: isCounted ? yield* populationOf(state, of, asked) : 0,
  };
}

/** Reports the `n` held records of a class as a problem, and stores why a hold begins. */
function reportHeld({ state, of, volume }: Judging, found: HoldReason, n: number): void {
  const { run, tally, review } = state;
  const { holds } = run.snapshot;
  const limit = run.guards[of];
  if (run.writes && !run.undo && found.by !== 'earlier run')
    keepReason(run, of, whyOf(found, volume, limit));
  const { heldAs } = review;
  const isTimed = timedGuards.has(of);
  // A later round may hold a few more changes; the report states the total.
  const total = { ...volume, fresh: n + (isTimed ? review.unplanned : 0) };
  // An earlier plan also shows the people that this run has not read. A plan that no run has held
  // cannot be approved, and a later round adds nothing to the plan of the run.
  const current = holds.current().filter(({ undoes }) => undoes === null || run.undo);
  const isFirst = review.rounds === 0;
  const isToKeep = run.writes && isFirst;
  const isKept = current.some((one) => one.plan === heldAs && (isFirst || one.held[of] > 0));
  const isOwn = (isToKeep || isKept) && total.fresh === n;
  const [largest] = current
    .filter(({ held }) => held[of] > 0)
    .toSorted((a, b) => b.held[of] - a.held[of]);
  const plan = isOwn ? heldAs : largest?.plan;
  const since = holds.oldest(of, endsOf(run, of)) ?? run.clock.now();
  const fault = explainHeld(found, total, {
    limit,
    plan: plan ?? (isToKeep ? heldAs : undefined),
    signs: run.approvers !== undefined,
    undoes: run.undo?.run,
    until: isTimed && limit.holdForMs !== undefined ? since + limit.holdForMs : undefined,
  });
  const about = { kind: guardRows[of].recordType, key: of, class: 'held', part: '' } as const;
  tally.held({ ...about, cause: 'awaiting-approval', ...fault });
}
