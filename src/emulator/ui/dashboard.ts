import { findChannel, type Organization, type Accounts } from '../store/organization.ts';
import { Invalid } from '../../domain/errors.ts';
import type { Channel, KeyRow, NewKey } from '../shared/row-types.ts';
import { type ContactChange, emailKey, membershipIn } from '../store/contacts.ts';
import {
  type ContactView,
  type DomainView,
  type KeyView,
  type TemplateView,
  viewContact,
  viewDomain,
  viewKey,
  viewTemplate,
} from '../api/answers.ts';
import type { TemplateUpdateBody } from '../../platform/request-schemas.ts';
import type { About } from '../shared/api-answer.ts';
import type { Route } from '../limits/route-limits.ts';

/** Changes the platform as recipients and colleagues do. Throws Invalid for unknown records. */
export type Dashboard = ReturnType<typeof createDashboard>;

export function createDashboard(organization: Organization) {
  const { contacts, behaviour, now } = organization;

  const kept = (email: string) => (behaviour.keepsCase ? email.trim() : emailKey(email));

  const findContact = (who: string) =>
    known(
      contacts.byId(who) ?? contacts.byEmail(who),
      `contact "${who}": use the id or the email of one`,
    );

  function change(who: string, fields: ContactChange): ContactView {
    const contact = findContact(who);
    contacts.change(contact, fields, now());
    return viewContact(contact);
  }
  return {
    /** Signs a person up, whether new or returning: opts them in to each of the channels. */
    signUp({ channels = [], ...person }: SignUp): ContactView {
      const entered = channels.map((id) => findChannel(organization, id));
      const email = kept(person.email);
      const contact = contacts.byEmail(email) ?? contacts.add({ ...person, email }, now());
      for (const channel of entered) contacts.setMembership(contact, channel, 'opt_in');
      return viewContact(contact);
    },
    leave(who: string, channelId: string): ContactView {
      const contact = findContact(who);
      contacts.setMembership(contact, findChannel(organization, channelId), 'opt_out');
      return change(who, {});
    },
    /** Unsubscribes the person from all mail (status unsubscribed). The channels stay unchanged. */
    unsubscribe: (who: string) => change(who, { status: 'unsubscribed' }),
    block: (who: string) => change(who, { status: 'blocked' }),
    resubscribe: (who: string) =>
      change(who, { status: 'subscribed', suppressionReason: null, suppressedAt: null }),
    /** Records that mail bounced or was reported as spam. The status stays unchanged. */
    suppress: (who: string, reason: string) =>
      change(who, { suppressionReason: reason, suppressedAt: now() }),
    /** Changes fields; an email is stored as by a sign-up. Throws Invalid if it is taken. */
    editContact(
      who: string,
      fields: Omit<SignUp, 'email' | 'channels'> & { email?: string | undefined },
    ): ContactView {
      const contact = findContact(who);
      const { firstName = contact.firstName, lastName = contact.lastName } = fields;
      const email = fields.email === undefined ? contact.email : kept(fields.email);
      return change(contact.id, { email, firstName, lastName });
    },
    /** Removes the contact from a channel, as a colleague would. Throws Invalid if not in it. */
    removeFromChannel(who: string, channelId: string): ContactView {
      const contact = findContact(who);
      const { id } = findChannel(organization, channelId);
      const membership = membershipIn(contact, id);
      if (!membership) throw new Invalid(`contact "${who}" is not in channel "${id}"`);
      contacts.removeMembership(contact, membership);
      return change(contact.id, {});
    },
    deleteContact(who: string): ContactView {
      const contact = findContact(who);
      contacts.remove(contact);
      return viewContact(contact);
    },
    ...settingsOf(organization),
  };
}

interface SignUp {
  email: string;
  firstName?: string | undefined;
  lastName?: string | undefined;
  channels?: string[] | undefined;
}

/** `key`: the value for the x-api-key header. */
export type KeyWithSecret = KeyView & { key: string; revoked: boolean };

