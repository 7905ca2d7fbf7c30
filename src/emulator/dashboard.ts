import { Invalid } from '../model/errors.ts';
import type { TemplateUpdateBody } from '../platform/request.ts';
import { emailKey, type ContactRow, type ContactStatus } from './store/contact.ts';
import { findChannel, type Organization } from './store/organization.ts';
import { write } from './store/templates.ts';
import { viewContact, viewTemplate, type ContactView, type TemplateView } from './view.ts';

/**
 * What happens on the platform without the API: people who sign up, leave and complain, colleagues
 * who edit and delete. A contact is named by its id or its email; one who does not exist, like an
 * unknown channel or template, throws Invalid.
 */
export interface Dashboard {
  /** A person signs up, or comes back: opted in to each of the channels. */
  signUp(person: SignUp): ContactView;
  /** The person opts out of one channel. */
  leave(contact: string, channelId: string): ContactView;
  /** The person wants no mail at all: status unsubscribed. The channels stay as they are. */
  unsubscribe(contact: string): ContactView;
  /** Takes back an unsubscribe, a block and a suppression. */
  resubscribe(contact: string): ContactView;
  /** A colleague blocks the person: status blocked. */
  block(contact: string): ContactView;
  /** Mail bounced, or was reported as spam; the status stays as it is. */
  suppress(contact: string, reason: string): ContactView;
  /** Answers the contact as it last was. */
  deleteContact(contact: string): ContactView;
  editTemplate(id: string, fields: TemplateUpdateBody): TemplateView;
}

interface SignUp {
  email: string;
  firstName?: string | undefined;
  lastName?: string | undefined;
  /** Ids. */
  channels?: string[] | undefined;
}

export function createDashboard(organization: Organization): Dashboard {
  const { contacts, templates } = organization;

  function change(who: string, act: (contact: ContactRow) => void): ContactView {
    const contact = findContact(organization, who);
    act(contact);
    contact.updatedAt = organization.now();
    return viewContact(contact);
  }

  function setStatus(who: string, status: ContactStatus): ContactView {
    return change(who, (contact) => contacts.setStatus(contact, status));
  }

  return {
    signUp({ channels = [], ...person }) {
      const entered = channels.map((id) => findChannel(organization, id));
      const email = organization.manner.keepsCase ? person.email.trim() : emailKey(person.email);
      const contact =
        contacts.byEmail(email) ?? contacts.add({ ...person, email }, organization.now());
      for (const channel of entered) contacts.setMembership(contact, channel, 'opt_in');
      return viewContact(contact);
    },
    leave: (who, channelId) =>
      change(who, (contact) => {
        contacts.setMembership(contact, findChannel(organization, channelId), 'opt_out');
      }),
    unsubscribe: (who) => setStatus(who, 'unsubscribed'),
    block: (who) => setStatus(who, 'blocked'),
    resubscribe: (who) =>
      change(who, (contact) => {
        contacts.setStatus(contact, 'subscribed');
        contact.suppressionReason = null;
        contact.suppressedAt = null;
      }),
    suppress: (who, reason) =>
      change(who, (contact) => {
        contact.suppressionReason = reason;
        contact.suppressedAt = organization.now();
      }),
    deleteContact: (who) => change(who, contacts.remove),
    editTemplate(id, fields) {
      const template = templates.byId(id);
      if (template === undefined) throw new Invalid(`no template "${id}": use the id of one`);
      write(template, fields);
      template.updatedAt = organization.now();
      return viewTemplate(organization, template);
    },
  };
}

function findContact({ contacts }: Organization, who: string): ContactRow {
  const contact = contacts.byId(who) ?? contacts.byEmail(who);
  if (contact !== undefined) return contact;
  throw new Invalid(`no contact "${who}": use the id or the email of one`);
}
