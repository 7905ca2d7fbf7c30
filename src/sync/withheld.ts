/** What guards are about, and how much of it they hold. */
import type { GuardClass } from '../model/change.ts';
import type { Guarding } from '../snapshot/guarding.ts';

/** Templates have no guards. */
export const guardedKind = 'contact';
export const guardClasses: readonly GuardClass[] = ['delete', 'opt_in'];

/** People who are held, by class. */
export function countHeld({ countWithheld }: Guarding): Record<GuardClass, number> {
  return { delete: countWithheld('delete'), opt_in: countWithheld('opt_in') };
}

export function isHolding({ countChanges }: Guarding): boolean {
  return countChanges() > 0;
}

/** Of people by class, whether there are any. */
export function isLeft(people: Record<GuardClass, number>): boolean {
  return guardClasses.some((of) => people[of] > 0);
}
