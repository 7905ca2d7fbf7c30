/**
 * Applies the guards to the plan. Withheld changes are neither journaled nor sent, and every run
 * plans them again. They are stored under the hash of the plan that showed them, until a person
 * approves them or, for stated opt-outs, until their holding time is over. Changes that a person
 * has rejected are removed from the plan before anything is counted (see plan-decisions.ts). What
 * is withheld is reported as a problem of the run, with the way to approve it.
 */
import { z } from 'zod';
import { type GuardClass, guardNames, guardRows, timedGuards } from '../../domain/guard-classes.ts';
import {
  type ChangeVolume,
  hasShape,
  type HoldReason,
  isFew,
  judge,
  judgeShape,
  weekMs,
} from '../report/guard-rules.ts';
import { approveThisPlan } from './plan-approval.ts';
import { withoutYielding, yielding } from '../plan/commit-plan.ts';
import { type RunState, findingsNamed } from '../context/run-state.ts';
import { isFirstLoad } from '../context/run-context.ts';
import { beginHolds, endsOf, hashToHold } from './approval-holds.ts';
import { isClosedNow } from './change-windows.ts';
import { onlyKey } from '../context/mirror-context.ts';
import { noteVolume, othersOf, populationOf } from './guard-population.ts';
import { holdSwapped, shapeOf, holdWithdrawn } from './change-shape.ts';
import { applyCanaries, failedCanary, passApproved } from './canaries.ts';
import { applyRules, askedBefore } from './plan-rules.ts';
import { eachPart } from '../context/work-in-parts.ts';
import type { Approval } from '../../store/guards/plan-approvals.ts';
import type { Guarded } from '../../store/database/key-range.ts';
import { explainHeld, whyOf } from '../report/guard-text.ts';
import { type Meta, metaValue } from '../../store/database/meta-table.ts';
import type { PlanAwaitingApproval } from '../../store/guards/awaiting-approval.ts';

/** Applies the guards to one round of decisions, and yields to other tasks in between. */
export async function applyGuards(context: RunState): Promise<void> {
  await beginHolds(context);
  await yielding(context.run, steps(context, 'run'));
}

/**
 * Applies the guards, without yielding, to the new decision for a record whose creation was
 * acknowledged. Opt-outs from channels that came with the creation, and template fields that only
 * an update can set, count as part of the creation.
 */
export function applyGuardsAtOnce(context: RunState): void {
  withoutYielding(steps(context, 'creation'));
}

/** What caused a round of decisions: a run, or the creation of one record. */
type Cause = 'run' | 'creation';

function* steps(context: RunState, cause: Cause): Generator<undefined, void> {
  const { guarded, awaitingApproval } = context.run.snapshot;
  const hasRejections = awaitingApproval.rejections().length > 0;
  const names = new Set(context.parts.map(({ type }) => type.name));
  const classes = guardNames.filter((of) => names.has(guardRows[of].recordType));
  const { rules, windows, canary } = context.run;
  const isRuled = rules.length > 0 || windows.length > 0 || canary !== undefined;
  const withheld: Withheld[] = [];
  if (cause === 'run') yield* holdSwapped(context);
  for (const of of classes) {
    const { withoutHeldOf } = guardRows[of];
    // Nobody can reject an opt-out that the CRM states.
    if (hasRejections && !timedGuards.has(of) && !context.run.undo)
      yield* eachRangeOf(context, of, awaitingApproval.refuse);
    if (withoutHeldOf) {
      yield* eachRangeOf(context, of, (range) => guarded.keepOut(range, withoutHeldOf));
    }
    withheld.push(...(yield* guardOne(context, of, cause)));
    if (!isRuled) yield* eachRangeOf(context, of, guarded.pass);
  }
  if (cause === 'run') {
    withheld.push(...(yield* ruleAll(context, classes)));
    yield* deferAll(context, classes);
  }
  if (isRuled) for (const of of classes) yield* eachRangeOf(context, of, guarded.pass);
  if (context.review.rounds === 0) context.review.heldAs = yield* hashToHold(context);
  for (const one of withheld) tellHeld(context, one);
  if (context.review.rounds === 0 && (yield* approveThisPlan(context))) {
    yield* deferAll(context, classes);
    for (const of of classes) yield* eachRangeOf(context, of, guarded.pass);
    passApproved(context);
  }
  context.review.rounds += 1;
}

/** Applies the rules and failed canaries, and returns what they withhold. */
function* ruleAll(
  context: RunState,
  classes: readonly GuardClass[],
): Generator<undefined, Withheld[]> {
  const { held, withdrawn } = context.review;
  const { countWithheld } = context.run.snapshot.guarded;
  passApproved(context);
  const none = { fresh: 0, all: 0, unapproved: 0, week: 0, of: 0 };
  return [...(yield* applyRules(context, classes))]
    .filter(([guard]) => !held.has(guard))
    .map(([guard, says]) => ({
      found: withdrawn.get(guard) ?? says,
      volume: { guard, ...none },
      n: countWithheld(guard),
    }));
}

