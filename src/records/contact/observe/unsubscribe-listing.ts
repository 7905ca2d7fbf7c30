/** Who left all mail by themselves, as the platform counts and lists them. */
import { fingerprint, type Key } from '../../../domain/record.ts';
import type { UnsubscribeListing } from '../../capabilities.ts';
import { observe } from './observed-contact.ts';
import type { ReadAccess } from './contact-read.ts';
import { silentBody } from './contact-state.ts';

const statuses = ['unsubscribed', 'blocked'] as const;

/**
 * By the counters that every page has ("Endpoints", Contacts): nobody counts who is blocked, but
 * among those who are not subscribed.
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
