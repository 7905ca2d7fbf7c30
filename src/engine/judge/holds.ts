/**
 * Carries what awaits approval from one run to the next: since when it waits, the plan that shows
 * it, the approvals that release it, and the end of both. Works range by range, because there may
 * be much.
 *
 * A stated opt-out is held for `holdFor` at most, by the platform's clock. A late opt-out is worse
 * than one that has to be undone, so that a hold also ends without that clock.
 *
 *   the platform has never stated its time    our clock counts; times ahead of it become now
 *   it does not state it now                  our clock counts, corrected by what is known
 *   the clocks are an hour apart              a hold of which the platform's time is not known
 *                                             begins when it is known
 *   a backup is restored                      times are absolute, so expired holds stay expired
 *
 * An approval names the hash of the plan that showed the changes. It ends with the first full run
 * that began after it and could do everything, and after seven days at the latest.
 */
import { hash } from 'node:crypto';
import { type Steps, inTurns, eachPart } from '../context/work-in-parts.ts';
import { type RecordTypeName, recordTypes } from '../../domain/record.ts';
import {
  byGuard,
  type GuardClass,
  guardNames,
  guardRows,
  timedGuards,
} from '../../domain/guard-classes.ts';
import type { Began } from '../../store/holds/hold-sql.ts';
import { everything, type Guarded } from '../../store/database/key-range.ts';
import { type Meta, storedFact } from '../../store/database/meta-table.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { nothingLeft, unknownPlan, rejectedForMs } from '../report/guard-text.ts';
import { findingsOf, kindsIn, type RunParts, type RunResults } from '../context/run-results.ts';
import type { PlanDecision } from '../../store/holds/holds.ts';
import type { Problem } from '../../domain/errors.ts';
import { aheadOf, confirmDifference, nowByKnown } from '../context/platform-knowledge.ts';
import { endFirstLoad, type RunContext, supersededKeys } from '../context/run-context.ts';
import { onlyKey, type ToApprove } from '../context/mirror-context.ts';
import { yielding } from '../decide/commit-plan.ts';
import { planning } from '../report/run-summary.ts';
import { type HoldReason, weekMs } from '../../domain/guards/guard-limits.ts';
import { hasDeferred } from './plan-rules.ts';
import {
  approvalsInForce,
  approvePlan,
  endRestored,
  isAnyLeft,
  sayUnsigned,
} from './plan-decisions.ts';

/**
 * Requests the platform's time if any changes have a holding time, and corrects the holds by it;
 * or if the clocks seem to differ.
 */
export async function beginHolds(run: RunContext, parts: RunParts): Promise<void> {
  if (onlyKey(run) !== undefined) return;
  // A run of templates only asks for nothing else.
  if (parts.contacts) await confirmDifference(run);
  const { holds, transaction } = run.snapshot;
  for (const guard of timedGuards) {
    const isPart = kindsIn(parts).includes(guardRows[guard].recordType);
    if (!isPart || holds.oldest(guard) === undefined) continue;
    await run.askPlatformTime();
    if (run.writes) transaction(() => holds.mend(guard, nowByKnown(run)));
  }
}

/** Returns when a hold of this class that ends now has begun. */
export function endsOf(run: RunContext, guard: GuardClass): Began {
  const { holdForMs = Infinity } = run.guards[guard];
  return { by: run.clock.now() - holdForMs, aheadMs: aheadOf(run) };
}

/** Stores what this run withholds as waiting from now on, unless it waits already. */
function* addHolds(run: RunContext): Steps {
  const { snapshot, undo } = run;
  const { guarded, holds, transaction } = snapshot;
  const isListed = run.mode !== 'fast';
  const made = { ...nowByKnown(run), undoes: undo?.run ?? '', isListed };
  yield* eachHeld(snapshot, (range) => {
    // What is held does not count against other changes of these classes, so if only a part of it
    // were stored, the rest would pass.
    if (guardRows[range.guard].countsHeld) transaction(() => holds.hold(range, made));
  });
  const whole = guardNames.filter((of) => !guardRows[of].countsHeld && guarded.countHeld(of) > 0);
  for (const guard of whole) transaction(() => holds.hold({ ...everything, guard }, made));
}

/** Does the same, after requesting the platform's time if the holds need it. */
export async function holdWithheld(run: RunContext): Promise<void> {
  const { guarded } = run.snapshot;
  if ([...timedGuards].some((guard) => guarded.countHeld(guard) > 0)) await run.askPlatformTime();
  await yielding(run, addHolds(run));
}

function* eachHeld({ guarded }: Snapshot, work: (guarded: Guarded) => void) {
  if (guarded.countChanges() === 0) return;
  for (const guard of guardNames) {
    yield* eachPart(guarded.heldRanges({ guard }), work);
  }
}

/**
 * Returns the hash under which a person approves what the run withholds. It is the hash of the
 * plan, unless an earlier run stored this plan without some of the changes that are withheld now:
 * an approval, even if it is repeated, must cover only what it showed. Plans of `undo` always keep
 * the hash of the plan, because only that command makes their changes.
 */
