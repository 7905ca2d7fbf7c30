/**
 * Applies the guards to the plan. Withheld changes are neither journaled nor sent, and every run
 * plans them again. They are stored under the hash of the plan that showed them, until a person
 * approves them or, for stated opt-outs, until their holding time is over. Changes that a person
 * has rejected are removed from the plan before anything is counted (see plan-decisions.ts). What
 * is withheld is reported as a problem of the run, with the way to approve it.
 */
import { z } from 'zod';
import { type Steps, eachPart } from '../context/work-in-parts.ts';
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
import { isClosedNow, applyRules, askedBefore } from './plan-rules.ts';
import { onlyKey } from '../context/mirror-context.ts';
import { noteVolume, othersOf, populationOf } from './guard-population.ts';
import { holdSwapped, shapeOf, holdWithdrawn } from './change-shape.ts';
import { applyCanaries, failedCanary, passApproved } from './canaries.ts';
import type { Guarded } from '../../store/database/key-range.ts';
import { explainHeld, whyOf } from '../report/guard-text.ts';
import { type Meta, metaValue } from '../../store/database/meta-table.ts';

/** Applies the guards to one round of decisions, and yields to other tasks in between. */
export async function applyGuards(state: RunState): Promise<void> {
  await beginHolds(state);
  await yielding(state.run, steps(state, 'run'));
}

/**
 * Applies the guards, without yielding, to the new decision for a record whose creation was
 * acknowledged. Opt-outs from channels that came with the creation, and template fields that only
 * an update can set, count as part of the creation.
 */
export function applyGuardsAtOnce(state: RunState): void {
  withoutYielding(steps(state, 'creation'));
}

function* steps(state: RunState, cause: 'run' | 'creation'): Steps {
  const { run, parts, review } = state;
  const { guarded, awaitingApproval } = run.snapshot;
  const hasRejections = awaitingApproval.rejections().length > 0;
  const names = new Set(parts.map(({ type }) => type.name));
  const classes = guardNames.filter((of) => names.has(guardRows[of].recordType));
  const { rules, windows, canary } = run;
  const isRuled = rules.length > 0 || windows.length > 0 || canary !== undefined;
  const withheld: Withheld[] = [];
  if (cause === 'run') yield* holdSwapped(state);
  for (const of of classes) {
    const { withoutHeldOf } = guardRows[of];
    // Nobody can reject an opt-out that the CRM states.
    if (hasRejections && !timedGuards.has(of) && !run.undo)
      yield* eachRangeOf(state, of, awaitingApproval.refuse);
    if (withoutHeldOf) {
      yield* eachRangeOf(state, of, (range) => guarded.keepOut(range, withoutHeldOf));
    }
    withheld.push(...(yield* guardOne(state, of, cause)));
    if (!isRuled) yield* eachRangeOf(state, of, guarded.pass);
  }
  if (cause === 'run') {
    passApproved(state);
    const none = { fresh: 0, all: 0, unapproved: 0, week: 0, of: 0 };
    for (const [guard, says] of yield* applyRules(state, classes)) {
      if (review.held.has(guard)) continue;
      const found = review.withdrawn.get(guard) ?? says;
      withheld.push({ found, volume: { guard, ...none }, n: guarded.countWithheld(guard) });
    }
    yield* deferAll(state, classes);
  }
  if (isRuled) for (const of of classes) yield* eachRangeOf(state, of, guarded.pass);
  if (review.rounds === 0) review.heldAs = yield* hashToHold(state);
  for (const one of withheld) reportHeld(state, one);
  if (review.rounds === 0 && (yield* approveThisPlan(state))) {
    yield* deferAll(state, classes);
    for (const of of classes) yield* eachRangeOf(state, of, guarded.pass);
    passApproved(state);
  }
  review.rounds += 1;
}

function* deferAll(state: RunState, classes: readonly GuardClass[]): Steps {
  const { deferred } = state.run.snapshot.guarded;
  for (const of of classes.filter((one) => isClosedNow(state.run, one)))
    yield* eachRangeOf(state, of, deferred.defer);
  yield* applyCanaries(state, classes);
}

function* eachRangeOf(
  { run: { snapshot } }: RunState,
  guard: GuardClass,
  work: (guarded: Guarded) => void,
): Steps {
  yield* eachPart(snapshot.guarded.ranges(guard), (range) => {
    snapshot.stage(() => work({ ...range, guard }));
  });
}

interface Withheld {
  found: HoldReason;
  volume: ChangeVolume;
  n: number;
}