/** Leaves to a later run what no window allows now, and what waits for a canary. */
function* deferAll(context: RunState, classes: readonly GuardClass[]): Generator<undefined, void> {
  const { deferred } = context.run.snapshot.guarded;
  for (const of of classes.filter((one) => isClosedNow(context.run, one)))
    yield* eachRangeOf(context, of, deferred.defer);
  yield* applyCanaries(context, classes);
}

function* eachRangeOf(
  { run: { snapshot } }: RunState,
  guard: GuardClass,
  work: (guarded: Guarded) => void,
): Generator<undefined> {
  yield* eachPart(snapshot.guarded.ranges(guard), (range) => {
    snapshot.stage(() => work({ ...range, guard }));
  });
}

/** Applies the guard of a class, and returns what it withholds. */
function* guardOne(
  context: RunState,
  of: GuardClass,
  cause: Cause,
): Generator<undefined, Withheld[]> {
  const { run } = context;
  const { held, withdrawn } = context.review;
  const { guarded } = run.snapshot;
  const isAboutOne = cause === 'creation' || onlyKey(run) !== undefined;
  const neverHolds = isAboutOne && guardRows[of].exempt.includes('single run');
  const { stands, fresh } = yield* sift(context, of, { cause, neverHolds });
  if (neverHolds) {
    if (fresh > 0) noteVolume(run, of, yield* volumeOf(context, of, fresh));
    return [];
  }
  const isTimed = timedGuards.has(of);
  const unplanned = isTimed ? yield* countUnplanned(context, of) : 0;
  if (isTimed) context.review.unplanned = unplanned;
  const again = withdrawn.get(of);
  if (fresh === 0 && !stands && unplanned === 0 && !again) return [];
  const limit = run.guards[of];
  const volume = yield* volumeOf(context, of, fresh);
  let judged = held.get(of) ?? judge(volume, limit);
  if (!judged && hasShape(volume, limit)) judged = judgeShape(yield* shapeOf(run, of));
  if (judged) {
    held.set(of, judged);
    yield* eachRangeOf(context, of, guarded.withhold);
  }
  const isHeldBefore = stands || unplanned > 0;
  const why = judged ?? (isHeldBefore ? heldBefore(context, of) : undefined);
  const found = again ?? (why && outOfBounds(context, of)) ?? why;
  return found ? [{ found, volume, n: guarded.countWithheld(of) }] : [];
}

/** Returns what was found in a canary: it tells the approver more than a number does. */
function outOfBounds({ review }: RunState, of: GuardClass): HoldReason | undefined {
  const failed = failedCanary(review, of);
  return failed && { by: 'canary', says: failed.says };
}

/**
 * Returns the reason for changes that an earlier run withheld: they stay withheld until they are
 * approved or no longer wanted.
 */
function heldBefore({ run }: RunState, of: GuardClass): HoldReason {
  const { meta } = run.snapshot;
  return { by: 'earlier run', says: askedBefore(meta, of) ?? firstReason(meta, of) };
}

/**
 * Marks the changes of a class that pass regardless of their number, and withholds what an earlier
 * run held. Returns whether anything was held earlier, and how many people or templates are new.
 */
function* sift(
  context: RunState,
  of: GuardClass,
  { cause, neverHolds }: { cause: Cause; neverHolds: boolean },
): Generator<undefined, { stands: boolean; fresh: number }> {
  const { run } = context;
  const { guarded } = run.snapshot;
  const approvals = approvalsOf(context, of);
  // What a rule withholds may be exempt from the limit, or be stated by the CRM later.
  const canAsk = (run.rules.length > 0 || run.canary !== undefined) && !timedGuards.has(of);
  const isAsked = canAsk && askedBefore(run.snapshot.meta, of) !== undefined;
  const standing = isAsked ? guarded.asked : guarded;
  const { exempt } = guardRows[of];
  const isExempt =
    (exempt.includes('creation') && cause === 'creation') ||
    (exempt.includes('first load') && isFirstLoad(run) && !context.review.held.has(of));
  yield* eachRangeOf(context, of, (range) => {
    guarded.follow(range);
    for (const approval of approvals) guarded.approve(approval, range);
  });
  yield* holdWithdrawn(context, of);
  let stands = false;
  let fresh = 0;
  yield* eachRangeOf(context, of, (range) => {
    if (isExempt) guarded.exempt(range);
    if (timedGuards.has(of) && !neverHolds) {
      guarded.expire(range, endsOf(run, of));
      guarded.excuse(range, run.id);
    }
    if (!neverHolds) stands = standing.withholdStanding(range) || stands;
    fresh += guarded.fresh(range);
  });
  return { stands, fresh };
}

