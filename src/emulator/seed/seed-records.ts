import { Invalid } from '../../domain/errors.ts';
import type { Subscription } from '../../platform/request-schemas.ts';
import type { Accounts } from '../store/accounts.ts';
import type { Channel } from '../shared/row-types.ts';
import type { NewContact } from '../store/contact.ts';
import type { NewDomain } from '../store/domains.ts';
import type { NewKey } from '../store/api-keys.ts';
import { findChannel, type Organization } from '../store/organization.ts';
import type { NewTemplate } from '../store/templates.ts';
import type { NewUser } from '../store/users.ts';

/**
 * Puts records into one organization as it was before the story begins, without any request. What
 * must be unique and is taken (an id, a key, a session, a domain's name) throws Invalid, as does an
 * unknown channel.
 */
export interface Seed {
  channel(channel: Channel): void;
  /** Answers the id. The email is kept as given, even beside another that differs only in case. */
  contact(contact: SeededContact): string;
  /** Answers the id. */
  template(template: NewTemplate): string;
  /** Answers the id. */
  domain(domain: NewDomain): string;
  /** Answers the key itself, for x-api-key. */
  key(key: NewKey): string;
  /** Answers the session of this member, for the cookie. */
  user(user: Omit<NewUser, 'organizationId'>): string;
}

export interface SeededContact extends NewContact {
  /** Subscriptions by channel id. */
  channels?: Record<string, Subscription> | undefined;
}

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

/** A user, of an organization or of none; answers the session. */
export function seedUser({ users }: Accounts, user: NewUser): string {
  const { id, session } = user;
  refuseTaken('user', id, id !== undefined && users.byId(id) !== undefined);
  refuseTaken('session', session, session !== undefined && users.bySession(session) !== undefined);
  return users.add(user).session;
}

function refuseTaken(what: string, name: string | undefined, taken: boolean): void {
  if (taken) throw new Invalid(`${what} "${name}" exists already: give every ${what} its own`);
}
