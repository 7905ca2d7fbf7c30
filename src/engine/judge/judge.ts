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
import {
  type GuardClass,
  guardNames,
  guardRows,
  type Limit,
  timedGuards,
} from '../../domain/guard-classes.ts';
import type { Fault } from '../../domain/record.ts';
import {
  type ChangeVolume,
  hasShape,
  type HoldReason,
  isFew,
  judge as judgeVolume,
  judgeShape,
  mostOf,
  weekMs,
} from '../../domain/guards/guard-limits.ts';
import { withoutYielding, yielding } from '../decide/commit-plan.ts';
import { findingsOf, kindsIn, type RunResults, type Verdict } from '../context/run-results.ts';
import { isFirstLoad } from '../context/run-context.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { beginHolds, endsOf, hashToHold, keepAsked, keepReason, storedReasons } from './holds.ts';
import { askRules, type AskedReason, holdAsked, isClosedNow } from './plan-rules.ts';
import { onlyKey } from '../context/mirror-context.ts';
import {
  holdWithdrawn,
  judgeSwapped,
  judgeWithdrawals,
  noteVolume,
  type Populations,
  populationsOf,
  shapeOf,
} from './guard-counts.ts';
import { deferToCanaries, failedCanary, passApproved } from './canaries.ts';
import type { Guarded } from '../../store/database/key-range.ts';
import { explainHeld, whyOf } from '../report/guard-text.ts';

/**
 * Judges one round of decisions, and yields to other tasks in between. `asksRules`: the round plans
 * all that was read, so that the rules are asked.
 */
export async function judgePlan(results: RunResults, asksRules: boolean): Promise<Verdict> {
  await beginHolds(results.run, results.parts);
  return yielding(results.run, judge(results, 'run', asksRules));
}

/**
 * Judges, without yielding, the new decision for a record whose creation was acknowledged. Opt-outs
 * from channels that came with the creation, and template fields that only an update can set, count
 * as part of the creation.
 */
export function judgeAtOnce(results: RunResults): Verdict {
  return withoutYielding(judge(results, 'creation'));
}

/** Judges again what was withheld, now that the plan of the run itself is approved. */
export async function judgeApproved(results: RunResults): Promise<Verdict> {
  const none = { held: new Map(), withdrawn: new Map(), asked: new Map(), reports: new Map() };
  const round = beginRound({ ...results, verdict: { ...results.verdict, ...none } }, 'run');
  function* steps(): Steps<Verdict> {
    yield* tryReasons(round.classes, 'time');
    for (const judging of round.classes) yield* pass(judging);
    const { verdict, populations } = round;
    verdict.canaries = passApproved(results.run, verdict.canaries, results.approvals);
    return { ...verdict, population: populations.counted };
  }
  return yielding(results.run, steps());
}

/** One round, which continues with the verdict of the round before. */
interface Round extends RunResults {
  cause: 'run' | 'creation';
  /** Whether the guards have reviewed nothing in this run yet. */
  isFirst: boolean;
  /** Whether anything waits from an earlier run. */
  hasHolds: boolean;
  /** Whether anything asks or defers by configuration. */
  isRuled: boolean;
  populations: Populations;
  classes: readonly Judging[];
  verdict: Draft;
}

/** The verdict of a round while it is found. */
type Draft = { -readonly [Name in keyof Verdict]: Verdict[Name] } & {
  held: Map<GuardClass, HoldReason>;
  withdrawn: Map<GuardClass, HoldReason>;
  reports: Map<GuardClass, Fault>;
};

/** One class of changes, in the plan of one round. */
interface Judging {
  round: Round;
  of: GuardClass;
  /** Whether the class is counted here and never held. */
  neverHolds: boolean;
  /** Whether the plan has changes of the class. */
  isPlanned: boolean;
  /** Whether some of what waits stands in this plan, or would if this run had read it. */
  stands: boolean;
  /** Why changes of the class are held now, if any are. */
  found: HoldReason | undefined;
  /** What rules and canaries ask about the class. */
  asked: AskedReason | undefined;
  volume: ChangeVolume;
}

