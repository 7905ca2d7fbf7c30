/**
 * The contacts of one organization, with listings by status, and two indexes by email: whole
 * addresses, and parts of them for the search.
 */
import type { Subscription } from '../../platform/request-schemas.ts';
import type { Ids } from '../shared/seeded-random.ts';
import type { Channel, ContactRow, ContactStatus, Membership } from '../shared/row-types.ts';
import { createTable, isOlder, type Newest, newestFirst } from './newest-first.ts';
import type { Shelf } from './storage.ts';
import { Invalid } from '../../domain/errors.ts';

/** Creates contacts. `touchedAt` gives a new `updatedAt` to one whose subscription changes. */
export function createContacts(
  ids: Ids,
  shelf: Shelf<ContactRow>,
  touchedAt: () => number | undefined = () => undefined,
) {
  const table = createTable(shelf);
  const listings: Record<ContactStatus, Newest<ContactRow>> = {
    subscribed: newestFirst(),
    unsubscribed: newestFirst(),
    blocked: newestFirst(),
  };
  const byEmail = createEmails();

  function put(row: ContactRow): void {
    table.put(row);
    byEmail.add(row);
    listings[row.status].add(row);
  }

  return {
    add(contact: NewContact, now: number): ContactRow {
      const row = toRow(contact, { id: contact.id ?? ids('con'), serial: table.nextSerial(), now });
      put(row);
      shelf.keep(row);
      return row;
    },
    put,
    remove(row: ContactRow): void {
      byEmail.remove(row);
      listings[row.status].remove(row);
      table.remove(row);
    },
    byId: table.byId,
    /** Finds a contact by email, ignoring case unless `exact`; of several, the one added first. */
    byEmail: (email: string, exact: boolean = false) =>
      byEmail.of(email).find((row) => !exact || row.email === email),
    /** Throws Invalid, and changes nothing, if another contact has the new email, in any case. */
    change(row: ContactRow, fields: ContactChange, now: number): void {
      const { status = row.status, email = row.email } = fields;
      if (email !== row.email) byEmail.move(row, email);
      if (status !== row.status) {
        listings[row.status].remove(row);
        listings[status].add(row);
      }
      table.change(row, fields, now);
    },
    /** Adds a membership, or changes the subscription of an existing one. */
    setMembership(row: ContactRow, channel: Channel, subscription: Subscription): Membership {
      const before = membershipIn(row, channel.id);
      const membership = { id: before?.id ?? ids('sub'), channel, subscription };
      row.memberships = before
        ? row.memberships.map((one) => (one === before ? membership : one))
        : [...row.memberships, membership];
      row.updatedAt = touchedAt() ?? row.updatedAt;
      shelf.keep(row);
      return membership;
    },
    removeMembership(row: ContactRow, membership: Membership): void {
      row.memberships = row.memberships.filter((one) => one !== membership);
      row.updatedAt = touchedAt() ?? row.updatedAt;
      shelf.keep(row);
    },
    listed: (status?: ContactStatus) => (status === undefined ? table.listed() : listings[status]),
    /** Returns contacts whose key may hold the text, newest first; undefined for perhaps all. */
    holding: byEmail.holding,
    rows: table.rows,
    clear(): void {
      table.clear();
      byEmail.clear();
      for (const listing of Object.values(listings)) listing.clear();
    },
  };
}

export type Contacts = ReturnType<typeof createContacts>;

/** A contact to add, by default as a new one. Times are in milliseconds since the epoch. */
export interface NewContact {
  email: string;
  id?: string | undefined;
  firstName?: string | undefined;
  lastName?: string | undefined;
  status?: ContactStatus | undefined;
  properties?: Record<string, unknown> | undefined;
  groups?: { id: string; name: string }[] | undefined;
  suppressionReason?: string | undefined;
  suppressedAt?: number | undefined;
  createdAt?: number | undefined;
  updatedAt?: number | undefined;
}

