/**
 * Binds a snapshot to one mirror, by its name, and to one platform, API key (as a hash) and
 * organization, and proves that a new key belongs to the same organization. The recorded state is
 * valid in that account only: an opt-out that we made in one account may have been made by the
 * person in another.
 *
 *   the snapshot is bound to  the mirror uses      result
 *   no account, or is empty   any account          bound before anything is recorded
 *   platform A, key k         platform A, key k    the run continues without a check
 *   platform A, key k         platform A, key l    the key is proven to belong to the same
 *                                                  organization, or refused
 *   platform A                platform B           refused; `rebind` proves the organization and
 *                                                  moves the snapshot
 *   mirror a                  the name b           refused: each would take the other's people for
 *                                                  missing; `rebind` stores the new name
 *
 * The proof is a template that names the organization. If no template does, more than half of a
 * sample of 20 recorded records must exist in the account. The proof only reads; a failed read
 * proves nothing.
 */
import { createHmac } from 'node:crypto';
import type { Snapshot } from '../../store/snapshot.ts';
import type { Account, AccountReads } from '../context/mirror-context.ts';
import { contactKey } from '../../domain/values/contact-key.ts';
import { Invalid, Rejected, type Problem } from '../../domain/errors.ts';
import { each } from '../context/work-in-parts.ts';
import type { RunContext } from '../context/run-context.ts';
import type { PlatformListing } from '../context/run-results.ts';

const names = {
  mirror: 'mirror-name',
  url: 'platform-url',
  key: 'platform-key',
  organization: 'platform-organization',
} as const;

/** How a snapshot relates to an account. `free`: bound to none, or holds nothing of one alone. */
type BindingState = 'free' | 'ours' | 'other key' | 'other url' | 'other mirror';

/** Compares this account with the one that the snapshot is bound to. */
export function bindingState(snapshot: Snapshot, { mirror, url, apiKey }: Account): BindingState {
  const bound = boundTo(snapshot);
  if (bound.url === undefined || !snapshot.recorded.hasAny()) return 'free';
  if ((bound.mirror ?? mirror) !== mirror) return 'other mirror';
  if (bound.url !== url) return 'other url';
  const isSame = bound.key === undefined || bound.key === hashed(snapshot, apiKey);
  return isSame ? 'ours' : 'other key';
}

/** A value is undefined until it is known. */
export function boundTo({ meta }: Snapshot): Record<keyof typeof names, string | undefined> {
  const { mirror, url, key, organization } = names;
  return {
    mirror: meta.get(mirror),
    url: meta.get(url),
    key: meta.get(key),
    organization: meta.get(organization),
  };
}

export function bind(snapshot: Snapshot, { mirror, url, apiKey }: Account): void {
  const { meta, transaction } = snapshot;
  transaction(() => {
    meta.set(names.mirror, mirror);
    meta.set(names.url, url);
    meta.set(names.key, hashed(snapshot, apiKey));
  });
}

/** The key itself is not stored anywhere. */
function hashed({ meta }: Snapshot, apiKey: string): string {
  return createHmac('sha256', meta.get('name-key') ?? '')
    .update(`platform-key:${apiKey}`)
    .digest('hex');
}

const sampled = 20;
const atOnce = 5;

export interface AccountProof {
  same: boolean;
  by: 'organization' | 'contacts' | 'templates';
  /** How many of `of` sampled records exist in the account; 0 of 0 if the organization is named. */
  found: number;
  of: number;
  how: string;
}

export function strange({ how }: AccountProof): Invalid {
  return new Invalid(
    `platform.apiKey is not proven to be of the organization that the snapshot belongs to (${how})`,
    { fix: 'correct the key, or name another snapshot to begin anew; nothing was sent' },
  );
}

