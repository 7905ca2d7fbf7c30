/**
 * Whether an account is of the organization that a snapshot belongs to: a template names it; where
 * none does, most of 20 recorded records are there. It only reads, and is no proof when it cannot.
 */
import { contactKey } from '../../records/contact/observe/observed-contact.ts';
import { Invalid, Rejected } from '../../domain/errors.ts';
import type { Platform } from '../../platform/api-client.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import { boundTo } from './account-binding.ts';
import { each } from '../context/bounded-concurrency.ts';
import type { Account } from '../context/mirror-context.ts';

const sampled = 20;
const atOnce = 5;

export interface AccountProof {
  same: boolean;
  by: 'organization' | 'contacts' | 'templates';
  /** Of `of` sampled records so many are there; 0 of 0 when the organization is named. */
  found: number;
  of: number;
  /** In words. */
  how: string;
}

/** What to say when it is not proven. */
export function strange({ how }: AccountProof): Invalid {
  return new Invalid(
    `platform.apiKey is not proven to be of the organization that the snapshot belongs to (${how}) ` +
      '→ correct the key, or name another snapshot to begin anew; nothing was sent',
  );
}

/** Whether the account is of the snapshot's organization. Throws what the client throws. */
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

/** Undefined: there is no template, it names none, or the key may not list them. */
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
 * A platform shows an id to one organization alone; another platform may have the same id for
 * somebody else: there the address has to be the same.
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
