import { Invalid } from '../../domain/errors.ts';
import type { ContactRow } from '../shared/row-types.ts';
import { type ContactChange, emailKey, membershipIn } from '../store/contact.ts';
import { findChannel, type Organization } from '../store/organization.ts';
import { type ContactView, viewContact } from '../api/answer-views.ts';

/**
 * What the recipients do, and what colleagues do to their contacts. A contact is named by id or
 * email.
 */
export interface People {
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
  /**
   * A colleague changes the given fields. Throws Invalid if another contact has the new email, in
   * any case.
   */
  editContact(contact: string, fields: ContactEdit): ContactView;
  /**
   * A colleague removes the contact from a channel: no row is left. Throws Invalid if there is
   * none.
   */
  removeFromChannel(contact: string, channelId: string): ContactView;
  /** Returns the contact as it was last. */
  deleteContact(contact: string): ContactView;
}

interface SignUp {
  email: string;
  firstName?: string | undefined;
  lastName?: string | undefined;
  /** Ids. */
  channels?: string[] | undefined;
}

interface ContactEdit {
  /** Stored like the email of a sign-up. */
  email?: string | undefined;
  firstName?: string | undefined;
  lastName?: string | undefined;
}

/** Creates the acts of people for an organization. */
export function peopleOf(organization: Organization): People {
  const { contacts, behaviour, now } = organization;

  /** Returns an email as it is stored. */
  const kept = (email: string) => (behaviour.keepsCase ? email.trim() : emailKey(email));

  function change(who: string, fields: ContactChange): ContactView {
    const contact = findContact(organization, who);
    contacts.change(contact, fields, now());
    return viewContact(contact);
  }

  return {
    signUp({ channels = [], ...person }) {
      const entered = channels.map((id) => findChannel(organization, id));
      const email = kept(person.email);
      const contact = contacts.byEmail(email) ?? contacts.add({ ...person, email }, now());
      for (const channel of entered) contacts.setMembership(contact, channel, 'opt_in');
      return viewContact(contact);
    },
    leave(who, channelId) {
      const contact = findContact(organization, who);
      contacts.setMembership(contact, findChannel(organization, channelId), 'opt_out');
      return change(who, {});
    },
    unsubscribe: (who) => change(who, { status: 'unsubscribed' }),
    block: (who) => change(who, { status: 'blocked' }),
    resubscribe: (who) =>
      change(who, { status: 'subscribed', suppressionReason: null, suppressedAt: null }),
    suppress: (who, reason) => change(who, { suppressionReason: reason, suppressedAt: now() }),
    editContact(who, fields) {
      const contact = findContact(organization, who);
      const { firstName = contact.firstName, lastName = contact.lastName } = fields;
      const email = fields.email === undefined ? contact.email : kept(fields.email);
      return change(contact.id, { email, firstName, lastName });
    },
    removeFromChannel(who, channelId) {
      const contact = findContact(organization, who);
      const { id } = findChannel(organization, channelId);
      const membership = membershipIn(contact, id);
      if (!membership) throw new Invalid(`contact "${who}" is not in channel "${id}"`);
      contacts.removeMembership(contact, membership);
      return change(contact.id, {});
    },
    deleteContact(who) {
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