function beginRound(results: RunResults, cause: Round['cause']): Round {
  const { run, parts, verdict: before } = results;
  const { guarded, holds } = run.snapshot;
  const kinds = kindsIn(parts);
  const isAboutOne = cause === 'creation' || onlyKey(run) !== undefined;
  const planned = guarded.classes();
  const round: Round = {
    ...results,
    cause,
    isFirst: before.rounds === 0,
    hasHolds: holds.isAny(),
    isRuled: run.rules.length > 0 || run.windows.length > 0 || run.canary !== undefined,
    populations: populationsOf(results, before.population),
    classes: [],
    verdict: {
      ...before,
      held: new Map(before.held),
      withdrawn: new Map(before.withdrawn),
      reports: new Map(before.reports),
    },
  };
  const nothing = { stands: false, found: undefined, asked: undefined };
  round.classes = guardNames
    .filter((of) => kinds.includes(guardRows[of].recordType))
    .map((of) => ({
      round,
      of,
      neverHolds: isAboutOne && guardRows[of].exempt.includes('single run'),
      isPlanned: planned.includes(of),
      ...nothing,
      volume: { guard: of, fresh: 0, all: 0, unapproved: 0, week: 0, of: 0 },
    }));
  return round;
}

/**
 * A reason to hold a change. Those about a class come first, then those about the whole plan, and
 * last what leaves the rest to a later time.
 *
 *   a person rejected it                                until 30 days later
 *   the opt-out of the person is held                   until the next run
 *   (approved: it passes)
 *   it takes back most opt-outs that the CRM stated     until a person decides
 *   an earlier run held it                              until a person decides; a stated opt-out
 *                                                       until its time is over
 *   its class is over the limit, or has a shape         until a person decides
 *   a rule, or a canary out of bounds, asks about it    until a person decides
 *   no window allows it                                 until one does
 *   others are changed first, as a canary               until they are read back
 */
interface Reason {
  about: 'class' | 'plan' | 'time';
  applies(judging: Judging): boolean;
  judge(judging: Judging): Steps;
}

const reasons: readonly Reason[] = [
  {
    about: 'class',
    // Nobody can reject an opt-out that the CRM states.
    applies: ({ round: { run, hasHolds }, of }) => hasHolds && !timedGuards.has(of) && !run.undo,
    judge: (judging) => eachRange(judging, ({ reject }, range) => reject(range)),
  },
  {
    about: 'class',
    applies: ({ of }) => guardRows[of].withoutHeldOf !== undefined,
    *judge(judging) {
      const { round, of } = judging;
      const { run, cause, hasHolds, verdict } = round;
      const by = guardRows[of].withoutHeldOf;
      const isAboutOne = cause === 'run' && hasHolds && onlyKey(run) !== undefined;
      if (!by || (!isAboutOne && run.snapshot.guarded.countHeld(by) === 0)) return;
      // Only this run sees a swap, so that it holds what the next ones could not judge.
      const isSwap = verdict.held.get(of)?.by === 'swap';
      yield* eachRange(judging, ({ keepOut, holdKeptOut }, range) => {
        (isSwap ? holdKeptOut : keepOut)({ ...range, by, isAboutOne });
      });
    },
  },
  {
    about: 'class',
    applies: ({ round: { isFirst, cause, hasHolds } }) =>
      hasHolds || !isFirst || cause === 'creation',
    *judge(judging) {
      const { run, approvals, verdict } = judging.round;
      // What was approved before a canary failed does not count.
      const since = failedCanary(verdict.canaries, judging.of)?.approvalsGiven ?? -1;
      const counting = approvals.filter((one) => one.number > since).map(({ id }) => id);
      const undoes = run.undo?.run ?? '';
      yield* eachRange(judging, (guarded, range) => {
        guarded.follow(range);
        if (counting.length > 0) guarded.approve({ ...range, approvals: counting, undoes });
      });
    },
  },
  {
    about: 'class',
    applies: ({ of }) => guardRows[of].holdsWithdrawnFrom < Infinity,
    *judge(judging) {
      const { round, of } = judging;
      const { run, parts } = round;
      const { withdrawn } = round.verdict;
      const found = withdrawn.get(of) ?? (yield* judgeWithdrawals(run, parts.contacts, of));
      if (!found) return;
      withdrawn.set(of, found);
      judging.found = found;
      yield* holdWithdrawn(run, of);
    },
  },
  { about: 'class', applies: () => true, judge: judgeWaiting },
  { about: 'class', applies: () => true, judge: judgeLimit },
  {
    about: 'plan',
    applies: ({ round: { cause, isRuled } }) => cause === 'run' && isRuled,
    *judge(judging) {
      const { round, of } = judging;
      const { run, verdict } = round;
      const { canaries, asked, held, withdrawn } = verdict;
      const asks = { canary: failedCanary(canaries, of)?.says, rule: asked.get(of) };
      judging.asked = yield* holdAsked(run, of, asks);
      if (!judging.asked || held.has(of)) return;
      judging.found = withdrawn.get(of) ?? judging.asked;
    },
  },
  {
    about: 'time',
    applies: ({ round, of }) => round.cause === 'run' && isClosedNow(round.run, of),
    judge: (judging) =>
      eachRange(judging, ({ defer }, range) => void defer({ ...range, by: 'window' })),
  },
  {
    about: 'time',
    applies: ({ round: { run, cause } }) => cause === 'run' && run.canary !== undefined,
    *judge({ round, of }) {
      const { run, verdict, populations } = round;
      const { canaries: book } = verdict;
      verdict.canaries = yield* deferToCanaries(run, of, { book, populations });
    },
  },
];

