/**
 * People whom the CRM marks as deleted, or has out of scope, and who are subscribed on the platform
 * with a contact that is not the mirror's. No run touches them by itself, so they are counted and
 * listed until an operator decides.
 */
import { counted } from './values/counted.ts';

/** The causes under which they are listed as problems. */
export const unmanagedCauses = ['deleted-subscribed', 'out-of-scope-subscribed'] as const;
export type UnmanagedCause = (typeof unmanagedCauses)[number];

/** How many there are, for each cause. */
export interface UnmanagedPeople {
  deleted: number;
  outOfScope: number;
}

/** Returns the counts, given how many people each problem with a cause stands for. */
export function countUnmanaged(
  found: readonly { cause: string; count: number }[],
): UnmanagedPeople {
  const of = (cause: UnmanagedCause): number =>
    found.reduce((sum, one) => sum + (one.cause === cause ? one.count : 0), 0);
  return { deleted: of('deleted-subscribed'), outOfScope: of('out-of-scope-subscribed') };
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

/** What happens after an operator has decided to opt them out. */
export const optsOutUnmanaged =
  'nothing: an operator decided to opt them out; a full run does it, if need be after an approval';

/** What an acknowledged problem says. */
export const acknowledgedUnmanaged =
  'nothing: an operator has acknowledged that they stay subscribed';
