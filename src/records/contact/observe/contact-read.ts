/** Reads the contacts of one person from the platform. */
import type { Change } from '../../../domain/change.ts';
import { Unavailable } from '../../../domain/errors.ts';
import type { Contact } from '../../../platform/answer-schemas.ts';
import type { Platform } from '../../../platform/api-client.ts';
import { type Stale, stale } from '../../change-outcome.ts';
import type { ObservedContactRow } from './contact-state.ts';
import { observe } from './observed-contact.ts';
import { contactKey, spellingsOf } from '../../../domain/values/contact-key.ts';

export interface ReadAccess {
  platform: Platform['contacts'];
  channels: ReadonlySet<string>;
}

/** Returns the contacts that a change is about: for an opt-out by id, under any address. */
export async function read(
  access: ReadAccess,
  change: Change,
  signal: AbortSignal,
): Promise<ObservedContactRow[]> {
  const { key, target, op } = change;
  if (target === undefined) return search(access, key, signal);
  if (op === 'opt_out') return readById(access, { key, id: target }, signal);
  const row = await retrieve(access, change, signal);
  return row ? [row] : [];
}

/** Returns the contact; undefined if it is gone, or at another person's address by now. */
export async function retrieve(
  access: ReadAccess,
  { key, target = '' }: Change,
  signal: AbortSignal,
): Promise<ObservedContactRow | undefined> {
  const contact = await access.platform.retrieve(target, { signal, person: key });
  const isTheirs = contact && contactKey(contact.email) === key;
  return isTheirs ? observe(contact, access.channels) : undefined;
}

/** Returns the contact with the id, under whatever address; none if it is gone. */
export async function readById(
  { platform, channels }: ReadAccess,
  { key, id }: { key: string; id: string },
  signal: AbortSignal,
) {
  const contact = await platform.retrieve(id, { signal, person: key });
  return contact ? [observe(contact, channels)] : [];
}

/** Returns the contacts with the address, and the one with the recorded id, even if renamed. */
export async function readAll(
  access: ReadAccess,
  { key, id }: { key: string; id?: string | undefined },
  signal: AbortSignal,
): Promise<ObservedContactRow[]> {
  const rows = await search(access, key, signal);
  if (id === undefined || rows.some((row) => row.id === id)) return rows;
  return [...rows, ...(await readById(access, { key, id }, signal))];
}

/**
 * Returns all contacts with exactly this address. The platform's search may match more. Throws
 * Unavailable if it shows none, and counts more than it shows: that proves nobody absent.
 */
export async function search(
  access: ReadAccess,
  key: string,
  signal: AbortSignal,
): Promise<ObservedContactRow[]> {
  const { contacts, isShort } = await searchContacts(access.platform, key, signal);
  if (isShort && contacts.length === 0) {
    const reason = 'a search for one address counts more contacts than it shows';
    throw new Unavailable(reason, { acted: 'no', fix: 'the next run searches again' });
  }
  return contacts.map((contact) => observe(contact, access.channels));
}

/**
 * Returns the contacts with this key in a usual spelling; odd mixes of letters are not found.
 * `isShort`: the platform counts more than it shows.
 */
export async function searchContacts(
  platform: Platform['contacts'],
  key: string,
  signal: AbortSignal,
): Promise<{ contacts: Contact[]; isShort: boolean }> {
  const found = new Map<string, Contact>();
  let isShort = false;
  for (const spelling of spellingsOf(key)) {
    const listed = await findListed(platform, { key, search: spelling }, signal);
    for (const contact of listed.contacts) found.set(contact.id, contact);
    isShort ||= listed.isShort;
  }
  return { contacts: [...found.values()], isShort };
}

/**
 * Reads a search, or without `search` the list of all contacts, to its end. Returns the contacts
 * with this key, how many different ones it showed, and whether the platform counts more of them.
 */
export async function findListed(
  platform: Platform['contacts'],
  { key, search }: { key: string; search: string | undefined },
  signal: AbortSignal,
): Promise<{ contacts: Contact[]; seen: number; isShort: boolean }> {
  const seen = new Set<string>();
  const found = new Map<string, Contact>();
  let total = 0;
  for await (const page of platform.pages({ search }, { signal, person: key })) {
    total = Math.max(total, page.total);
    for (const contact of page.contacts) {
      seen.add(contact.id);
      if (contactKey(contact.email) === key) found.set(contact.id, contact);
    }
  }
  return { contacts: [...found.values()], seen: seen.size, isShort: seen.size < total };
}

/** Returns `stale` with the address read again, and `known`, what was just read by id. */
export async function anew(
  access: ReadAccess,
  { key }: Change,
  { why, signal, known }: { why: string; signal: AbortSignal; known: ObservedContactRow[] },
): Promise<Stale> {
  const renamed = known.filter(({ alias }) => alias !== key);
  return stale([...(await search(access, key, signal)), ...renamed], why);
}