/** Proves whether the account is of the snapshot's organization. Throws the client's errors. */
export async function prove(
  snapshot: Snapshot,
  account: Account,
  signal: AbortSignal,
): Promise<AccountProof> {
  const { contacts, templates } = account.platform;
  const { organization: bound, url } = boundTo(snapshot);
  const shown = bound === undefined ? undefined : await organizationOf(account.platform, signal);
  if (shown !== undefined) {
    const same = shown === bound;
    const how = `its templates name ${same ? 'the same' : 'another'} organization`;
    return { same, by: 'organization', found: 0, of: 0, how };
  }
  const people = snapshot.recorded.sample({ kind: 'contact', most: sampled });
  // A platform shows an id to one organization only, but another platform may use the same id for
  // another person, so that after a move to one the address must match too.
  const isMoved = url !== account.url;
  let found = 0;
  await each(people, atOnce, async ({ id, key }) => {
    const contact = await contacts.retrieve(id, { signal, person: key });
    if (contact && (!isMoved || contactKey(contact.email) === key)) found += 1;
  });
  if (people.length > 0) return proofOf('contacts', found, people.length);
  const sample = snapshot.recorded.sample({ kind: 'template', most: sampled });
  const there = new Set<string>();
  if (sample.length > 0) {
    for await (const { id } of templates.all({}, { signal })) there.add(id);
  }
  return proofOf('templates', sample.filter(({ id }) => there.has(id)).length, sample.length);
}

function proofOf(by: 'contacts' | 'templates', found: number, of: number): AccountProof {
  const how =
    of === 0
      ? 'nothing is recorded that could be looked for'
      : `${found} of ${of} recorded ${by} that were looked for are there`;
  return { same: found * 2 > of, by, found, of, how };
}

/** Returns the organization that a template names, unless the key may not list templates. */
async function organizationOf(
  { templates }: AccountReads,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const { templates: listed } = await templates.list({ page: 1, limit: 1 }, { signal });
    return listed[0]?.organizationId ?? undefined;
  } catch (error) {
    if (error instanceof Rejected && error.status === 403) return undefined;
    throw error;
  }
}

/** Proves that the records are of the mirror's account. Returns how, if needed. Throws Invalid. */
export async function proveOwn(
  { snapshot, account }: { snapshot: Snapshot; account: Account },
  signal: AbortSignal,
): Promise<string | undefined> {
  const standing = bindingState(snapshot, account);
  const { mirror, url } = boundTo(snapshot);
  if (standing === 'other mirror') {
    const named = `the configuration names ${account.mirror}`;
    throw new Invalid(`the snapshot belongs to the mirror ${mirror}, ${named}`, {
      fix: 'name another snapshot; only if the mirror was renamed, run `crm-mirror rebind`',
    });
  }
  if (standing === 'other url') {
    const named = `the configuration names ${account.url}`;
    throw new Invalid(`the snapshot belongs to the platform at ${url}, ${named}`, {
      fix:
        'correct platform.url; if it is the same organization, move the ' +
        'snapshot with `crm-mirror rebind`; else name another snapshot to begin anew',
    });
  }
  if (standing !== 'other key') return undefined;
  const proof = await prove(snapshot, account, signal);
  if (!proof.same) throw strange(proof);
  return proof.how;
}

/** Binds the snapshot to a new API key once it is proven. Returns notes. Throws as the proof. */
export async function bindAccount(run: RunContext, account: Account): Promise<Problem[]> {
  const { snapshot, stop, writes } = run;
  const how = await proveOwn({ snapshot, account }, stop);
  if (how === undefined) return [];
  if (writes) bind(snapshot, account);
  const reason =
    `platform.apiKey is not the one before, but of the same organization (${how}); ` +
    `the snapshot ${writes ? 'belongs' : 'will belong'} to the new key`;
  return [{ code: 'note', reason }];
}

/** Binds a free snapshot, and stores the organization as soon as a listing names it. */
export function keepBinding(
  snapshot: Snapshot,
  account: Account,
  listings: readonly PlatformListing[],
): void {
  const isFree = bindingState(snapshot, account) === 'free';
  const { mirror, key, organization } = boundTo(snapshot);
  if (isFree || key === undefined || mirror === undefined) bind(snapshot, account);
  const shown = listings.flatMap((listing) => listing.organization ?? [])[0];
  const next = isFree ? shown : (organization ?? shown);
  const { meta, transaction } = snapshot;
  if (meta.get(names.organization) === next) return;
  transaction(() => {
    if (next === undefined) meta.drop(names.organization);
    else meta.set(names.organization, next);
  });
}
