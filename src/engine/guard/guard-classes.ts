/** What guards are about, and how much of it they hold. */
import { byGuard, guardNames, timedGuards, type GuardClass } from '../../domain/guard-classes.ts';
import type { GuardedChanges } from '../../snapshot/tables/guarded-changes.ts';
import type { RunState } from '../context/run-state.ts';

/** Records that are held, by class; stated opt-outs also of people of whom nothing was read. */
export function countAwaitingApproval({ run, review }: RunState): Record<GuardClass, number> {
  const { countWithheld } = run.snapshot.guarded;
  return byGuard((guard) => countWithheld(guard) + (timedGuards.has(guard) ? review.unplanned : 0));
}

export function isAwaitingApproval({ countChanges }: GuardedChanges): boolean {
  return countChanges() > 0;
}

/** Of records by class, whether there are any. */
export function isAnyLeft(held: Record<GuardClass, number>): boolean {
  return guardNames.some((of) => held[of] > 0);
}
