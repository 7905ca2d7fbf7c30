/** Takes a person off the platform for good, whoever made the contact, and proves it. */
import { Rejected, Unavailable } from '../../model/errors.ts';
import type { RecordedRow } from '../../model/record.ts';
import type { Contact } from '../../platform/answer.ts';
import type { Platform } from '../../platform/client.ts';
import type { Erased, Leave } from '../kind.ts';
import { contactKey } from './observe.ts';
import { recordedBody } from './record.ts';

type Contacts = Platform['contacts'];

/**
 * Opts every contact of exactly this address out of all it is subscribed to, configured or not,
 * deletes it, and looks again. Throws what the requests throw, and Unavailable while one is still
 * there.
 */
export async function erase(
  platform: Contacts,
  { key, recorded }: { key: string; recorded: RecordedRow | undefined },
  leave: Leave,
): Promise<Erased> {
  const ids = idsOf(recorded);
  const contacts = await find(platform, { key, ids }, leave);
  let optedOut = 0;
  for (const contact of contacts) optedOut += await optOut(platform, contact, leave);
  for (const { id } of contacts) await platform.remove(id, leave);
  const known = [...ids, ...contacts.map(({ id }) => id)];
  const left = await find(platform, { key, ids: known }, leave);
  if (left.length === 0) return { found: contacts.length, optedOut, deleted: contacts.length };
  const count = `${left.length} of ${contacts.length} contacts`;
  throw new Unavailable(`the platform still shows ${count} that were deleted → run it again`, {
    acted: 'maybe',
  });
}

function idsOf(recorded: RecordedRow | undefined): string[] {
  if (!recorded) return [];
  const { contacts } = recordedBody.parse(JSON.parse(recorded.body));
  return contacts.map(({ id }) => id);
}

/** By search, and by the ids that are known: a page may hide one. */
async function find(
  platform: Contacts,
  { key, ids }: { key: string; ids: readonly string[] },
  { signal }: Leave,
): Promise<Contact[]> {
  const found = new Map<string, Contact>();
  for await (const contact of platform.all({ search: key }, { signal })) {
    if (contactKey(contact.email) === key) found.set(contact.id, contact);
  }
  for (const id of ids) {
    const contact = found.has(id) ? undefined : await platform.retrieve(id, { signal });
    if (contact && contactKey(contact.email) === key) found.set(id, contact);
  }
  return [...found.values()];
}

/** How many opt-outs were acknowledged. One that is refused is no reason to keep the contact. */
async function optOut(platform: Contacts, contact: Contact, leave: Leave): Promise<number> {
  let count = 0;
  for (const { id: channel, subscription } of contact.channels) {
    if (subscription !== 'opt_in') continue;
    try {
      const who = { contactId: contact.id, subscription: 'opt_out' as const };
      await platform.enrol(channel, who, { ...leave, priority: 'opt_out' });
      count += 1;
    } catch (error) {
      const isRefused = error instanceof Rejected && ![401, 403].includes(error.status);
      if (!isRefused) throw error;
    }
  }
  return count;
}