export function* hashToHold(run: RunContext, plan: string | undefined): Steps<string | undefined> {
  if (plan === undefined || run.undo) return plan;
  const { guarded, holds } = run.snapshot;
  let showsAll = true;
  yield* eachHeld(run.snapshot, (range) => {
    showsAll &&= holds.shows(plan, range);
  });
  if (showsAll) return plan;
  const content = planning();
  const stated = planning();
  yield* eachHeld(run.snapshot, (range) => {
    const changes = guarded.held(range);
    content.add(changes);
    stated.add(changes.filter((change) => change.stated === 1));
  });
  const name = `${content.done().hash}-${stated.done().hash}`;
  return hash('sha256', JSON.stringify([plan, name])).slice(0, 16);
}

/**
 * Stores what the run withholds under the hash of its plan. Later rounds add nothing to the plan.
 * Call it in the transaction that writes the rest of the plan.
 */
export function keepPlan(run: RunContext, plan: string | undefined): void {
  if (plan === undefined) return;
  const { holds, guarded } = run.snapshot;
  const at = run.clock.now();
  const undoes = run.undo?.run ?? '';
  if (guarded.countChanges() > 0) holds.keep({ plan, at, undoes });
  if (run.undo) holds.endUndone({ at, undoes, plan });
}

/**
 * Approves what remains of the plan that `approve` names, if any, and ends old rejections, and
 * approvals from before a restored backup. A decision made under a clock that was ahead lasts as
 * long as one that is made now. Returns the approvals in force, and notes about others.
 */
export function approvalsOf(
  { snapshot, writes, clock, approvers, undo }: RunContext,
  approve: ToApprove | undefined,
) {
  const { holds, transaction } = snapshot;
  const at = clock.now();
  if (writes && holds.isAnyDecided()) {
    transaction(() => {
      holds.mendDecisions({ at });
      holds.endRejections({ at, before: at - rejectedForMs });
    });
  }
  const restored = endRestored(snapshot, { approvers, now: at }, { writes });
  let hasApproved = false;
  if (approve && writes) {
    const { plan, by, reason, caller } = approve;
    const decision = { at, by, reason };
    const { held } = approvePlan(snapshot, { plan, only: {}, decision, caller });
    hasApproved = isAnyLeft(held);
  }
  // What was approved of an undo is no approval of what another run does, nor the other way round.
  const approvals = approvalsInForce(snapshot, { approvers, now: at }).filter(
    ({ undoes }) => (undoes !== null) === (undo !== undefined),
  );
  const unsigned = sayUnsigned(snapshot, { approvers, now: at });
  return { approvals, hasApproved, notes: [...restored, ...unsigned] };
}

/**
 * Stores, approves and releases the plan of this run if `asked` names it, and returns the approvals
 * then in force. If it names an earlier plan with nothing left to approve, returns a note. Throws
 * Invalid if there is no such plan.
 */
export function* approveThisPlan(
  run: RunContext,
  asked: ToApprove,
  {
    heldAs: own = '',
    approvals,
  }: { heldAs: string | undefined; approvals: readonly PlanDecision[] },
): Steps<PlanDecision[] | Problem | undefined> {
  const { snapshot } = run;
  const { guarded, holds } = snapshot;
  const { plan: approve, by, reason, caller } = asked;
  if (approvals.some(({ id }) => id === approve)) return undefined;
  if (approve !== own) {
    if (holds.get(approve)) return { code: 'note', reason: nothingLeft(approve) };
    throw unknownPlan(holds.current(), approve, own);
  }
  if (guarded.countChanges() === 0) return undefined;
  const decision = { at: run.clock.now(), by, reason };
  yield* addHolds(run);
  const id = snapshot.transaction(() => {
    keepPlan(run, own);
    // What was rejected of this plan stays so.
    const { part = own } = approvePlan(snapshot, { plan: own, only: {}, decision, caller });
    return part;
  });
  guarded.release(id);
  return [...approvals, ...holds.approvals(0).filter((one) => one.id === id)];
}

/**
 * Ends the first load and the approvals after a full run that was completed, and returns what it
 * could do everything for: people, templates, or both. The first load continues if the source
 * contained no person who could be read. An approval ends only if it was in force when the run
 * began, and if it concerns only these. Failures of the others or of a single channel do not
 * matter.
 */
