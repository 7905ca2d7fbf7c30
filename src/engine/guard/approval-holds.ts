/**
 * Names the changes that guards withhold, and carries them from one run to the next, range by range
 * because there may be many.
 *
 * A stated opt-out is held for `holdFor` at most, by the platform's clock. A late opt-out is worse
 * than one that has to be undone, so that a hold also ends without that clock.
 *
 *   the platform has never stated its time    our clock counts; times ahead of it become now
 *   it does not state it now                  our clock counts, corrected by what is known
 *   the clocks are an hour apart              a hold of which the platform's time is not known
 *                                             begins when it is known
 *   a backup is restored                      times are absolute, so expired holds stay expired
 */
import { hash } from 'node:crypto';
import { type Steps, inTurns, eachPart } from '../context/work-in-parts.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import type { RecordType } from '../../records/record-type.ts';
import { type GuardClass, guardNames, guardRows, timedGuards } from '../../domain/guard-classes.ts';
import type { Began } from '../../store/guards/approval-holds.ts';
import { findingsOf, type RunState } from '../context/run-state.ts';
import { aheadOf, confirmDifference, nowByKnown } from '../context/platform-knowledge.ts';
import { type RunContext, supersededKeys } from '../context/run-context.ts';
import { onlyKey } from '../context/mirror-context.ts';
import { yielding } from '../plan/commit-plan.ts';
import { planning } from '../report/run-summary.ts';
import type { Guarded } from '../../store/database/key-range.ts';

/** Holds, in later runs too, the changes that this run withholds. A new hold starts now. */
export function* addHolds(run: RunContext): Steps {
  // Only the command `undo` makes these changes, so that they make nobody wait in other runs.
  if (run.undo) return;
  const { snapshot } = run;
  const { awaitingApproval, transaction } = snapshot;
  const since = nowByKnown(run);
  yield* eachWithheld(snapshot, (guarded) => {
    const byPart = timedGuards.has(guarded.guard);
    transaction(() => awaitingApproval.stand(guarded, { ...since, byPart }));
  });
}

/**
 * Ends the holds that this run makes obsolete, in the record types of `settled`. Holds of stated
 * opt-outs also end after any certified reading of all people, because every run plans these
 * opt-outs, and once an opt-out is acknowledged.
 */
export async function closeHolds(state: RunState, settled: readonly RecordType[]): Promise<void> {
  const { run, parts, known, failure } = state;
  for (const guard of guardNames) {
    const isTimed = timedGuards.has(guard);
    const { recordType: name } = guardRows[guard];
    const type = parts.find((part) => part.type.name === name)?.type;
    if (!type) continue;
    const { whole, certified } = findingsOf(state, type);
    const isRead = known.has(type) && onlyKey(run) === undefined && whole && certified;
    const tells = isTimed && isRead && !failure && !run.stop.aborted && state.plan !== undefined;
    if (tells || settled.includes(type)) await endObsolete(state, { guard, type });
    if (isTimed)
      run.snapshot.transaction(() => run.snapshot.awaitingApproval.dropDone(guard, run.id));
  }
}

/**
 * Ends the holds of records for which the run plans nothing and, after a full run, the holds whose
 * approval ends with it. This happens after the end of the run is stored: if the process dies
 * halfway, the other holds last until another such run plans nothing for the record, or until the
 * changes are approved again.
 */
async function endObsolete(
  { run, approvals, rejections }: RunState,
  { guard, type }: { guard: GuardClass; type: RecordType },
): Promise<void> {
  const { awaitingApproval, transaction } = run.snapshot;
  const ended = run.mode === 'full' ? approvals : [];
  for await (const range of inTurns(run, awaitingApproval.ranges(guard, type.name))) {
    const holds = { ...range, guard, kind: type.name };
    const but = supersededKeys(run, type);
    transaction(() => {
      awaitingApproval.dropUnwanted(holds, but);
      for (const { plan } of ended) awaitingApproval.dropApproved(holds, { plan, but });
      if (run.mode === 'full') awaitingApproval.dropRejected(holds, { but, plans: rejections });
    });
  }
}

/**
 * Requests the platform's time if any changes have a holding time, and corrects the holds by it;
 * or if the clocks seem to differ.
 */
export async function beginHolds({ run, parts }: RunState): Promise<void> {
  if (onlyKey(run) !== undefined) return;
  // A run of templates only asks for nothing else.
  if (parts.some(({ type }) => type.name === 'contact')) await confirmDifference(run);
  const { awaitingApproval, transaction } = run.snapshot;
  for (const guard of timedGuards) {
    const isPart = parts.some(({ type }) => type.name === guardRows[guard].recordType);
    if (!isPart || awaitingApproval.oldest(guard) === undefined) continue;
    await run.askPlatformTime();
    if (run.writes) transaction(() => awaitingApproval.mend(guard, nowByKnown(run)));
  }
}

/** Does the same as `addHolds`, after requesting the platform's time if the holds need it. */
export async function holdWithheld(run: RunContext): Promise<void> {
  const { guarded } = run.snapshot;
  if ([...timedGuards].some((guard) => guarded.countWithheld(guard) > 0)) {
    await run.askPlatformTime();
  }
  await yielding(run, addHolds(run));
}

/** Returns when a hold of this class that ends now has begun. */
export function endsOf(run: RunContext, guard: GuardClass): Began {
  const { holdForMs = Infinity } = run.guards[guard];
  return { by: run.clock.now() - holdForMs, aheadMs: aheadOf(run) };
}

/** The changes that a run withholds, named by a hash of their content. */
export interface Batch {
  name: string;
  /** The number of changes. */
  size: number;
}

/** Names and counts the changes that a run withholds. */
export function* batchOf({ snapshot }: RunContext): Steps<Batch> {
  const content = planning();
  const stated = planning();
  let size = 0;
  yield* eachWithheld(snapshot, (guarded) => {
    const changes = snapshot.guarded.withheld(guarded);
    content.add(changes);
    stated.add(changes.filter((change) => change.stated === 1));
    size += changes.length;
  });
  return { name: `${content.done().hash}-${stated.done().hash}`, size };
}

function* eachWithheld({ guarded }: Snapshot, work: (guarded: Guarded) => void) {
  for (const guard of guardNames) {
    yield* eachPart(guarded.withheldRanges(guard), (range) => work({ ...range, guard }));
  }
}

/**
 * Returns the hash under which a person approves what the run withholds. It is the hash of the
 * plan, unless an earlier run stored this plan without some of the changes that are withheld now:
 * an approval, even if it is repeated, must cover only what it showed. Plans of `undo` always keep
 * the hash of the plan, because only that command makes their changes.
 */
export function* hashToHold({ run, plan }: RunState): Steps<string | undefined> {
  if (!plan || run.undo) return plan?.hash;
  let showsAll = true;
  yield* eachWithheld(run.snapshot, (guarded) => {
    showsAll &&= run.snapshot.awaitingApproval.shows(plan.hash, guarded);
  });
  if (showsAll) return plan.hash;
  const { name } = yield* batchOf(run);
  return hash('sha256', JSON.stringify([plan.hash, name])).slice(0, 16);
}
