import { Invalid } from '../../domain/errors.ts';
import type { Subscription } from '../../platform/request-schemas.ts';
import type { Accounts, NewUser } from '../store/accounts.ts';
import type { Channel } from '../shared/row-types.ts';
import type { NewContact } from '../store/contacts.ts';
import type { NewDomain } from '../store/domains.ts';
import type { NewKey } from '../store/api-keys.ts';
import { findChannel, type Organization } from '../store/organization.ts';
import type { NewTemplate } from '../store/templates.ts';

/**
 * Adds records to one organization before requests arrive. Throws Invalid for an unknown channel,
 * and if a unique value (an id, a key, a session, a domain name) is already taken.
 */
export interface Seed {
  channel(channel: Channel): void;
  /**
   * Adds a contact and returns its id. The email is stored as given, even if it differs from
   * another one only in case.
   */
  contact(contact: SeededContact): string;
  /** Adds a template and returns its id. */
  template(template: NewTemplate): string;
  /** Adds a domain and returns its id. */
  domain(domain: NewDomain): string;
  /** Adds a key and returns its secret, for the x-api-key header. */
  key(key: NewKey): string;
  /** Adds a member and returns the member's session, for the cookie. */
  user(user: Omit<NewUser, 'organizationId'>): string;
}

/** A contact with its subscriptions. */
export interface SeededContact extends NewContact {
  /** The subscriptions by channel id. */
  channels?: Record<string, Subscription> | undefined;
}

/** Creates the functions that add records to an organization. */
export function createSeed(accounts: Accounts, organization: Organization): Seed {
  const { channels, contacts, templates, domains, keys, now } = organization;
  return {
    channel(channel) {
      const { id } = channel;
      refuseTaken('channel', id, channels.has(id));
      organization.addChannel({ ...channel });
    },
    contact({ channels: wanted = {}, ...contact }) {
      const { id } = contact;
      refuseTaken('contact', id, id !== undefined && contacts.byId(id) !== undefined);
      const memberships = Object.entries(wanted).map(([channelId, subscription]) => ({
        channel: findChannel(organization, channelId),
        subscription,
      }));
      const row = contacts.add(contact, now());
      for (const { channel, subscription } of memberships) {
        contacts.setMembership(row, channel, subscription);
      }
      return row.id;
    },
    template(template) {
      const { id } = template;
      refuseTaken('template', id, id !== undefined && templates.byId(id) !== undefined);
      return templates.add(template, now()).id;
    },
    domain(domain) {
      const { id, domain: name } = domain;
      refuseTaken('domain', id, id !== undefined && domains.byId(id) !== undefined);
      refuseTaken('domain', name, domains.byName(name) !== undefined);
      return domains.add(domain, now()).id;
    },
    key(key) {
      const { id, secret } = key;
      refuseTaken('API key', id, id !== undefined && keys.byId(id) !== undefined);
      refuseTaken('API key', secret, secret !== undefined && accounts.byKey(secret) !== undefined);
      return keys.add(key, now()).secret;
    },
    user: (user) => seedUser(accounts, { ...user, organizationId: organization.id }),
  };
}

/** Adds a user, with or without an organization, and returns the user's session. */
export function seedUser({ users }: Accounts, user: NewUser): string {
  const { id, session } = user;
  refuseTaken('user', id, id !== undefined && users.byId(id) !== undefined);
  refuseTaken('session', session, session !== undefined && users.bySession(session) !== undefined);
  return users.add(user).session;
}

function refuseTaken(what: string, name: string | undefined, taken: boolean): void {
  if (taken) throw new Invalid(`${what} "${name}" exists already: give every ${what} its own`);
}