/** The fields of a contact that can change, apart from its memberships. */
export type ContactChange = Partial<
  Pick<
    ContactRow,
    'email' | 'firstName' | 'lastName' | 'status' | 'suppressionReason' | 'suppressedAt'
  >
>;

/** Normalizes an email for comparison: trimmed and in lower case. */
export function emailKey(email: string): string {
  return email.trim().toLowerCase();
}

/** Returns the contact's membership in a channel, or undefined if there is none. */
export function membershipIn(contact: ContactRow, channelId: string): Membership | undefined {
  return contact.memberships.find(({ channel }) => channel.id === channelId);
}

function toRow(
  contact: NewContact,
  { id, serial, now }: { id: string; serial: number; now: number },
): ContactRow {
  const createdAt = contact.createdAt ?? now;
  const suppressionReason = contact.suppressionReason ?? null;
  return {
    id,
    serial,
    email: contact.email,
    key: emailKey(contact.email),
    firstName: contact.firstName ?? '',
    lastName: contact.lastName ?? '',
    status: contact.status ?? 'subscribed',
    properties: contact.properties ?? {},
    groups: contact.groups ?? [],
    memberships: [],
    suppressionReason,
    suppressedAt: contact.suppressedAt ?? (suppressionReason === null ? null : createdAt),
    createdAt,
    updatedAt: contact.updatedAt ?? createdAt,
  };
}

/** Indexes contacts by email; several with the same one keep the order of their addition. */
function createEmails() {
  const rows = new Map<string, ContactRow[]>();
  const parts = createAddressIndex();
  const of = (email: string) => rows.get(emailKey(email)) ?? [];

  function add(row: ContactRow): void {
    rows.set(row.key, [...of(row.key), row]);
    parts.add(row);
  }

  function remove(row: ContactRow): void {
    const duplicates = of(row.key).filter((twin) => twin !== row);
    if (duplicates.length > 0) rows.set(row.key, duplicates);
    else rows.delete(row.key);
    parts.remove(row);
  }

  return {
    of,
    add,
    remove,
    /** Assigns this email to the contact. Throws Invalid if another contact has it, in any case. */
    move(row: ContactRow, email: string): void {
      const other = of(email).find((one) => one !== row);
      if (other) {
        const { id, email: taken } = other;
        throw new Invalid(`contact "${id}" has the email "${taken}" already: choose another`);
      }
      remove(row);
      Object.assign(row, { email, key: emailKey(email) });
      add(row);
    },
    holding(text: string): ContactRow[] | undefined {
      const found = parts.holding(text);
      return found && [...found].toSorted((a, b) => Number(isOlder(a, b)) - Number(isOlder(b, a)));
    },
    clear(): void {
      rows.clear();
      parts.clear();
    },
  };
}

const width = 4;
const nobody: ReadonlySet<ContactRow> = new Set();

function createAddressIndex() {
  const rows = new Map<string, Set<ContactRow>>();
  return {
    add(row: ContactRow): void {
      for (const name of namesIn(row.key)) {
        const known = rows.get(name);
        if (known) known.add(row);
        else rows.set(name, new Set([row]));
      }
    },
    remove(row: ContactRow): void {
      for (const name of namesIn(row.key)) rows.get(name)?.delete(row);
    },
    /** Returns contacts whose key may hold the text, unordered; undefined if it says too little. */
    holding(text: string): ReadonlySet<ContactRow> | undefined {
      // In some searches % and _ stand for others.
      const name = namesIn(text).find((one) => !/[%_]/.test(one));
      return name === undefined ? undefined : (rows.get(name) ?? nobody);
    },
    clear: () => rows.clear(),
  };
}

function namesIn(text: string): string[] {
  const names: string[] = [];
  for (let at = text.indexOf('@'); at >= 0; at = text.indexOf('@', at + 1)) {
    if (at >= width) names.push(text.slice(at - width, at));
  }
  return names;
}
