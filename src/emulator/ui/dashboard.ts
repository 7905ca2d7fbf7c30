import { findChannel, type Organization } from '../store/organization.ts';
import { Invalid } from '../../domain/errors.ts';
import type { Channel, ContactRow, DomainRow, KeyRow, TemplateRow } from '../shared/row-types.ts';
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
} from '../api/answer-views.ts';
import type { TemplateUpdateBody } from '../../platform/request-schemas.ts';
import type { NewKey } from '../store/api-keys.ts';

/** Changes the platform as recipients and colleagues do. Throws Invalid for unknown records. */
export type Dashboard = ReturnType<typeof createDashboard>;

export function createDashboard(organization: Organization) {
  return { ...peopleOf(organization), ...settingsOf(organization) };
}

interface SignUp {
  email: string;
  firstName?: string | undefined;
  lastName?: string | undefined;
  channels?: string[] | undefined;
}

/** Actions of recipients, and of colleagues on contacts, which are named by id or email. */
function peopleOf(organization: Organization) {
  const { contacts, behaviour, now } = organization;

  /** Converts an email to its stored form. */
  const kept = (email: string) => (behaviour.keepsCase ? email.trim() : emailKey(email));

  function change(who: string, fields: ContactChange): ContactView {
    const contact = findContact(organization, who);
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
      const contact = findContact(organization, who);
      contacts.setMembership(contact, findChannel(organization, channelId), 'opt_out');
      return change(who, {});
    },
    /** Unsubscribes the person from all mail (status unsubscribed). The channels stay unchanged. */
    unsubscribe: (who: string) => change(who, { status: 'unsubscribed' }),
    /** Blocks the person, as a colleague would (status blocked). */
    block: (who: string) => change(who, { status: 'blocked' }),
    /** Reverses an unsubscribe, a block and a suppression. */
    resubscribe: (who: string) =>
      change(who, { status: 'subscribed', suppressionReason: null, suppressedAt: null }),
    /** Records that mail bounced or was reported as spam. The status stays unchanged. */
    suppress: (who: string, reason: string) =>
      change(who, { suppressionReason: reason, suppressedAt: now() }),
    /** Changes the given fields, as a colleague would. Throws Invalid if the new email is taken. */
    editContact(
      who: string,
      fields: {
        /** Stored in the same form as the email of a sign-up. */
        email?: string | undefined;
        firstName?: string | undefined;
        lastName?: string | undefined;
      },
    ): ContactView {
      const contact = findContact(organization, who);
      const { firstName = contact.firstName, lastName = contact.lastName } = fields;
      const email = fields.email === undefined ? contact.email : kept(fields.email);
      return change(contact.id, { email, firstName, lastName });
    },
    /** Removes the contact from a channel, as a colleague would. Throws Invalid if not in it. */
    removeFromChannel(who: string, channelId: string): ContactView {
      const contact = findContact(organization, who);
      const { id } = findChannel(organization, channelId);
      const membership = membershipIn(contact, id);
      if (!membership) throw new Invalid(`contact "${who}" is not in channel "${id}"`);
      contacts.removeMembership(contact, membership);
      return change(contact.id, {});
    },
    deleteContact(who: string): ContactView {
      const contact = findContact(organization, who);
      contacts.remove(contact);
      return viewContact(contact);
    },
  };
}

function findContact({ contacts }: Organization, who: string): ContactRow {
  const contact = contacts.byId(who) ?? contacts.byEmail(who);
  if (contact !== undefined) return contact;
  throw new Invalid(`no contact "${who}": use the id or the email of one`);
}

/** A key with its secret, for people who use the emulator. */
export interface KeyWithSecret extends KeyView {
  /** The value for the x-api-key header. */
  key: string;
  revoked: boolean;
}

/** Actions of colleagues on what an id names (a domain also its name), and domain checks. */
function settingsOf(organization: Organization) {
  const { templates, domains, keys, now } = organization;

  function changeKey(id: string, fields: { enabled?: boolean; revoked?: boolean }): KeyWithSecret {
    const key = findKey(organization, id);
    keys.change(key, fields, now());
    return showKey(key);
  }

  return {
    editTemplate(id: string, fields: TemplateUpdateBody): TemplateView {
      const template = findTemplate(organization, id);
      templates.change(template, fields, now());
      return viewTemplate(organization, template);
    },
    /** Deletes the template and returns its last state. No operation finds it afterwards. */
    deleteTemplate(id: string): TemplateView {
      const template = findTemplate(organization, id);
      templates.remove(template);
      return viewTemplate(organization, template);
    },
    createChannel(channel: Channel): Channel {
      const { id } = channel;
      if (organization.channels.has(id)) {
        throw new Invalid(`channel "${id}" exists already: choose another id`);
      }
      organization.addChannel({ ...channel });
      return channel;
    },
    /** Ends the check of the DNS records; only `active` makes the domain verified. */
    settleDomain(
      who: string,
      { status, reason = '' }: { status: string; reason?: string | undefined },
    ): DomainView {
      const domain = findDomain(organization, who);
      const verified = status === 'active';
      domains.change(
        domain,
        {
          status,
          userVerifiedDomain: verified,
          systemVerified: verified,
          verificationFailedReason: reason,
        },
        now(),
      );
      return viewDomain(domain);
    },
    deleteDomain(who: string): DomainView {
      const domain = findDomain(organization, who);
      domains.remove(domain);
      return viewDomain(domain);
    },
    createKey: (key: Pick<NewKey, 'name' | 'permissions'>) => showKey(keys.add(key, now())),
    enableKey: (id: string) => changeKey(id, { enabled: true }),
    disableKey: (id: string) => changeKey(id, { enabled: false }),
    revokeKey: (id: string) => changeKey(id, { revoked: true }),
    /** Generates a new secret. The old one becomes unknown immediately. */
    rotateKey(id: string): KeyWithSecret {
      const key = findKey(organization, id);
      keys.rotate(key, now());
      return showKey(key);
    },
  };
}

export function showKey(key: KeyRow): KeyWithSecret {
  return { ...viewKey(key), key: key.secret, revoked: key.revoked };
}

function findTemplate({ templates }: Organization, id: string): TemplateRow {
  const template = templates.byId(id);
  if (template !== undefined) return template;
  throw new Invalid(`no template "${id}": use the id of one`);
}

function findDomain({ domains }: Organization, who: string): DomainRow {
  const domain = domains.byId(who) ?? domains.byName(who);
  if (domain !== undefined) return domain;
  throw new Invalid(`no domain "${who}": use the id or the name of one`);
}

function findKey({ keys }: Organization, id: string): KeyRow {
  const key = keys.byId(id);
  if (key !== undefined) return key;
  throw new Invalid(`no API key "${id}": use the id of one`);
}
