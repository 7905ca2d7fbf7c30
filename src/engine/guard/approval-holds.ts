/**
 * Carries the changes that guards withhold from one run to the next, range by range because there
 * may be many.
 *
 * A stated opt-out is held for `holdFor` at most, by our clock or the platform's, whichever shows
 * that more time has passed. A late opt-out is worse than one that has to be undone.
 *
 *   our clock is set back              the platform's clock counts; times ahead of ours become now
 *   the platform does not state it     only our clock counts
 *   a backup is restored               its times are absolute, so expired holds stay expired
 */
import type { RecordType } from '../../records/record-type.ts';
import { type GuardClass, guardNames, guardRows, timedGuards } from '../../domain/guard-classes.ts';
import type { Ends, HeldSince } from '../../snapshot/guards/approval-holds.ts';
import { findingsOf, type RunState } from '../context/run-state.ts';
import { type RunContext, supersededKeys } from '../context/run-context.ts';
import { onlyKey } from '../context/mirror-context.ts';
import { inTurns } from '../context/work-in-parts.ts';
import { yielding } from '../plan/commit-plan.ts';
import { eachWithheld } from './withheld-batch.ts';

/** Holds, in later runs too, the changes that this run withholds. A new hold starts now. */
export function* addHolds(run: RunContext): Generator<undefined, void> {
  // Only the command `undo` makes these changes, so that they make nobody wait in other runs.
  if (run.undo) return;
  const { snapshot } = run;
  const { awaitingApproval, transaction } = snapshot;
  const since = sinceNow(run);
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
export async function closeHolds(context: RunState, settled: readonly RecordType[]): Promise<void> {
  const { run, parts, known, failure } = context;
  for (const guard of guardNames) {
    const isTimed = timedGuards.has(guard);
    const { recordType: name } = guardRows[guard];
    const type = parts.find((part) => part.type.name === name)?.type;
    if (!type) continue;
    const { whole, certified } = findingsOf(context, type);
    const isRead = known.has(type) && onlyKey(run) === undefined && whole && certified;
    const tells = isTimed && isRead && !failure && !run.stop.aborted && context.plan !== undefined;
    if (tells || settled.includes(type)) await endObsolete(context, { guard, type });
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
 * Requests the platform's time if any changes have a holding time, and corrects the holds by it.
 */
export async function beginHolds({ run, parts }: RunState): Promise<void> {
  if (onlyKey(run) !== undefined) return;
  const { awaitingApproval, transaction } = run.snapshot;
  for (const guard of timedGuards) {
    const isPart = parts.some(({ type }) => type.name === guardRows[guard].recordType);
    if (!isPart || awaitingApproval.oldest(guard) === undefined) continue;
    await run.platformTime.ask();
    if (run.writes) transaction(() => awaitingApproval.mend(guard, sinceNow(run)));
  }
}

/** Does the same as `addHolds`, after requesting the platform's time if the holds need it. */
export async function holdWithheld(run: RunContext): Promise<void> {
  const { guarded } = run.snapshot;
  if ([...timedGuards].some((guard) => guarded.countWithheld(guard) > 0)) {
    await run.platformTime.ask();
  }
  await yielding(run, addHolds(run));
}

/** Returns the cut-off times by both clocks: changes held since then or longer have expired. */
export function endsOf(run: RunContext, guard: GuardClass): Ends {
  const { at, platformAt } = sinceNow(run);
  const { holdForMs = Infinity } = run.guards[guard];
  return { local: at - holdForMs, platform: platformAt === null ? null : platformAt - holdForMs };
}

/** Returns the current time by both clocks. */
function sinceNow({ clock, platformTime }: RunContext): HeldSince {
  return { at: clock.now(), platformAt: platformTime.now() };
}
