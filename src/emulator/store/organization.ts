/**
 * Everything that one organization has on the platform, how the platform treats its records unless
 * a quirk says otherwise, and the outbox of what it sent.
 */
import { Invalid } from '../../domain/errors.ts';
import type { Ids } from '../shared/seeded-random.ts';
import { remember } from './recent-entries.ts';
import type { Channel, ContactRow, SendRow, TestSend } from '../shared/row-types.ts';
import { type Contacts, createContacts } from './contacts.ts';
import { createDomains, type Domains } from './domains.ts';
import { createKeys, type Keys } from './api-keys.ts';
import type { Shelf, Storage, StoredRow } from './storage.ts';
import { createTemplates, type Templates } from './templates.ts';

export interface Organization {
  readonly id: string;
  readonly name: string;
  readonly channels: ReadonlyMap<string, Channel>;
  addChannel(channel: Channel): void;
  readonly contacts: Contacts;
  readonly templates: Templates;
  readonly domains: Domains;
  readonly keys: Keys;
  readonly outbox: ReturnType<typeof createOutbox>;
  readonly behaviour: PlatformBehaviour;
  /** Returns the platform's time in milliseconds since the epoch. */
  now(): number;
  /** Returns all rows of the organization, oldest first. */
  rows(): Generator<StoredRow>;
  put(stored: StoredRow): void;
  clear(): void;
}

/** The parts from which every organization is created. */
export interface Ground {
  ids: Ids;
  storage: Storage;
  now(): number;
  /** Overrides for behaviour that the specification leaves open. */
  behaviour: Partial<PlatformBehaviour>;
}

export function createOrganization(
  { id, name }: { id: string; name: string },
  { ids, storage, now, behaviour }: Ground,
): Organization {
  const channels = new Map<string, Channel>();
  const own: PlatformBehaviour = { ...specified, ...behaviour };
  const shelf = storage.shelf('channel', id);
  const owner = { id: ownerOf(id), name: 'Owner', email: `owner@${id}.example` };
  const parts = {
    contacts: createContacts(ids, storage.shelf('contact', id), () =>
      own.touches ? now() : undefined,
    ),
    templates: createTemplates(ids, storage.shelf('template', id)),
    domains: createDomains(ids, storage.shelf('domain', id)),
    keys: createKeys(ids, storage.shelf('key', id), owner),
    outbox: createOutbox(storage.shelf('send', id)),
  };

  return {
    id,
    name,
    channels,
    addChannel(channel) {
      channels.set(channel.id, channel);
      shelf.keep(channel);
    },
    ...parts,
    behaviour: own,
    now,
    *rows() {
      const organization = id;
      for (const row of channels.values()) yield { kind: 'channel', organization, row };
      for (const row of parts.keys.rows()) yield { kind: 'key', organization, row };
      for (const row of parts.contacts.rows()) yield { kind: 'contact', organization, row };
      for (const row of parts.templates.rows()) yield { kind: 'template', organization, row };
      for (const row of parts.domains.rows()) yield { kind: 'domain', organization, row };
      for (const row of parts.outbox.rows()) yield { kind: 'send', organization, row };
    },
    put(stored) {
      if (stored.kind === 'channel') channels.set(stored.row.id, stored.row);
      else if (stored.kind === 'contact') parts.contacts.put(stored.row);
      else if (stored.kind === 'template') parts.templates.put(stored.row);
      else if (stored.kind === 'domain') parts.domains.put(stored.row);
      else if (stored.kind === 'key') parts.keys.put(stored.row);
      else if (stored.kind === 'send') parts.outbox.put(stored.row);
    },
    clear() {
      channels.clear();
      for (const part of Object.values(parts)) part.clear();
    },
  };
}

/** Returns the id of the user who represents the organization's own staff. */
export function ownerOf(organizationId: string): string {
  return `user_of_${organizationId}`;
}

/** Returns the channel with this id. Throws Invalid if it does not exist. */
export function findChannel({ channels }: Organization, id: string): Channel {
  const channel = channels.get(id);
  if (channel !== undefined) return channel;
  throw new Invalid(`no channel "${id}": use one of ${[...channels.keys()].join(', ')}`);
}

/** Returns the contact to which an enrolment by lower-case `email` refers, if there is one. */
export function findByEmail(
  { contacts, behaviour }: Organization,
  email: string,
): ContactRow | undefined {
  return contacts.byEmail(email, behaviour.keepsCase);
}

/** Defines how the platform treats records where the specification leaves it open. */
export interface PlatformBehaviour {
  /** Returns whether a search matches a contact's key. Both are in lower case. */
  finds(key: string, search: string): boolean;
  /** Whether an email keeps its case as entered, and an enrolment finds only the exact spelling. */
  keepsCase: boolean;
  /** Whether a change to a subscription updates the contact's `updatedAt`. */
  touches: boolean;
  /** Reorders the rows of a listing, which arrive newest first. */
  orders?: ((rows: ContactRow[]) => ContactRow[]) | undefined;
}

/** The behaviour of the emulator unless a quirk overrides it. */
const specified: PlatformBehaviour = {
  finds: (key, search) => key.includes(search),
  keepsCase: false,
  touches: false,
};

const KEEP = 1000;

function createOutbox(shelf: Shelf<SendRow>) {
  const sends = remember<SendRow>(KEEP);
  let count = 0;

  return {
    add(send: TestSend): void {
      count += 1;
      const row = { id: String(count), send };
      sends.add(row);
      shelf.keep(row);
      // Memory holds at most twice the minimum, and so does the storage.
      if (count > 2 * KEEP) shelf.drop(String(count - 2 * KEEP));
    },
    put(row: SendRow): void {
      count = Math.max(count, Number(row.id));
      sends.add(row);
    },
    /** Returns all test emails, or the last `count`, oldest first. */
    read: (last?: number) => sends.read(last).map(({ send }) => send),
    rows: () => sends.read(),
    clear(): void {
      sends.clear();
      count = 0;
    },
  };
}
