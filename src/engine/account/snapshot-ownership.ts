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
import { bind, boundTo, keepOrganization, standingOf } from './account-binding.ts';
import type { RunState } from '../context/run-state.ts';
import type { Mirror } from '../context/mirror-context.ts';
import { prove, strange } from './account-proof.ts';

/**
 * Whether what is recorded holds for the mirror's account: answers how that was proven, undefined
 * where nothing had to be. Throws Invalid, and what the platform answers to the proof.
 */
export async function proveOwn(
  { snapshot, account }: Pick<Mirror, 'snapshot' | 'account'>,
  signal: AbortSignal,
): Promise<string | undefined> {
  const standing = standingOf(snapshot, account);
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

/** The first step of a run. Throws as the proof does. */
export async function checkOwnership({ run, notes }: RunState): Promise<void> {
  const how = await proveOwn(run, run.stop);
  if (how === undefined) return;
  if (run.writes) bind(run.snapshot, run.account);
  notes.push(
    `platform.apiKey is not the one before, but of the same organization (${how}); ` +
      `the snapshot ${run.writes ? 'belongs' : 'will belong'} to the new key`,
  );
}

/** Binds what is free, and keeps the organization as soon as a listing names it. */
export function claimSnapshot({ run: { snapshot, account }, known }: RunState): void {
  const isFree = standingOf(snapshot, account) === 'free';
  const { key, organization } = boundTo(snapshot);
  if (isFree || key === undefined) bind(snapshot, account);
  const listings = [...known.values()].flatMap(({ listing }) => listing ?? []);
  const shown = listings.flatMap((listing) => listing.organization ?? [])[0];
  keepOrganization(snapshot, isFree ? shown : (organization ?? shown));
}
