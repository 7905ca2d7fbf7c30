/**
 * To whom a snapshot belongs: one platform, API key and organization. What is recorded holds there
 * alone; an opt-out that was ours there may be the person's own elsewhere.
 *
 *   the snapshot is of      the mirror is of         →
 *   nobody, or has no record                         bound freely, before anything is recorded
 *   platform A, key k       platform A, key k        goes on; nothing is asked
 *   platform A, key k       platform A, key l        proven to be of the same organization, or refused
 *   platform A              platform B               refused; `rebind` proves it, and moves it there
 *
 * The proof: a template names the organization; where none does, most of 20 recorded records are
 * there. It only reads, and is no proof when it cannot.
 */
import { createHmac } from 'node:crypto';
import { contactKey } from '../kind/contact/observe.ts';
import { Invalid, Rejected } from '../model/errors.ts';
import type { Platform } from '../platform/client.ts';
import type { Snapshot } from '../snapshot/snapshot.ts';
import type { Course } from './course.ts';
import { each } from './each.ts';
import type { Account } from './mirror.ts';

const names = {
  url: 'platform-url',
  key: 'platform-key',
  organization: 'platform-organization',
} as const;
const sampled = 20;
const atOnce = 5;

export type Standing = 'free' | 'ours' | 'other key' | 'other url';

export interface Proof {
  same: boolean;
  by: 'organization' | 'contacts' | 'templates';
  /** Of `of` sampled records so many are there; 0 of 0 when the organization is named. */
  found: number;
  of: number;
  /** In words. */
  how: string;
}

/** The first step of a run. Throws Invalid, and what the platform answers to the proof. */
export async function belong({ run, notes }: Course): Promise<void> {
  const { snapshot, account } = run;
  const standing = standingOf(snapshot, account);
  if (standing === 'other url') {
    throw new Invalid(
      `the snapshot belongs to the platform at ${boundTo(snapshot)}, the configuration names ` +
        `${account.url} → correct platform.url; if it is the same organization, move the ` +
        'snapshot with `crm-mirror rebind`; else name another snapshot to begin anew',
    );
  }
  if (standing !== 'other key') return;
  const proof = await prove(snapshot, account, run.stop);
  if (!proof.same) throw strange(proof);
  if (run.writes) bind(snapshot, account);
  notes.push(
    `platform.apiKey is not the one before, but of the same organization (${proof.how}); ` +
      `the snapshot ${run.writes ? 'belongs' : 'will belong'} to the new key`,
  );
}

/** Binds what is free, and keeps the organization as soon as a listing names it. */
export function claim({ run: { snapshot, account }, known }: Course): void {
  const { meta, transaction } = snapshot;
  const listings = [...known.values()].flatMap(({ listing }) => listing ?? []);
  const shown = listings.flatMap(({ organization }) => organization ?? [])[0];
  const isFree = standingOf(snapshot, account) === 'free';
  if (isFree || meta.get(names.key) === undefined) bind(snapshot, account);
  const kept = isFree ? undefined : meta.get(names.organization);
  if (meta.get(names.organization) === (kept ?? shown)) return;
  transaction(() => {
    if (shown === undefined) meta.drop(names.organization);
    else meta.set(names.organization, shown);
  });
}

export function standingOf({ meta, recorded }: Snapshot, { url, apiKey }: Account): Standing {
  const bound = meta.get(names.url);
  if (bound === undefined || recorded.isEmpty()) return 'free';
  if (bound !== url) return 'other url';
  const key = meta.get(names.key);
  return key === undefined || key === hashed(meta, apiKey) ? 'ours' : 'other key';
}

/** Where it belongs now; undefined = nowhere yet. */
export function boundTo({ meta }: Snapshot): string | undefined {
  return meta.get(names.url);
}

export function bind({ meta, transaction }: Snapshot, { url, apiKey }: Account): void {
  transaction(() => {
    meta.set(names.url, url);
    meta.set(names.key, hashed(meta, apiKey));
  });
}

/** What to say when it is not proven. */
export function strange({ how }: Proof): Invalid {
  return new Invalid(
    `the snapshot belongs to another organization than platform.apiKey (${how}) → correct the ` +
      'key, or name another snapshot to begin anew; nothing was sent',
  );
}

/** Whether the account is of the snapshot's organization. Throws what the platform's client does. */
export async function prove(
  snapshot: Snapshot,
  { platform }: Account,
  signal: AbortSignal,
): Promise<Proof> {
  const bound = snapshot.meta.get(names.organization);
  const shown = bound === undefined ? undefined : await organizationOf(platform, signal);
  if (shown !== undefined) {
    const same = shown === bound;
    const how = `its templates name ${same ? 'the same' : 'another'} organization`;
    return { same, by: 'organization', found: 0, of: 0, how };
  }
  const contacts = await contactsThere(snapshot, platform, signal);
  if (contacts.of > 0) return proofOf('contacts', contacts);
  return proofOf('templates', await templatesThere(snapshot, platform, signal));
}

interface Count {
  found: number;
  of: number;
}

function proofOf(by: 'contacts' | 'templates', { found, of }: Count): Proof {
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

/** Of another platform an id may be in use as well: the address has to be the same. */
async function contactsThere(
  { recorded }: Snapshot,
  { contacts }: Pick<Platform, 'contacts'>,
  signal: AbortSignal,
): Promise<Count> {
  const sample = recorded.sample('contact', sampled);
  let found = 0;
  await each(sample, atOnce, async ({ id, key }) => {
    const contact = await contacts.retrieve(id, { signal });
    if (contact && contactKey(contact.email) === key) found += 1;
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

/** The key itself is nowhere kept; the snapshot's own secret makes its hash of no use elsewhere. */
function hashed(meta: Snapshot['meta'], apiKey: string): string {
  return createHmac('sha256', meta.get('name-key') ?? '')
    .update(`platform-key:${apiKey}`)
    .digest('hex');
}
