/** Counts and lists the people who unsubscribed from all mail on their own. */
import { fingerprint, type Key } from '../../../domain/record.ts';
import type { UnsubscribeListing } from '../../capabilities.ts';
import { observe } from './observed-contact.ts';
import type { ReadAccess } from './contact-read.ts';
import { silentBody } from './contact-state.ts';

const statuses = ['unsubscribed', 'blocked'] as const;

/**
 * Returns the listing of people who unsubscribed. It counts with the totals on every page
 * ("Endpoints", Contacts). These include no total of blocked contacts, only of contacts that are
 * not subscribed.
 */
export function leavingOf({ platform, channels }: ReadAccess): UnsubscribeListing {
  return {
    route: 'contacts.list',
    ways: statuses,
    async counts(how) {
      const listed = await platform.list({ page: 1, limit: 1 }, { ...how, priority: 'event' });
      const { totalContacts, subscribedContacts, unsubscribedContacts } = listed;
      if (totalContacts === undefined || subscribedContacts === undefined) return undefined;
      if (unsubscribedContacts === undefined) return undefined;
      return { unsubscribed: unsubscribedContacts, blocked: totalContacts - subscribedContacts };
    },
    async list({ way, ...page }, how) {
      const status = statuses.find((one) => one === way);
      const listed = await platform.list({ ...page, status }, { ...how, priority: 'event' });
      const rows = listed.contacts.map((contact) => observe(contact, channels));
      const left = rows.filter(({ value }) => value.left);
      return { rows: left, listed: rows.length, total: listed.total };
    },
    named: (key) => named(key),
  };
}

/** Returns an empty CRM record for a person with nothing known but the address. */
function named(key: Key): ReturnType<UnsubscribeListing['named']> {
  return {
    kind: 'contact',
    id: '',
    key,
    alias: key,
    place: '',
    body: silentBody,
    fingerprint: fingerprint(silentBody),
    wants: false,
    presence: 'present',
    invalid: undefined,
  };
}
