/** Moves the canaries of a mirror on when a run ends. */
import type { Canary } from '../../domain/guards/canary.ts';
import { guardRows } from '../../domain/guard-classes.ts';
import { type AskedClass, askedClasses } from '../../domain/guards/plan-rule.ts';
import type { RecordType } from '../../records/record-type.ts';
import { findingsNamed } from '../context/run-findings.ts';
import { nowByBoth } from '../context/clock-difference.ts';
import type { RunState } from '../context/run-state.ts';
import { moveCanary } from './canary-book.ts';
import { sentOf } from './canary-slice.ts';

/**
 * Moves the canaries on when a run ends: a slice whose changes have all been made begins to wait,
 * and what no canary is needed for any more ends.
 */
export function closeCanaries(state: RunState): void {
  const { run, review } = state;
  if (!run.writes || !review.canaries) return;
  for (const guard of askedClasses) {
    const canary = review.canaries.classes[guard];
    const type = state.parts.find(({ type: { name: of } }) => of === guardRows[guard].recordType);
    if (!canary || !type || !hasDoneAll(state, guard, type.type)) continue;
    if (canary.state === 'applying') {
      const isApplied = sentOf(run.snapshot, guard, canary).length > 0;
      const event = isApplied ? { is: 'applied' as const, time: nowByBoth(run) } : notApplied;
      moveCanary(state, guard, event);
    } else if (!isAnyPlanned(state, guard, canary.state)) {
      moveCanary(state, guard, { is: canary.state === 'failed' ? 'nothing planned' : 'all made' });
    }
  }
}

const notApplied = { is: 'not applied' as const };

/** Returns whether a run has made what it could of a class, from a complete reading. */
function hasDoneAll(
  { run, known, breaker, ...state }: RunState,
  guard: AskedClass,
  type: RecordType,
) {
  const { guarded, journal } = run.snapshot;
  const isCut = state.failure !== undefined || run.stop.aborted || breaker.endsEarly(type);
  if (isCut || run.quarantined || !state.plan || !known.get(type)?.certified) return false;
  if (guarded.deferred.count(guard, 'window') > 0 || guarded.canary.countOpen(guard, run.id) > 0)
    return false;
  return journal.open(type.name).every((change) => change.guard !== guard);
}

/**
 * Returns whether the run has planned anything of a class. Only a full run knows all of it. What
 * was rejected is in no plan, but a canary that has failed is not over while the CRM wants it.
 */
function isAnyPlanned(
  { run, known }: RunState,
  guard: AskedClass,
  state: Canary['state'],
): boolean {
  const { guarded, awaitingApproval } = run.snapshot;
  const { recordType } = guardRows[guard];
  const isWhole =
    run.mode === 'full' && findingsNamed(known, recordType).listing?.complete === true;
  const waiting = guarded.deferred.count(guard) + guarded.countWithheld(guard);
  const isRejected = state === 'failed' && awaitingApproval.refusedOps(recordType).length > 0;
  return !isWhole || waiting > 0 || isRejected;
}