function* guardOne(state: RunState, of: GuardClass, cause: 'run' | 'creation'): Steps<Withheld[]> {
  const { run, review } = state;
  const { guarded, meta } = run.snapshot;
  const isAboutOne = cause === 'creation' || onlyKey(run) !== undefined;
  const neverHolds = isAboutOne && guardRows[of].exempt.includes('single run');
  const { stands, fresh } = yield* sift(state, of, { cause, neverHolds });
  if (neverHolds) {
    if (fresh > 0) noteVolume(run, of, yield* volumeOf(state, of, fresh));
    return [];
  }
  const isTimed = timedGuards.has(of);
  const unplanned = isTimed ? yield* countUnplanned(state, of) : 0;
  if (isTimed) review.unplanned = unplanned;
  const withdrawn = review.withdrawn.get(of);
  const isHeldBefore = stands || unplanned > 0;
  if (fresh === 0 && !isHeldBefore && !withdrawn) return [];
  const limit = run.guards[of];
  const volume = yield* volumeOf(state, of, fresh);
  let found = review.held.get(of) ?? judge(volume, limit);
  if (!found && hasShape(volume, limit)) found = judgeShape(yield* shapeOf(run, of));
  if (found) {
    review.held.set(of, found);
    yield* eachRangeOf(state, of, guarded.withhold);
  }
  // What an earlier run withheld stays withheld until it is approved or no longer wanted.
  if (isHeldBefore)
    found ??= { by: 'earlier run', says: askedBefore(meta, of) ?? firstReason(meta, of) };
  // What was found in a canary tells the approver more than a number does.
  const failed = failedCanary(review, of);
  if (found && failed) found = { by: 'canary', says: failed.says };
  found = withdrawn ?? found;
  return found ? [{ found, volume, n: guarded.countWithheld(of) }] : [];
}

/**
 * Marks the changes of a class that pass regardless of their number, and withholds what an earlier
 * run held. Returns whether anything was held earlier, and how many people or templates are new.
 */
function* sift(
  state: RunState,
  of: GuardClass,
  { cause, neverHolds }: { cause: 'run' | 'creation'; neverHolds: boolean },
): Steps<{ stands: boolean; fresh: number }> {
  const { run, review } = state;
  const { guarded, meta } = run.snapshot;
  // What was approved before a canary failed does not count.
  const since = failedCanary(review, of)?.approvalsGiven ?? -1;
  const approvals = state.approvals.filter(({ approvalsGiven }) => approvalsGiven > since);
  // What a rule withholds may be exempt from the limit, or be stated by the CRM later.
  const canAsk = (run.rules.length > 0 || run.canary !== undefined) && !timedGuards.has(of);
  const isAsked = canAsk && askedBefore(meta, of) !== undefined;
  const standing = isAsked ? guarded.asked : guarded;
  const { exempt } = guardRows[of];
  const isExempt =
    (exempt.includes('creation') && cause === 'creation') ||
    (exempt.includes('first load') && isFirstLoad(run) && !review.held.has(of));
  yield* eachRangeOf(state, of, (range) => {
    guarded.follow(range);
    for (const approval of approvals) guarded.approve(approval, range);
  });
  yield* holdWithdrawn(state, of);
  let stands = false;
  let fresh = 0;
  yield* eachRangeOf(state, of, (range) => {
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

/** Counts the people with held opt-outs that an incremental reading did not contain. */
function* countUnplanned(state: RunState, of: GuardClass): Steps<number> {
  const { snapshot } = state.run;
  const { recordType: kind } = guardRows[of];
  const { whole, certified } = findingsNamed(state.known, kind);
  let n = 0;
  if (whole && certified) return n;
  yield* eachPart(snapshot.awaitingApproval.ranges(of, kind), (range) => {
    n += snapshot.awaitingApproval.countUnplanned({ ...range, guard: of });
  });
  return n;
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
  volume.week = guarded.sentSince(of, run.clock.now() - weekMs, run.id);
  const isCounted = held.has(of) || !isFew(volume, run.guards[of]);
  return {
    ...volume,
    isEverybody: volume.all >= guardRows[of].holdsAllFrom && (yield* othersOf(state, of, 1)) === 0,
    of: isCounted ? yield* populationOf(state, of, asked) : 0,
  };
}

/** Reports what is withheld as a problem, and stores the reason of a hold that begins. */
function reportHeld(state: RunState, { found, volume, n }: Withheld): void {
  const { run, tally, review } = state;
  const { awaitingApproval, meta, transaction } = run.snapshot;
  const { guard: of } = volume;
  const limit = run.guards[of];
  const isNew = awaitingApproval.oldest(of) === undefined || firstReason(meta, of) === undefined;
  if (run.writes && !run.undo && found.by !== 'earlier run' && isNew) {
    const kept = { ...metaValue(meta, nameOfReasons, reasons), [of]: whyOf(found, volume, limit) };
    transaction(() => meta.set(nameOfReasons, JSON.stringify(kept)));
  }
  const { heldAs } = review;
  const isTimed = timedGuards.has(of);
  // A later round may withhold a few more changes; the report states the total.
  const total = { ...volume, fresh: n + (isTimed ? review.unplanned : 0) };
  // An earlier plan also shows the people that this run has not read. A plan that no run has held
  // cannot be approved, and a later round adds nothing to the plan of the run.
  const current = awaitingApproval.current().filter(({ undoes }) => undoes === null || run.undo);
  const isFirst = review.rounds === 0;
  const isToKeep = run.writes && isFirst;
  const isKept = current.some((one) => one.plan === heldAs && (isFirst || one.held[of] > 0));
  const isOwn = (isToKeep || isKept) && total.fresh === n;
  const [largest] = current
    .filter(({ held }) => held[of] > 0)
    .toSorted((a, b) => b.held[of] - a.held[of]);
  const plan = isOwn ? heldAs : largest?.plan;
  const since = awaitingApproval.oldest(of, endsOf(run, of)) ?? run.clock.now();
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

const nameOfReasons = 'reasons of holds';
const reasons = z.record(z.string(), z.string());

function firstReason(meta: Meta, of: GuardClass): string | undefined {
  return metaValue(meta, nameOfReasons, reasons)?.[of];
}
