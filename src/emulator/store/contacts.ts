/**
 * The contacts of one organization, with listings by status, and two indexes by email: whole
 * addresses, and parts of them for the search.
 */
import type { Subscription } from '../../platform/request-schemas.ts';
import type { Ids } from '../shared/seeded-random.ts';
import type {
  Channel,
  ContactRow,
  ContactStatus,
  Membership,
  NewContact,
} from '../shared/row-types.ts';
import { createTable, type Index, isOlder, type Newest, newestFirst, type Shelf } from './table.ts';
import { Invalid } from '../../domain/errors.ts';

/** Creates contacts. `touchedAt` gives a new `updatedAt` to one whose subscription changes. */
export function createContacts(
  ids: Ids,
  shelf: Shelf<ContactRow>,
  touchedAt: () => number | undefined,
) {
  const all = newestFirst<ContactRow>();
  const listings: Record<ContactStatus, Newest<ContactRow>> = {
    subscribed: newestFirst(),
    unsubscribed: newestFirst(),
    blocked: newestFirst(),
  };
  const byStatus: Index<ContactRow> = {
    add: (row) => listings[row.status].add(row),
    remove: (row) => listings[row.status].remove(row),
    clear: () => Object.values(listings).forEach((listing) => listing.clear()),
  };
  const byEmail = createEmails();
  const table = createTable(shelf, [all, byStatus, byEmail]);
  const setMemberships = (row: ContactRow, memberships: Membership[]): void =>
    table.change(row, { memberships, updatedAt: touchedAt() ?? row.updatedAt });

  return {
    ...table,
    add(contact: NewContact, now: number): ContactRow {
      const createdAt = contact.createdAt ?? now;
      const { suppressionReason = null } = contact;
      return table.insert({
        id: contact.id ?? ids('con'),
        serial: all.nextSerial(),
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
      });
    },
    /** Finds a contact by email, ignoring case unless `exact`; of several, the one added first. */
    byEmail: (email: string, exact: boolean = false) =>
      byEmail.of(email).find((row) => !exact || row.email === email),
    /** Throws Invalid, and changes nothing, if another contact has the new email, in any case. */
    change(row: ContactRow, fields: ContactChange, now: number): void {
      const { status = row.status, email = row.email } = fields;
      const other = byEmail.of(email).find((one) => one !== row);
      if (email !== row.email && other) {
        const { id, email: taken } = other;
        throw new Invalid(`contact "${id}" has the email "${taken}" already: choose another`);
      }
      const moved = [
        ...(email === row.email ? [] : [byEmail]),
        ...(status === row.status ? [] : [byStatus]),
      ];
      for (const index of moved) index.remove(row);
      table.change(row, { ...fields, key: emailKey(email), updatedAt: now });
      for (const index of moved) index.add(row);
    },
    /** Adds a membership, or changes the subscription of an existing one. */
    setMembership(row: ContactRow, channel: Channel, subscription: Subscription): Membership {
      const before = membershipIn(row, channel.id);
      const membership = { id: before?.id ?? ids('sub'), channel, subscription };
      setMemberships(
        row,
        before
          ? row.memberships.map((one) => (one === before ? membership : one))
          : [...row.memberships, membership],
      );
      return membership;
    },
    removeMembership: (row: ContactRow, membership: Membership): void =>
      setMemberships(
        row,
        row.memberships.filter((one) => one !== membership),
      ),
    listed: (status?: ContactStatus) => (status === undefined ? all : listings[status]),
    /** Returns contacts whose key may hold the text, newest first; undefined for perhaps all. */
    holding: byEmail.holding,
  };
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

const width = 4;

/** Indexes contacts by email; several with the same one keep the order of their addition. */
function createEmails() {
  const rows = new Map<string, ContactRow[]>();
  const parts = new Map<string, Set<ContactRow>>();
  const of = (email: string) => rows.get(emailKey(email)) ?? [];
  return {
    of,
    add(row: ContactRow): void {
      rows.set(row.key, [...of(row.key), row]);
      for (const name of namesIn(row.key)) {
        const known = parts.get(name);
        if (known) known.add(row);
        else parts.set(name, new Set([row]));
      }
    },
    remove(row: ContactRow): void {
      const duplicates = of(row.key).filter((twin) => twin !== row);
      if (duplicates.length > 0) rows.set(row.key, duplicates);
      else rows.delete(row.key);
      for (const name of namesIn(row.key)) parts.get(name)?.delete(row);
    },
    holding(text: string): ContactRow[] | undefined {
      // In some searches % and _ stand for others.
      const name = namesIn(text).find((one) => !/[%_]/.test(one));
      if (name === undefined) return undefined;
      const found = [...(parts.get(name) ?? [])];
      return found.toSorted((a, b) => Number(isOlder(a, b)) - Number(isOlder(b, a)));
    },
    clear(): void {
      rows.clear();
      parts.clear();
    },
  };
}

function namesIn(text: string): string[] {
  const names: string[] = [];
  for (let at = text.indexOf('@'); at >= 0; at = text.indexOf('@', at + 1)) {
    if (at >= width) names.push(text.slice(at - width, at));
  }
  return names;
}
