/** Deletes a person's contacts from the platform, including those that we did not create. */
import { Rejected, Unavailable } from '../../domain/errors.ts';
import type { Contact } from '../../platform/answer-schemas.ts';
import type { Platform } from '../../platform/api-client.ts';
import type { Deadlines } from '../change-outcome.ts';
import type { Erasing } from './contacts.ts';
import { commonPart, contactKey } from '../../domain/values/contact-key.ts';
import { findListed, searchContacts } from './observe/contact-read.ts';
import { decodeContact } from './observe/contact-state.ts';

type Contacts = Platform['contacts'];

/**
 * Opts every contact with exactly this address out of each channel, configured or not, deletes it,
 * and checks the result. Reports each step before and once it is done. Returns whether it is
 * certain that none remains. Throws the requests' errors, and Unavailable while a contact is still
 * there.
 */
export async function erase(
  platform: Contacts,
  erasing: Erasing,
  deadlines: Deadlines,
): Promise<boolean> {
  const { key, recorded, known, tell } = erasing;
  const { contacts: before = [] } = recorded ? decodeContact.recorded(recorded).value : {};
  const ids = [...before.map(({ id }) => id), ...known];
  let search: string | undefined = commonPart(key);
  let found = await find(platform, { key, ids, search }, deadlines);
  if (found.seen === 0 && !(await findsParts(platform, key, deadlines))) {
    search = undefined;
    found = await find(platform, { key, ids, search }, deadlines);
  }
  const { contacts } = found;
  for (const { id } of contacts) tell({ is: 'found', id });
  for (const contact of contacts) await optOut(platform, contact, erasing, deadlines);
  for (const { id } of contacts) {
    const remove = async () => platform.remove(id, { ...deadlines, person: key });
    const answer = await sent({ id }, tell, remove);
    if (answer === 'removed') tell({ is: 'deleted', id });
  }
  const all = [...ids, ...contacts.map(({ id }) => id)];
  const { contacts: left, isCertain } = await find(platform, { key, ids: all, search }, deadlines);
  if (left.length > 0) {
    const count = `${left.length} of ${contacts.length} contacts`;
    throw new Unavailable(`the platform still shows ${count} that were deleted`, {
      fix: 'run it again',
      acted: 'maybe',
    });
  }
  for (const { id } of contacts) tell({ is: 'deleted', id });
  return isCertain;
}

async function findsParts(platform: Contacts, key: string, { signal }: Deadlines) {
  const { contacts } = await platform.list({ page: 1, limit: 100 }, { signal, person: key });
  const parts = contacts.map(({ email }) => commonPart(contactKey(email)).slice(1));
  const search = parts.find((part) => part.length > 1);
  if (search === undefined) return false;
  const found = await platform.list({ page: 1, limit: 1, search }, { signal, person: key });
  return found.contacts.length > 0;
}

/**
 * Returns the contacts with the address, by each usual spelling and the known ids, as a page of the
 * list may miss one; without `search`, in the list of all contacts. `seen`: how many it found, with
 * the address or not. `isCertain`: none can have been overlooked, if the search finds parts.
 */
async function find(
  platform: Contacts,
  { key, ids, search }: { key: string; ids: readonly string[]; search: string | undefined },
  { signal }: Deadlines,
) {
  const there = await searchContacts(platform, key, signal);
  const listed = await findListed(platform, { key, search }, signal);
  const found = new Map([...there.contacts, ...listed.contacts].map((one) => [one.id, one]));
  for (const id of new Set(ids)) {
    const contact = found.has(id)
      ? undefined
      : await platform.retrieve(id, { signal, person: key });
    if (contact && contactKey(contact.email) === key) found.set(id, contact);
  }
  const isCertain = !there.isShort && !listed.isShort;
  return { contacts: [...found.values()], seen: listed.seen, isCertain };
}

/** Opts a contact out and reports each. Only a 401 or 403 prevents the contact's deletion. */
async function optOut(
  platform: Contacts,
  { id, channels }: Contact,
  { key, tell }: Erasing,
  deadlines: Deadlines,
): Promise<void> {
  for (const { id: channel, subscription } of channels) {
    if (subscription !== 'opt_in') continue;
    try {
      const who = { contactId: id, subscription: 'opt_out' as const };
      const how = { ...deadlines, priority: 'opt_out', person: key } as const;
      await sent({ id, channel }, tell, async () => platform.enrol(channel, who, how));
      tell({ is: 'opted out', id, channel });
    } catch (error) {
      const isRefused = error instanceof Rejected && ![401, 403].includes(error.status);
      if (!isRefused) throw error;
    }
  }
}

/** Sends a request, and reports before that it may be done, and afterwards if it was not. */
async function sent<Answer>(
  about: { id: string; channel?: string },
  tell: Erasing['tell'],
  send: () => Promise<Answer>,
): Promise<Answer> {
  tell({ is: 'sending', ...about });
  try {
    return await send();
  } catch (error) {
    const isKnown = error instanceof Rejected || error instanceof Unavailable;
    if (!isKnown || error.acted === 'no') tell({ is: 'refused', ...about });
    throw error;
  }
}
