/** Who is held from one run to the next, and what of them: range by range, since it may be many. */
import type { RecordType } from '../../records/record-type.ts';
import { type GuardClass, guardNames, guardRows, timedGuards } from '../../domain/guard-classes.ts';
import { planning } from '../report/change-plan.ts';
import type { Guarded } from '../../snapshot/database/key-range.ts';
import type { HeldSince } from '../../snapshot/tables/approval-holds.ts';
import { findingsOf, type RunState } from '../context/run-state.ts';
import { type RunContext, supersededKeys } from '../context/run-context.ts';
import { onlyKey } from '../context/mirror-context.ts';
import { eachRange, forEachRange } from '../context/work-in-parts.ts';

/** Has whom a run withholds held in later runs too; what is new stands since then. */
export function* addHolds({ snapshot }: RunContext, since: HeldSince): Generator<undefined, void> {
  const { awaitingApproval, transaction } = snapshot;
  yield* eachWithheld(snapshot, (guarded) => {
    const byPart = timedGuards.has(guarded.guard);
    transaction(() => awaitingApproval.stand(guarded, { ...since, byPart }));
  });
}

/** What a run withholds, named by its content. */
export interface Batch {
  name: string;
  /** How many changes that is. */
  size: number;
}

export function* batchOf({ snapshot }: RunContext): Generator<undefined, Batch> {
  const content = planning();
  let size = 0;
  yield* eachWithheld(snapshot, (guarded) => {
    const changes = snapshot.guarded.withheld(guarded);
    content.add(changes);
    size += changes.length;
  });
  return { name: content.done().hash, size };
}

function* eachWithheld(
  { guarded }: RunContext['snapshot'],
  work: (guarded: Guarded) => void,
): Generator<undefined> {
  for (const guard of guardNames) {
    yield* eachRange(guarded.withheldRanges(guard), (range) => work({ ...range, guard }));
  }
}

/**
 * Who is held no longer after this run. Of stated opt-outs a whole reading is enough to tell, for
 * they are planned in every run; and what was acknowledged is over.
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
    if (tells || settled.includes(type)) await settleStanding(context, { guard, type });
    if (isTimed)
      run.snapshot.transaction(() => run.snapshot.awaitingApproval.dropDone(guard, run.id));
  }
}

/**
 * Of whom a run wants nothing that could tell, or whose approval it ended (a full one), is held no
 * longer. After the run itself: with a process that ends in the middle, some are held until the
 * next such run wants nothing of them, or they are approved once more.
 */
async function settleStanding(
  { run, approvals }: RunState,
  { guard, type }: { guard: GuardClass; type: RecordType },
): Promise<void> {
  const { awaitingApproval, transaction } = run.snapshot;
  const ended = run.mode === 'full' ? approvals : [];
  await forEachRange(run, awaitingApproval.ranges(guard, type.name), (range) => {
    const standing = { ...range, guard, kind: type.name };
    const but = supersededKeys(run, type);
    transaction(() => {
      awaitingApproval.dropUnwanted(standing, but);
      for (const { plan } of ended) awaitingApproval.dropApproved(standing, { plan, but });
    });
  });
}
