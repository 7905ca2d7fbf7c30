/**
 * To whom a snapshot belongs: one platform, API key and organization. What is recorded holds there
 * alone; an opt-out that was ours there may be the person's own elsewhere.
 *
 *   the snapshot is of     the mirror is of     →
 *   nobody, or is empty                         bound freely, before anything is recorded
 *   platform A, key k      platform A, key k    goes on; nothing is asked
 *   platform A, key k      platform A, key l    proven to be of the same organization, or refused
 *   platform A             platform B           refused; `rebind` proves it, and moves it there
 */
import { Invalid } from '../../domain/errors.ts';
import { bind, boundTo, keepOrganization, bindingState } from './account-binding.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import type { Account, Mirror } from '../context/mirror-context.ts';
import type { RunContext } from '../context/run-context.ts';
import type { PlatformListing } from '../context/source-knowledge.ts';
import { prove, strange } from './account-proof.ts';

/**
 * Whether what is recorded holds for the mirror's account: answers how that was proven, undefined
 * where nothing had to be. Throws Invalid, and what the platform answers to the proof.
 */
export async function proveOwn(
  { snapshot, account }: Pick<Mirror, 'snapshot' | 'account'>,
  signal: AbortSignal,
): Promise<string | undefined> {
  const standing = bindingState(snapshot, account);
  if (standing === 'other url') {
    throw new Invalid(
      `the snapshot belongs to the platform at ${boundTo(snapshot).url}, the configuration names ` +
        `${account.url} → correct platform.url; if it is the same organization, move the ` +
        'snapshot with `crm-mirror rebind`; else name another snapshot to begin anew',
    );
  }
  if (standing !== 'other key') return undefined;
  const proof = await prove(snapshot, account, signal);
  if (!proof.same) throw strange(proof);
  return proof.how;
}

/**
 * Binds the snapshot to a new API key that is proven to be of the same organization. Returns what
 * the summary says of it. Throws as the proof does.
 */
export async function bindAccount(run: RunContext, account: Account): Promise<string[]> {
  const { snapshot, stop, writes } = run;
  const how = await proveOwn({ snapshot, account }, stop);
  if (how === undefined) return [];
  if (writes) bind(snapshot, account);
  return [
    `platform.apiKey is not the one before, but of the same organization (${how}); ` +
      `the snapshot ${writes ? 'belongs' : 'will belong'} to the new key`,
  ];
}

/** Binds what is free, and keeps the organization as soon as a listing names it. */
export function keepBinding(
  snapshot: Snapshot,
  account: Account,
  listings: readonly PlatformListing[],
): void {
  const isFree = bindingState(snapshot, account) === 'free';
  const { key, organization } = boundTo(snapshot);
  if (isFree || key === undefined) bind(snapshot, account);
  const shown = listings.flatMap((listing) => listing.organization ?? [])[0];
  keepOrganization(snapshot, isFree ? shown : (organization ?? shown));
}
