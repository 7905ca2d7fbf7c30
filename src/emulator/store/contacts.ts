import type { Subscription } from '../../platform/request.ts';
import type { Ids } from '../random.ts';
import {
  emailKey,
  membershipIn,
  toRow,
  type Channel,
  type ContactRow,
  type ContactStatus,
  type Membership,
  type NewContact,
} from './contact.ts';
import { newestFirst, type Newest } from './newest.ts';

/** All contacts of one organization, found by id and email, listed with or without a status. */
export interface Contacts {
  add(contact: NewContact, now: number): ContactRow;
  remove(contact: ContactRow): void;
  byId(id: string): ContactRow | undefined;
  /** Whatever the case, unless `exact`; of several with one email, the one added first. */
  byEmail(email: string, exact?: boolean): ContactRow | undefined;
  setStatus(contact: ContactRow, status: ContactStatus): void;
  /** Enrols, or changes the subscription of the membership that is there. */
  setMembership(contact: ContactRow, channel: Channel, subscription: Subscription): Membership;
  listed(status?: ContactStatus): Newest<ContactRow>;
}

export function createContacts(ids: Ids): Contacts {
  const all = newestFirst<ContactRow>();
  const listings: Record<ContactStatus, Newest<ContactRow>> = {
    subscribed: newestFirst(),
    unsubscribed: newestFirst(),
    blocked: newestFirst(),
  };
  const byId = new Map<string, ContactRow>();
  const byEmail = new Map<string, ContactRow[]>();
  let serial = 0;

  return {
    add(contact, now) {
      serial += 1;
      const row = toRow(contact, { id: contact.id ?? ids('con'), serial, now });
      byId.set(row.id, row);
      byEmail.set(row.key, [...(byEmail.get(row.key) ?? []), row]);
      all.add(row);
      listings[row.status].add(row);
      return row;
    },
    remove(row) {
      const twins = byEmail.get(row.key)?.filter((twin) => twin !== row) ?? [];
      if (twins.length > 0) byEmail.set(row.key, twins);
      else byEmail.delete(row.key);
      byId.delete(row.id);
      all.remove(row);
      listings[row.status].remove(row);
    },
    byId: (id) => byId.get(id),
    byEmail: (email, exact = false) =>
      byEmail.get(emailKey(email))?.find((row) => !exact || row.email === email),
    setStatus(row, status) {
      listings[row.status].remove(row);
      row.status = status;
      listings[status].add(row);
    },
    setMembership(row, channel, subscription) {
      const existing = membershipIn(row, channel.id);
      if (existing) return Object.assign(existing, { subscription });
      const membership = { id: ids('sub'), channel, subscription };
      row.memberships.push(membership);
      return membership;
    },
    listed: (status) => (status === undefined ? all : listings[status]),
  };
}
