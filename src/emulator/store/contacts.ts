import type { Subscription } from '../../platform/request-schemas.ts';
import type { Ids } from '../shared/seeded-random.ts';
import type { Channel, ContactRow, ContactStatus, Membership } from '../shared/row-types.ts';
import { type ContactChange, membershipIn, type NewContact, toRow } from './contact.ts';
import { createEmails } from './email-index.ts';
import { type Newest, newestFirst } from './newest-first.ts';
import type { Shelf } from './storage.ts';

/** All contacts of one organization, by id and email, listed with or without a status. */
export interface Contacts {
  add(contact: NewContact, now: number): ContactRow;
  /** Adds a stored row as it is. */
  put(row: ContactRow): void;
  remove(contact: ContactRow): void;
  byId(id: string): ContactRow | undefined;
  /**
   * Finds a contact whatever the case, unless `exact`; of several with one email, the first added.
   */
  byEmail(email: string, exact?: boolean): ContactRow | undefined;
  /**
   * Changes a contact. Throws Invalid, and changes nothing, if another contact has the new email in
   * any case.
   */
  change(contact: ContactRow, fields: ContactChange, now: number): void;
  /** Adds a membership, or changes its subscription. */
  setMembership(contact: ContactRow, channel: Channel, subscription: Subscription): Membership;
  removeMembership(contact: ContactRow, membership: Membership): void;
  listed(status?: ContactStatus): Newest<ContactRow>;
  /** Returns all rows in the order they were added. */
  rows(): IterableIterator<ContactRow>;
  clear(): void;
}

/**
 * Creates the contacts of an organization. `touchedAt` returns the new `updatedAt` of a contact
 * whose subscription changes; undefined: it stays.
 */
export function createContacts(
  ids: Ids,
  shelf: Shelf<ContactRow>,
  touchedAt: () => number | undefined = () => undefined,
): Contacts {
  const all = newestFirst<ContactRow>();
  const listings = createListings();
  const byId = new Map<string, ContactRow>();
  const byEmail = createEmails();
  let serial = 0;

  function put(row: ContactRow): void {
    serial = Math.max(serial, row.serial);
    byId.set(row.id, row);
    byEmail.add(row);
    for (const listing of [all, listings[row.status]]) listing.add(row);
  }

  return {
    add(contact, now) {
      const row = toRow(contact, { id: contact.id ?? ids('con'), serial: serial + 1, now });
      put(row);
      shelf.keep(row);
      return row;
    },
    put,
    remove(row) {
      byEmail.remove(row);
      byId.delete(row.id);
      for (const listing of [all, listings[row.status]]) listing.remove(row);
      shelf.drop(row.id);
    },
    byId: (id) => byId.get(id),
    byEmail: (email, exact = false) =>
      byEmail.of(email).find((row) => !exact || row.email === email),
    change(row, fields, now) {
      const { status = row.status, email = row.email } = fields;
      if (email !== row.email) byEmail.move(row, email);
      if (status !== row.status) {
        listings[row.status].remove(row);
        listings[status].add(row);
      }
      Object.assign(row, fields, { updatedAt: now });
      shelf.keep(row);
    },
    ...membershipsOf(ids, shelf, touchedAt),
    listed: (status) => (status === undefined ? all : listings[status]),
    rows: () => byId.values(),
    clear() {
      byId.clear();
      byEmail.clear();
      for (const listing of [all, ...Object.values(listings)]) listing.clear();
      serial = 0;
    },
  };
}

function membershipsOf(
  ids: Ids,
  shelf: Shelf<ContactRow>,
  touchedAt: () => number | undefined,
): Pick<Contacts, 'setMembership' | 'removeMembership'> {
  return {
    setMembership(row, channel, subscription) {
      const id = membershipIn(row, channel.id)?.id ?? ids('sub');
      const membership = { id, channel, subscription };
      row.memberships = withMembership(row.memberships, membership);
      row.updatedAt = touchedAt() ?? row.updatedAt;
      shelf.keep(row);
      return membership;
    },
    removeMembership(row, membership) {
      row.memberships = row.memberships.filter((one) => one !== membership);
      row.updatedAt = touchedAt() ?? row.updatedAt;
      shelf.keep(row);
    },
  };
}

function createListings(): Record<ContactStatus, Newest<ContactRow>> {
  return { subscribed: newestFirst(), unsubscribed: newestFirst(), blocked: newestFirst() };
}

/** Returns the memberships with this one in the place of the one it replaces, or last. */
function withMembership(memberships: readonly Membership[], membership: Membership): Membership[] {
  const place = memberships.findIndex(({ id }) => id === membership.id);
  return place < 0 ? [...memberships, membership] : memberships.with(place, membership);
}
