import { z } from 'zod';
import { enrolBody, type Subscription } from '../../platform/request-schemas.ts';
import { type ApiOutcome, refuse } from '../shared/api-answer.ts';
import type { Channel, ContactRow } from '../shared/row-types.ts';
import { emailKey, membershipIn } from '../store/contact.ts';
import { findByEmail, type Organization } from '../store/organization.ts';
import { viewContact } from './answer-views.ts';
import { contactNotFound } from './contacts.ts';
import type { Call } from './operation.ts';

/**
 * Checks the body of an enrolment: `contact_id` wins over `email`, and the default is an opt_in.
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
 * Answers POST /api/contacts/channel/{channel_id}.
 *
 *   in the channel as    asked for    answer
 *   (not at all)         either       201, enrolled; an unknown email becomes a contact
 *   opt_in               opt_in       409; opt_out twice is the same
 *   opt_in               opt_out      201, changed; the other way round is the same
 *
 * The contact's status and suppression do not matter.
 */
export function enrolContact(
  organization: Organization,
  { id: channelId, body: { who, subscription } }: Call<undefined, z.infer<typeof enrolment>>,
): ApiOutcome {
  const { contacts, channels } = organization;
  const asked = { contactId: who.id, email: who.email, channelId, subscription };
  const channel = channels.get(channelId);
  if (channel === undefined) return { ...channelNotFound(channelId), about: asked };

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
  const whom = { contactId, email, channelId: channel.id, subscription };
  if (membershipIn(contact, channel.id)?.subscription === subscription) {
    return { ...alreadySubscribed(contact, channel, subscription), about: whom };
  }
  const { id: subscriptionId } = contacts.setMembership(contact, channel, subscription);
  return {
    status: 201,
    body: { contact: { ...viewContact(contact), event }, subscriptionId, event },
    about: whom,
  };
}

function channelNotFound(id: string): ApiOutcome {
  return refuse(404, 'Channel subscription not found', {
    why: `The organization has no channel with the id "${id}".`,
    fix: 'Use the id of a channel of the organization this API key belongs to.',
  });
}

function alreadySubscribed(contact: ContactRow, channel: Channel, subscription: Subscription) {
  return refuse(409, 'Contact is already subscribed to this channel', {
    why: `${contact.email} is ${subscription} in channel "${channel.id}" already.`,
    fix: 'Nothing has to be done; send the other subscription to change it.',
  });
}
