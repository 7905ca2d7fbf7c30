/**
 * Stores in a snapshot which account it belongs to: the URL, a hash of the API key, and the
 * organization.
 */
import { createHmac } from 'node:crypto';
import type { Snapshot } from '../../store/snapshot.ts';
import type { Account } from '../context/mirror-context.ts';

const names = {
  url: 'platform-url',
  key: 'platform-key',
  organization: 'platform-organization',
} as const;

/**
 * How a snapshot relates to an account. `free`: it is bound to no account, or it holds no record
 * that is valid in only one account.
 */
export type BindingState = 'free' | 'ours' | 'other key' | 'other url';

/** Compares this account with the one that the snapshot is bound to. */
export function bindingState(snapshot: Snapshot, { url, apiKey }: Account): BindingState {
  const bound = boundTo(snapshot);
  if (bound.url === undefined || snapshot.recorded.isEmpty()) return 'free';
  if (bound.url !== url) return 'other url';
  const isSame = bound.key === undefined || bound.key === hashed(snapshot, apiKey);
  return isSame ? 'ours' : 'other key';
}

/** Returns what the snapshot stores about its account; a value is undefined until it is known. */
export function boundTo({ meta }: Snapshot): Record<keyof typeof names, string | undefined> {
  const { url, key, organization } = names;
  return { url: meta.get(url), key: meta.get(key), organization: meta.get(organization) };
}

/** Binds the snapshot to an account. */
export function bind(snapshot: Snapshot, { url, apiKey }: Account): void {
  const { meta, transaction } = snapshot;
  transaction(() => {
    meta.set(names.url, url);
    meta.set(names.key, hashed(snapshot, apiKey));
  });
}

/** Stores the organization of the account, or removes it if it is no longer known (undefined). */
export function keepOrganization(
  { meta, transaction }: Snapshot,
  organization: string | undefined,
): void {
  if (meta.get(names.organization) === organization) return;
  transaction(() => {
    if (organization === undefined) meta.drop(names.organization);
    else meta.set(names.organization, organization);
  });
}

/** Hashes the API key with the snapshot's secret. The key itself is not stored anywhere. */
function hashed({ meta }: Snapshot, apiKey: string): string {
  return createHmac('sha256', meta.get('name-key') ?? '')
    .update(`platform-key:${apiKey}`)
    .digest('hex');
}