/** Actions of colleagues on what an id names (a domain also its name), and domain checks. */
function settingsOf(organization: Organization) {
  const { templates, domains, keys, now } = organization;

  const findTemplate = (id: string) =>
    known(templates.byId(id), `template "${id}": use the id of one`);
  const findKey = (id: string) => known(keys.byId(id), `API key "${id}": use the id of one`);
  const findDomain = (who: string) =>
    known(
      domains.byId(who) ?? domains.byName(who),
      `domain "${who}": use the id or the name of one`,
    );

  function changeKey(id: string, fields: { enabled?: boolean; revoked?: boolean }): KeyWithSecret {
    const key = findKey(id);
    keys.change(key, { ...fields, updatedAt: now() });
    return showKey(key);
  }

  return {
    editTemplate(id: string, fields: TemplateUpdateBody): TemplateView {
      const template = findTemplate(id);
      templates.change(template, fields, now());
      return viewTemplate(organization, template);
    },
    /** Deletes the template and returns its last state. No operation finds it afterwards. */
    deleteTemplate(id: string): TemplateView {
      const template = findTemplate(id);
      templates.remove(template);
      return viewTemplate(organization, template);
    },
    createChannel(channel: Channel): Channel {
      const { id } = channel;
      if (organization.channels.byId(id)) {
        throw new Invalid(`channel "${id}" exists already: choose another id`);
      }
      return organization.channels.insert({ ...channel });
    },
    /** Ends the check of the DNS records; only `active` makes the domain verified. */
    settleDomain(
      who: string,
      { status, reason = '' }: { status: string; reason?: string | undefined },
    ): DomainView {
      const domain = findDomain(who);
      const verified = status === 'active';
      domains.change(domain, {
        status,
        userVerifiedDomain: verified,
        systemVerified: verified,
        verificationFailedReason: reason,
        updatedAt: now(),
      });
      return viewDomain(domain);
    },
    deleteDomain(who: string): DomainView {
      const domain = findDomain(who);
      domains.remove(domain);
      return viewDomain(domain);
    },
    createKey: (key: Pick<NewKey, 'name' | 'permissions'>) => showKey(keys.add(key, now())),
    enableKey: (id: string) => changeKey(id, { enabled: true }),
    disableKey: (id: string) => changeKey(id, { enabled: false }),
    revokeKey: (id: string) => changeKey(id, { revoked: true }),
    rotateKey(id: string): KeyWithSecret {
      const key = findKey(id);
      keys.rotate(key, now());
      return showKey(key);
    },
  };
}

function showKey(key: KeyRow): KeyWithSecret {
  return { ...viewKey(key), key: key.secret, revoked: key.revoked };
}

function known<Row>(row: Row | undefined, what: string): Row {
  if (row !== undefined) return row;
  throw new Invalid(`no ${what}`);
}

/** A request to the API, and the contact or template that it concerned, if known. */
export interface LoggedRequest extends About {
  at: string;
  method: string;
  path: string;
  route: Route | null;
  status: number;
  /** The name of the fault that occurred. If the status is 0, there was no response. */
  fault?: string;
}

export function createWorld(
  organization: Organization,
  { accounts, requests }: { accounts: Accounts; requests: Recent<LoggedRequest> },
) {
  const { channels, contacts, templates, domains, keys, outbox } = organization;
  const listed = contacts.listed();
  const world = {
    channels: channels.rows,
    /** Each list holds all records, or the newest `count`. */
    contacts: (count = listed.size) => listed.page(1, count).map(viewContact),
    contact(who: string): ContactView | undefined {
      const row = contacts.byId(who) ?? contacts.byEmail(who);
      return row && viewContact(row);
    },
    templates(count = templates.listed().size) {
      const rows = templates.listed().page(1, count);
      return rows.map((row) => viewTemplate(organization, row));
    },
    domains: (count = domains.listed().size) => domains.listed().page(1, count).map(viewDomain),
    keys: () => keys.rows().map(showKey),
    users: () => accounts.users.rows().filter((user) => user.organizationId === organization.id),
    outbox: outbox.read,
    /** Returns the requests of all organizations, or the last `count` of them. */
    requests: requests.read,
  };
  return {
    ...world,
    state: (count: number) => ({
      organizationId: organization.id,
      name: organization.name,
      channels: channels.rows(),
      totals: {
        contacts: listed.size,
        subscribed: contacts.listed('subscribed').size,
        unsubscribed: contacts.listed('unsubscribed').size,
        blocked: contacts.listed('blocked').size,
        templates: templates.listed().size,
        domains: domains.listed().size,
      },
      contacts: world.contacts(count),
      templates: world.templates(count),
      domains: world.domains(count),
      keys: world.keys(),
      users: world.users(),
      outbox: outbox.read(count),
      requests: requests.read(count),
    }),
  };
}

/** Shows the world. Records are listed newest first; requests and emails oldest first. */
export type World = ReturnType<typeof createWorld>;

/** Holds the most recent entries of a list. Older entries are dropped to limit memory use. */
export type Recent<T> = ReturnType<typeof remember<T>>;

/** Creates a list that remembers at least the last `keep` entries. */
export function remember<T>(keep: number) {
  const entries: T[] = [];
  return {
    add(entry: T): void {
      // Dropping half of the entries at a time makes an addition cheap on average.
      if (entries.length >= keep * 2) entries.splice(0, keep);
      entries.push(entry);
    },
    read: (count = entries.length): T[] => entries.slice(Math.max(0, entries.length - count)),
    clear: () => void entries.splice(0),
  };
}
