/** Formats who approved or rejected a change, and why. */
import type { KeptChange } from '../../store/tables/run-history.ts';

export interface ToldApprover {
  plan: string;
  by: string | null;
  reason: string | null;
}

/** Returns the approval of a change, or null if it needed none. */
export function approvalOf(change: KeptChange): ToldApprover | null {
  const { approvedPlan: plan, approvedBy: by, approvedFor: reason } = change;
  return plan === null ? null : { plan, by, reason };
}

/** Formats it as the end of a line: ", approved by anna on mail-1 (checked the export)" */
export function approvalWords(approval: ToldApprover | null): string {
  if (approval === null) return '';
  return `, approved${byWords(approval)}`;
}

/** Formats who decided, and why. */
export function byWords({ by, reason }: Omit<ToldApprover, 'plan'>): string {
  if (by === null) return '';
  return ` by ${by}${reason === null ? '' : ` (${reason})`}`;
}
