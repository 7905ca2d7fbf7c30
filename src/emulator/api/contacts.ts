import {
  type ContactListQuery,
  enrolBody,
  type Subscription,
} from '../../platform/request-schemas.ts';
import { type ApiOutcome, refuse } from '../shared/api-answer.ts';
import type { Channel, ContactRow } from '../shared/row-types.ts';
import { findByEmail, type Organization } from '../store/organization.ts';
import { viewContact } from './answer-views.ts';
import type { Call } from './operation.ts';
import { z } from 'zod';
import { emailKey, membershipIn } from '../store/contacts.ts';

/**
 * Handles GET /api/contacts/list. Contacts are listed newest first. The three counters ignore
 * search and status.
 */
export function listContacts(
  organization: Organization,
  { query }: Call<ContactListQuery, undefined>,
): ApiOutcome {
  const { contacts } = organization;
  const { page = 1, limit = 100 } = query;
  const { total, rows } = findContacts(organization, { ...query, page, limit });
  return {
    status: 200,
    body: {
      object: 'contact',
      contacts: rows.map(viewContact),
      total,
      page,
      limit,
      totalContacts: contacts.listed().size,
      subscribedContacts: contacts.listed('subscribed').size,
      unsubscribedContacts: contacts.listed('unsubscribed').size,
      event: 'contact.list',
    },
  };
}

/** Handles GET /api/contacts/retrieve/{contact_id}. */
export function retrieveContact(
  { contacts }: Organization,
  { id }: Call<undefined, undefined>,
): ApiOutcome {
  const contact = contacts.byId(id);
  if (contact === undefined) return contactNotFound(id);
  return { status: 200, body: viewContact(contact), about: { contactId: id, email: contact.key } };
}

/**
 * Handles DELETE /api/contacts/{contact_id}, which removes the contact and everything stored about
 * it.
 */
export function deleteContact(
  { contacts }: Organization,
  { id }: Call<undefined, undefined>,
): ApiOutcome {
  const contact = contacts.byId(id);
  if (contact === undefined) return contactNotFound(id);
  contacts.remove(contact);
  return {
    status: 200,
    body: { success: true, object: 'contact', id, event: 'contact.delete' },
    about: { contactId: id, email: contact.key },
  };
}

/**
 * Returns one page of the matching contacts and the number of matches. A search for less than the
 * end of a name with its @ reads every row.
 */
function findContacts(
  { contacts, behaviour }: Organization,
  { page, limit, search = '', status }: ContactListQuery & { page: number; limit: number },
): { total: number; rows: ContactRow[] } {
  const listed = contacts.listed(status);
  const { finds, orders = (found: ContactRow[]) => found } = behaviour;
  if (search === '' && !behaviour.orders)
    return { total: listed.size, rows: listed.page(page, limit) };
  const needle = search.toLowerCase();
  const matches: ContactRow[] = [];
  const found = contacts.holding(needle)?.filter((row) => !status || row.status === status);
  for (const row of found ?? listed) if (finds(row.key, needle)) matches.push(row);
  return { total: matches.length, rows: orders(matches).slice((page - 1) * limit, page * limit) };
}

/** Returns the error response for an unknown contact. */
function contactNotFound(id: string): ApiOutcome {
  const refusal = refuse(404, 'Contact not found', {
    why: `The organization has no contact with the id "${id}".`,
    fix: 'List the contacts to find its id; it may have been deleted.',
  });
  return { ...refusal, about: { contactId: id } };
}

/**
 * Checks the body of an enrolment. `contact_id` takes precedence over `email`, and the default
 * subscription is opt_in.
 */
export const enrolment = enrolBody.transform(
  ({ contact_id: id, email, subscription = 'opt_in' }, context) => {
    if (id !== undefined) return { who: { id }, subscription };
    if (email !== undefined) return { who: { email: emailKey(email) }, subscription };
    context.addIssue({ code: 'custom', message: 'contact_id or email is required' });
    return z.NEVER;
  },
);

/**
 * Handles POST /api/contacts/channel/{channel_id}.
 *
 *   current subscription   requested   response
 *   none                   either      201, enrolled; an unknown email creates a contact
 *   opt_in                 opt_in      409; also for opt_out and opt_out
 *   opt_in                 opt_out     201, changed; also for opt_out and opt_in
 *
 * The contact's status and suppression have no effect.
 */
export function enrolContact(
  organization: Organization,
  { id: channelId, body: { who, subscription } }: Call<undefined, z.infer<typeof enrolment>>,
): ApiOutcome {
  const { contacts, channels } = organization;
  const asked = { contactId: who.id, email: who.email, channelId, subscription };
  const channel = channels.get(channelId);
  if (channel === undefined) {
    const refusal = refuse(404, 'Channel subscription not found', {
      why: `The organization has no channel with the id "${channelId}".`,
      fix: 'Use the id of a channel of the organization this API key belongs to.',
    });
    return { ...refusal, about: asked };
  }

  const known = who.id === undefined ? findByEmail(organization, who.email) : contacts.byId(who.id);
  if (known !== undefined) return enrol(organization, known, { channel, subscription });
  if (who.id !== undefined) return { ...contactNotFound(who.id), about: asked };

  const contact = contacts.add({ email: who.email }, organization.now());
  const outcome = enrol(organization, contact, { channel, subscription, event: 'contact.created' });
  return { ...outcome, about: { ...outcome.about, created: true } };
}

function enrol(
  { contacts }: Organization,
  contact: ContactRow,
  enrolment: { channel: Channel; subscription: Subscription; event?: string },
): ApiOutcome {
  const { channel, subscription, event = 'contact.updated' } = enrolment;
  const { id: contactId, key: email } = contact;
  const about = { contactId, email, channelId: channel.id, subscription };
  if (membershipIn(contact, channel.id)?.subscription === subscription) {
    const refusal = refuse(409, 'Contact is already subscribed to this channel', {
      why: `${contact.email} is ${subscription} in channel "${channel.id}" already.`,
      fix: 'Nothing has to be done; send the other subscription to change it.',
    });
    return { ...refusal, about };
  }
  const { id: subscriptionId } = contacts.setMembership(contact, channel, subscription);
  return {
    status: 201,
    body: { contact: { ...viewContact(contact), event }, subscriptionId, event },
    about,
  };
}