function* judge(results: RunResults, cause: Round['cause'], asksRules = false): Steps<Verdict> {
  const { run, parts, approvals, plan } = results;
  const { guarded } = run.snapshot;
  const round = beginRound(results, cause);
  const { classes, isRuled, isFirst, populations, verdict } = round;
  const { held } = verdict;
  if (cause === 'run' && !run.undo && onlyKey(run) === undefined) {
    const unheld = guardNames.filter(
      (of) => guardRows[of].shapes.includes('swap') && !held.has(of),
    );
    const swap = unheld.length === 0 ? undefined : yield* judgeSwapped(run, parts.contacts);
    if (swap) for (const of of unheld) held.set(of, swap);
  }
  for (const judging of classes) {
    yield* tryReasons([judging], 'class');
    if (!isRuled) yield* pass(judging);
  }
  if (cause === 'run') {
    verdict.canaries = passApproved(run, verdict.canaries, approvals);
    if (asksRules && run.rules.length > 0 && onlyKey(run) === undefined) {
      const names = classes.map(({ of }) => of);
      const asked = yield* askRules(run, names, populations);
      verdict.asked = new Map([...verdict.asked, ...asked]);
    }
  }
  yield* tryReasons(classes, 'plan');
  yield* tryReasons(classes, 'time');
  if (cause === 'run' && run.writes && onlyKey(run) === undefined) {
    const asked = classes.flatMap((one): [GuardClass, string][] =>
      one.asked ? [[one.of, one.asked.says]] : [],
    );
    keepAsked(run, new Map(asked));
  }
  if (isRuled) for (const judging of classes) yield* pass(judging);
  if (isFirst) verdict.heldAs = yield* hashToHold(run, plan?.hash);
  for (const judging of classes) {
    if (!judging.found) continue;
    const n = guarded.countHeld(judging.of);
    if (n > 0 || judging.stands)
      verdict.reports.set(judging.of, reportHeld(judging, judging.found, n));
  }
  return { ...verdict, population: populations.counted, rounds: verdict.rounds + 1 };
}

function* tryReasons(classes: readonly Judging[], kind: Reason['about']): Steps {
  for (const reason of reasons.filter(({ about }) => about === kind))
    for (const judging of classes) if (reason.applies(judging)) yield* reason.judge(judging);
}

type Ranged = (guarded: Snapshot['guarded'], range: Guarded) => void;

