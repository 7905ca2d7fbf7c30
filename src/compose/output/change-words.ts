/** The words for changes, and for who approved or rejected them, and why. */
import type { KeptChange } from '../../store/tables/run-history.ts';

const words: Readonly<Record<string, readonly [plan: string, done: string]>> = {
  create: ['create', 'created'],
  opt_in: ['opt in', 'opted in'],
  opt_out: ['opt out', 'opted out'],
  delete: ['delete', 'deleted'],
  update: ['update', 'updated'],
  complete: ['complete', 'completed'],
  archive: ['archive', 'archived'],
};

/** Returns what a change is called before it is made, or when it is done: create, created. */
export function changeName(op: string, isDone: boolean): string {
  return words[op]?.[isDone ? 1 : 0] ?? op.replaceAll('_', ' ');
}

/** Returns what became of a change. */
export function outcomeName(state: string): string {
  return outcomes[state] ?? state;
}

const outcomes: Readonly<Record<string, string>> = {
  acked: 'done',
  rejected: 'refused',
  stale: 'no longer right and not sent',
  unknown: 'outcome unknown',
  sent: 'sent, without an answer yet',
  planned: 'not sent',
};

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
