/**
 * Binds a snapshot to one platform, API key and organization, and proves that a new key is of the
 * same organization. What is recorded holds in that account alone: an opt-out that was ours there
 * may be the person's own in another one.
 *
 *   the snapshot is of     the mirror is of     then
 *   nobody, or is empty    any account          it is bound, before anything is recorded
 *   platform A, key k      platform A, key k    the run goes on; nothing is asked
 *   platform A, key k      platform A, key l    the key is proven to be of the same organization,
 *                                               or refused
 *   platform A             platform B           it is refused; `rebind` proves it, and moves it
 *
 * The proof: a template names the organization; or, where none does, most of 20 recorded records
 * are in the account. It only reads, and what it cannot read proves nothing.
 */
import { contactKey } from '../../records/contact/observe/observed-contact.ts';
import { Invalid, Rejected, type Problem } from '../../domain/errors.ts';
import type { Platform } from '../../platform/api-client.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import { bind, bindingState, boundTo, keepOrganization } from './account-binding.ts';
import { each } from '../context/work-in-parts.ts';
import type { Account, Mirror } from '../context/mirror-context.ts';
import type { RunContext } from '../context/run-context.ts';
import type { PlatformListing } from '../context/run-findings.ts';

const sampled = 20;
const atOnce = 5;

/** The result of the proof. */
export interface AccountProof {
  same: boolean;
  by: 'organization' | 'contacts' | 'templates';
  /** How many of the `of` sampled records are there; 0 of 0 when the organization is named. */
  found: number;
  of: number;
  /** The proof in words. */
  how: string;
}

/** Returns the error for an account that is not proven. */
export function strange({ how }: AccountProof): Invalid {
  return new Invalid(
    `platform.apiKey is not proven to be of the organization that the snapshot belongs to (${how})`,
    { fix: 'correct the key, or name another snapshot to begin anew; nothing was sent' },
  );
}

/** Proves whether the account is of the snapshot's organization. Throws what the client throws. */
export async function prove(
  snapshot: Snapshot,
  account: Account,
  signal: AbortSignal,
): Promise<AccountProof> {
  const { platform } = account;
  const bound = boundTo(snapshot).organization;
  const shown = bound === undefined ? undefined : await organizationOf(platform, signal);
  if (shown !== undefined) {
    const same = shown === bound;
    const how = `its templates name ${same ? 'the same' : 'another'} organization`;
    return { same, by: 'organization', found: 0, of: 0, how };
  }
  const contacts = await contactsThere(snapshot, account, signal);
  if (contacts.of > 0) return proofOf('contacts', contacts);
  return proofOf('templates', await templatesThere(snapshot, platform, signal));
}

interface Count {
  found: number;
  of: number;
}

function proofOf(by: 'contacts' | 'templates', { found, of }: Count): AccountProof {
  const how =
    of === 0
      ? 'nothing is recorded that could be looked for'
      : `${found} of ${of} recorded ${by} that were looked for are there`;
  return { same: found * 2 > of, by, found, of, how };
}

/** Undefined: there is no template, it names no organization, or the key may not list them. */
async function organizationOf(
  { templates }: Account['platform'],
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

/**
 * Counts the sampled contacts that are there. A platform shows an id to one organization alone;
 * another platform may have the same id for somebody else, so there the address has to be the same.
 */
async function contactsThere(
  snapshot: Snapshot,
  { url, platform: { contacts } }: Account,
  signal: AbortSignal,
): Promise<Count> {
  const sample = snapshot.recorded.sample('contact', sampled);
  const isMoved = boundTo(snapshot).url !== url;
  let found = 0;
  await each(sample, atOnce, async ({ id, key }) => {
    const contact = await contacts.retrieve(id, { signal });
    if (contact && (!isMoved || contactKey(contact.email) === key)) found += 1;
  });
  return { found, of: sample.length };
}

async function templatesThere(
  { recorded }: Snapshot,
  { templates }: Pick<Platform, 'templates'>,
  signal: AbortSignal,
): Promise<Count> {
  const sample = recorded.sample('template', sampled);
  if (sample.length === 0) return { found: 0, of: 0 };
  const there = new Set<string>();
  for await (const { id } of templates.all({}, { signal })) there.add(id);
  return { found: sample.filter(({ id }) => there.has(id)).length, of: sample.length };
}

/**
 * Proves that what is recorded holds for the mirror's account. Returns how, in words; undefined:
 * nothing had to be proven. Throws Invalid, and what the platform answers to the proof.
 */
export async function proveOwn(
  { snapshot, account }: Pick<Mirror, 'snapshot' | 'account'>,
  signal: AbortSignal,
): Promise<string | undefined> {
  const standing = bindingState(snapshot, account);
  if (standing === 'other url') {
    const { url } = boundTo(snapshot);
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

/**
 * Binds the snapshot to a new API key that is proven to be of the same organization. Returns what
 * the summary says of it. Throws as the proof does.
 */
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

/** Binds a free snapshot, and keeps the organization as soon as a listing names it. */
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