function* eachRange({ round, of: guard, isPlanned }: Judging, work: Ranged): Steps {
  if (!isPlanned) return;
  const { guarded, stage } = round.run.snapshot;
  yield* eachPart(guarded.ranges({ guard }), (range) => {
    stage(() => work(guarded, range));
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
  const { round, of, neverHolds, volume } = judging;
  const { run, cause, hasHolds, verdict } = round;
  const isTimed = timedGuards.has(of);
  const { exempt } = guardRows[of];
  const isExempt =
    (exempt.includes('creation') && cause === 'creation') ||
    (exempt.includes('first load') && isFirstLoad(run) && !verdict.held.has(of));
  yield* eachRange(judging, (guarded, range) => {
    if (isExempt) guarded.exempt(range);
    if (isTimed && !neverHolds) {
      if (hasHolds) guarded.expire({ ...range, ...endsOf(run, of) });
      guarded.excuse({ ...range, run: run.id });
    }
    if (!neverHolds && hasHolds) judging.stands = guarded.holdStanding(range) > 0 || judging.stands;
    volume.fresh += guarded.fresh(range);
  });
  if (isTimed && !neverHolds && hasHolds) {
    verdict.unplanned = yield* countUnplanned(round, of);
    judging.stands ||= verdict.unplanned > 0;
  } else if (isTimed && !neverHolds) verdict.unplanned = 0;
}

/** Counts the people with held opt-outs that an incremental reading did not contain. */
function* countUnplanned({ run, known }: Round, of: GuardClass): Steps<number> {
  const { holds } = run.snapshot;
  const { whole, certified } = findingsOf(known, guardRows[of].recordType);
  let n = 0;
  if (whole && certified) return n;
  yield* eachPart(holds.ranges({ guard: of }), (range) => {
    n += holds.countUnplanned(range);
  });
  return n;
}

/** Holds what is new of a class if it is too much, or looks like an accident. */
function* judgeLimit(judging: Judging): Steps {
  const { round, of, neverHolds, stands } = judging;
  const { run } = round;
  const { held, canaries } = round.verdict;
  const { fresh } = judging.volume;
  if (neverHolds) {
    if (fresh > 0) noteVolume(run, of, yield* volumeOf(round, of, fresh));
    judging.found = undefined;
    return;
  }
  const withdrawn = judging.found;
  if (fresh === 0 && !stands && !withdrawn) return;
  const limit = run.guards[of];
  const volume = yield* volumeOf(round, of, fresh);
  judging.volume = volume;
  let found = held.get(of) ?? judgeVolume(volume, limit);
  if (!found && hasShape(volume, limit)) found = judgeShape(yield* shapeOf(run, of));
  if (found) {
    held.set(of, found);
    yield* eachRange(judging, (guarded, range) => void guarded.holdNew(range));
  }
  // What an earlier run held waits until it is approved or no longer wanted.
  const before = storedReasons(run.snapshot.meta)[of];
  if (stands) found ??= { by: 'earlier run', says: before?.asked ?? before?.first };
  // What was found in a canary tells the approver more than a number does.
  const failed = failedCanary(canaries, of);
  if (found && failed) found = { by: 'canary', says: failed.says };
  judging.found = withdrawn ?? found;
}

function* volumeOf(round: Round, of: GuardClass, fresh: number): Steps<ChangeVolume> {
  const { run, populations } = round;
  const { held } = round.verdict;
  const { guarded } = run.snapshot;
  const volume = { guard: of, fresh, all: 0, unapproved: 0, week: 0 };
  // Stated opt-outs that are held or approved do not count against later ones.
  const leavesOut = !guardRows[of].countsHeld && onlyKey(run) === undefined;
  let asked = 0;
  yield* eachPart(guarded.askedRanges({ guard: of }), (range) => {
    const { all, unapproved, judged } = guarded.counts(range);
    asked += all;
    volume.all += leavesOut ? judged : all;
    volume.unapproved += leavesOut ? judged : unapproved;
  });
  const since = run.clock.now() - weekMs;
  volume.week = guarded.sentSince({ guard: of, since, run: run.id });
  const isCounted = held.has(of) || !isFew(volume, run.guards[of]);
  return {
    ...volume,
    isEverybody:
      volume.all >= guardRows[of].holdsAllFrom && (yield* populations.others(of, 1)) === 0,
    of: isCounted ? yield* populations.count(of, asked) : 0,
  };
}

/** Returns the count and the limit that decided; no share did for people who are alike. */
function measureOf(found: HoldReason, volume: ChangeVolume, limit: Limit) {
  if (found.by === 'withdrawn')
    return { people: found.people, of: found.of, most: Math.floor(found.of / 2) };
  return { of: found.by === 'run' ? volume.of : 0, most: mostOf(volume, limit) };
}

/** Reports the `n` held records of a class to the approver, and stores why a hold begins. */
function reportHeld({ round, of, volume }: Judging, found: HoldReason, n: number): Fault {
  const { run, isFirst } = round;
  const { heldAs, unplanned } = round.verdict;
  const { holds } = run.snapshot;
  const limit = run.guards[of];
  if (run.writes && !run.undo && found.by !== 'earlier run')
    keepReason(run, of, {
      first: whyOf(found, volume, limit),
      by: found.by,
      ...measureOf(found, volume, limit),
    });
  const isTimed = timedGuards.has(of);
  // A later round may hold a few more changes; the report states the total.
  const total = { ...volume, fresh: n + (isTimed ? unplanned : 0) };
  // An earlier plan also shows the people that this run has not read. A plan that no run has held
  // cannot be approved, and a later round adds nothing to the plan of the run.
  const current = holds.current().filter(({ undoes }) => undoes === null || run.undo);
  const isToKeep = run.writes && isFirst;
  const isKept = current.some((one) => one.plan === heldAs && (isFirst || one.held[of] > 0));
  const isOwn = (isToKeep || isKept) && total.fresh === n;
  const [largest] = current
    .filter(({ held }) => held[of] > 0)
    .toSorted((a, b) => b.held[of] - a.held[of]);
  const plan = isOwn ? heldAs : largest?.plan;
  const since = holds.oldest(of, endsOf(run, of)) ?? run.clock.now();
  return explainHeld(found, total, {
    limit,
    plan: plan ?? (isToKeep ? heldAs : undefined),
    signs: run.approvers !== undefined,
    undoes: run.undo?.run,
    until: isTimed && limit.holdForMs !== undefined ? since + limit.holdForMs : undefined,
  });
}