export function closeApprovals(results: RunResults): RecordTypeName[] {
  const { run, parts, known, approvals, breaker, failure } = results;
  const { snapshot, mode, stop } = run;
  const { holds } = snapshot;
  const at = run.clock.now();
  const isDone = !failure && !stop.aborted && !breaker.stopped();
  if (run.undo && isDone && !kindsIn(parts).some((kind) => hasDeferred(run, kind))) {
    for (const { id, plan } of approvals) if (plan === results.plan?.hash) holds.end(id, at);
  }
  // A run about a few people releases only theirs, and completes no first load.
  if (mode !== 'full' || failure || stop.aborted || run.selection || run.quarantined) return [];
  const whole = kindsIn(parts).filter((kind) => {
    const { certified, listing } = findingsOf(known, kind);
    return certified && listing?.complete && !breaker.endsEarly(kind) && !hasDeferred(run, kind);
  });
  const { sizes, absenceCounts, still } = findingsOf(known, 'contact');
  if (whole.includes('contact') && sizes.valid > 0) endFirstLoad(snapshot, run.id);
  // A first load deletes nobody. If the export was rewritten meanwhile, no further deletes were
  // sent.
  const isSettled = !run.firstLoad && absenceCounts && still();
  const settled = whole.filter((kind) => kind === 'template' || isSettled);
  const others = recordTypes.filter((kind) => run[`${kind}s`] && !settled.includes(kind));
  for (const { id } of approvals)
    if (!holds.isAbout({ list: id, kinds: others })) holds.end(id, at);
  return settled;
}

/**
 * Ends the holds that this run makes obsolete, of what is `settled`. Holds of stated
 * opt-outs also end after any certified reading of all people, because every run plans these
 * opt-outs for the people who are recorded. What has been done ends in any case. This happens after
 * the end of the run is stored: if the process dies halfway, the others last until another such
 * run plans nothing for the record, or until the changes are approved again.
 */
export async function closeHolds(
  results: RunResults,
  settled: readonly RecordTypeName[],
): Promise<void> {
  const { run, parts, known, failure } = results;
  const { holds, transaction } = run.snapshot;
  if (!holds.isAny()) return;
  const at = run.clock.now();
  const by = { at, run: run.id, undoes: run.undo?.run ?? '' };
  const approvals = run.mode === 'full' ? results.approvals.map(({ id }) => id) : [];
  for (const guard of guardNames) {
    const kind = guardRows[guard].recordType;
    if (!parts[`${kind}s`]) continue;
    if (run.undo) {
      transaction(() => holds.endDone({ ...everything, guard }, by));
      continue;
    }
    const { whole, certified } = findingsOf(known, kind);
    const isRead = known.has(kind) && onlyKey(run) === undefined && whole && certified;
    const isPlanned = isRead && !failure && !run.stop.aborted && results.plan !== undefined;
    const tells = (timedGuards.has(guard) && isPlanned) || settled.includes(kind);
    for await (const span of inTurns(run, holds.ranges({ guard }))) {
      const range = { ...span, at };
      const but = supersededKeys(run);
      transaction(() => {
        holds.endDone(range, by);
        if (!tells && run.mode === 'fast' && isPlanned) holds.unwant(range);
        if (!tells) return;
        const isListed = run.mode === 'full';
        holds.endUnwanted({ ...range, but, approvals, isListed });
      });
    }
  }
  if (run.mode === 'full') transaction(() => holds.endOldUndone({ at, before: at - weekMs }));
}

/**
 * Counts the held records by class. For stated opt-outs, people that the run did not read count
 * too.
 */
export function countAwaitingApproval({ run, verdict }: RunResults): Record<GuardClass, number> {
  const { countHeld } = run.snapshot.guarded;
  return byGuard((guard) => countHeld(guard) + (timedGuards.has(guard) ? verdict.unplanned : 0));
}

interface FoundReason {
  first: string;
  by: HoldReason['by'];
  /**
   * What was counted: how many of how many (0 if no share decided), and how many pass. Without
   * `people`, all that is held was counted.
   */
  people?: number;
  of: number;
  most: number;
}

type StoredReasons = Partial<Record<GuardClass, Partial<FoundReason> & { asked?: string }>>;
const reasons = storedFact<StoredReasons>('reasons of holds', 'the reasons of holds');

/**
 * Returns why changes of a class that still wait were held: what the run found that began it
 * (`first`), and what rules and canaries ask since (`asked`).
 */
export function storedReasons(meta: Meta): StoredReasons {
  return reasons.read(meta) ?? {};
}

/** Stores why a class is held, if nothing of it has waited yet. */
export function keepReason(run: RunContext, guard: GuardClass, found: FoundReason): void {
  const { holds, meta } = run.snapshot;
  const before = storedReasons(meta);
  if (before[guard]?.first !== undefined && holds.oldest(guard) !== undefined) return;
  storeReasons(run, { ...before, [guard]: { ...before[guard], ...found } });
}

/** Stores what rules and canaries ask, and forgets the reasons of which nothing waits any more. */
export function keepAsked(run: RunContext, asked: ReadonlyMap<GuardClass, string>): void {
  const { guarded, holds, meta } = run.snapshot;
  const before = storedReasons(meta);
  const now: StoredReasons = {};
  for (const guard of guardNames) {
    const all = { ...before[guard], ...(asked.has(guard) && { asked: asked.get(guard) ?? '' }) };
    if (Object.keys(all).length === 0) continue;
    if (guarded.countHeld(guard) > 0 || holds.oldest(guard) !== undefined) now[guard] = all;
  }
  storeReasons(run, now);
}

function storeReasons({ snapshot: { meta, transaction } }: RunContext, now: StoredReasons): void {
  const isNone = Object.keys(now).length === 0;
  transaction(() => reasons.write(meta, isNone ? undefined : now));
}
