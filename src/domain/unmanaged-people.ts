/**
 * People whom the CRM marks as deleted, or has out of scope, and who are subscribed with a contact
 * that is not the mirror's. No run touches them; they are listed until an operator decides.
 */
import type { ProblemCause } from './problem-causes.ts';
import { counted } from './values/counted.ts';

/** How the CRM names them. */
export type UnmanagedAs = keyof UnmanagedPeople;

export interface UnmanagedPeople {
  deleted: number;
  outOfScope: number;
}

/** The causes under which they are listed: `isProtected` if contacts.protect covers the person. */
export const unmanagedCauses = {
  'deleted-subscribed': { as: 'deleted', isProtected: false },
  'deleted-protected': { as: 'deleted', isProtected: true },
  'out-of-scope-subscribed': { as: 'outOfScope', isProtected: false },
  'out-of-scope-protected': { as: 'outOfScope', isProtected: true },
} as const satisfies Partial<Record<ProblemCause, { as: UnmanagedAs; isProtected: boolean }>>;
export type UnmanagedCause = keyof typeof unmanagedCauses;

/** Returns whether a problem with this cause is about one of them. */
export function isUnmanagedCause(cause: string): cause is UnmanagedCause {
  return Object.hasOwn(unmanagedCauses, cause);
}

/** Returns the counts, given how many people each problem with a cause stands for. */
export function countUnmanaged(
  found: readonly { cause: string; count: number }[],
): UnmanagedPeople {
  const counts = { deleted: 0, outOfScope: 0 };
  for (const { cause, count } of found) {
    if (isUnmanagedCause(cause)) counts[unmanagedCauses[cause].as] += count;
  }
  return counts;
}

/** Returns a sentence for each cause that concerns anybody. */
export function sayUnmanaged({ deleted, outOfScope }: UnmanagedPeople): string[] {
  const say = (n: number, who: string): string =>
    `${counted(n, 'person', 'people')} ${who} ${n === 1 ? 'is' : 'are'} subscribed on the platform ` +
    'and not managed by this mirror';
  return [
    ...(deleted > 0 ? [say(deleted, 'whom the CRM marks as deleted')] : []),
    ...(outOfScope > 0 ? [say(outOfScope, 'whom contacts.include leaves out')] : []),
  ];
}

/** How to go on, before an operator has decided. */
export const decideUnmanaged =
  '`crm-mirror unmanaged` names them: have them opted out, or acknowledge that they stay';

/** How to go on with a protected person. */
export const protectedUnmanaged =
  'contacts.protect covers the person, so `crm-mirror unmanaged` does not opt them out: ' +
  'acknowledge that they stay, or opt out one person with `crm-mirror resolve`';

export const optsOutUnmanaged =
  'nothing: an operator decided to opt them out; a full run does it, if need be after an approval';

/** What an acknowledged problem says. */
export const acknowledgedUnmanaged =
  'nothing: an operator has acknowledged that they stay subscribed; ' +
  '`crm-mirror unmanaged --decided acknowledge` takes it back';