/** Returns the approvals that count: what was approved before a canary failed does not. */
function approvalsOf({ approvals, review }: RunState, of: GuardClass): readonly Approval[] {
  const failed = failedCanary(review, of);
  const isLater = ({ approvalsGiven }: Approval) =>
    !failed || approvalsGiven > failed.approvalsGiven;
  return approvals.filter(isLater);
}

/** Counts the people with held opt-outs that an incremental reading did not contain. */
function* countUnplanned(context: RunState, of: GuardClass): Generator<undefined, number> {
  const { snapshot } = context.run;
  const { recordType: kind } = guardRows[of];
  const { whole, certified } = findingsNamed(context.known, kind);
  let n = 0;
  if (whole && certified) return n;
  yield* eachPart(snapshot.awaitingApproval.ranges(of, kind), (range) => {
    n += snapshot.awaitingApproval.countUnplanned({ ...range, guard: of });
  });
  return n;
}

function* volumeOf(
  context: RunState,
  of: GuardClass,
  fresh: number,
): Generator<undefined, ChangeVolume> {
  const { run } = context;
  const { held } = context.review;
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
  volume.week = guarded.sentSince(of, run.clock.now() - weekMs, run.id);
  const isCounted = held.has(of) || !isFew(volume, run.guards[of]);
  return {
    ...volume,
    isEverybody:
      volume.all >= guardRows[of].holdsAllFrom && (yield* othersOf(context, of, 1)) === 0,
    of: isCounted ? yield* populationOf(context, of, asked) : 0,
  };
}

/** A class with withheld changes, why, and their number. */
interface Withheld {
  found: HoldReason;
  volume: ChangeVolume;
  n: number;
}

/** Reports it as a problem of the run. */
function tellHeld(context: RunState, { found, volume, n }: Withheld): void {
  const { run, tally, review } = context;
  const { awaitingApproval } = run.snapshot;
  const { guard: of } = volume;
  if (run.writes && !run.undo) keepReason(context, { found, volume });
  const { heldAs } = review;
  const isTimed = timedGuards.has(of);
  // A later round may withhold a few more changes; the report states the total.
  const told = { ...volume, fresh: n + (isTimed ? review.unplanned : 0) };
  // An earlier plan also shows the people that this run has not read. A plan that no run has held
  // cannot be approved, and a later round adds nothing to the plan of the run.
  const current = awaitingApproval.current().filter(({ undoes }) => undoes === null || run.undo);
  const isFirst = review.rounds === 0;
  const isToKeep = run.writes && isFirst;
  const isKept = current.some((one) => one.plan === heldAs && (isFirst || one.held[of] > 0));
  const isOwn = isToKeep || isKept;
  const shown = isOwn && told.fresh === n ? heldAs : largestOf(current, of);
  const { holdForMs } = run.guards[of];
  const since = awaitingApproval.oldest(of, endsOf(run, of)) ?? run.clock.now();
  const fault = explainHeld(found, told, {
    limit: run.guards[of],
    plan: shown ?? (isToKeep ? heldAs : undefined),
    signs: run.approvers !== undefined,
    undoes: run.undo?.run,
    until: isTimed && holdForMs !== undefined ? since + holdForMs : undefined,
  });
  tally.held({
    kind: guardRows[of].recordType,
    key: of,
    class: 'held',
    part: '',
    cause: 'awaiting-approval',
    ...fault,
  });
}

const nameOfReasons = 'reasons of holds';
const reasons = z.record(z.string(), z.string());

/** Returns why changes of a class that still wait were withheld when their hold began. */
function firstReason(meta: Meta, of: GuardClass): string | undefined {
  return metaValue(meta, nameOfReasons, reasons)?.[of];
}

/** Stores the reason of a hold that begins, with its numbers. */
function keepReason({ run }: RunState, { found, volume }: Omit<Withheld, 'n'>): void {
  const { awaitingApproval, meta, transaction } = run.snapshot;
  const { guard: of } = volume;
  const isStanding = awaitingApproval.oldest(of) !== undefined;
  if (found.by === 'earlier run' || (isStanding && firstReason(meta, of) !== undefined)) return;
  const says = whyOf(found, volume, run.guards[of]);
  const kept = { ...metaValue(meta, nameOfReasons, reasons), [of]: says };
  transaction(() => meta.set(nameOfReasons, JSON.stringify(kept)));
}

function largestOf(plans: readonly PlanAwaitingApproval[], of: GuardClass): string | undefined {
  const [largest] = plans.toSorted((a, b) => b.held[of] - a.held[of]);
  return largest && largest.held[of] > 0 ? largest.plan : undefined;
}
