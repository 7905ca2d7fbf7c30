import { refuse } from '../shared/api-answer.ts';
import { enrolment } from '../api/contacts.ts';
import { json } from '../api/request-parsing.ts';
import { membershipIn } from '../store/contacts.ts';
import { findByEmail } from '../store/organization.ts';
import { isRecord, type Quirk, type QuirkRequest, withBody, withStatus } from './quirk.ts';

const readEnrolment = json(enrolment);

/** Returns the enrolment in a request, or undefined if the request is not a valid enrolment. */
function enrolmentIn({ route, body }: QuirkRequest) {
  if (route !== 'contacts.enrol') return undefined;
  const read = readEnrolment(body);
  return read.ok ? read.value : undefined;
}

/** Refuses an enrolment that would change an existing subscription. */
export function noFlip(): Quirk {
  return {
    answers(question, organization) {
      const { contacts, channels } = organization;
      const asked = enrolmentIn(question);
      if (!asked) return undefined;
      const { who, subscription } = asked;
      const contact =
        who.id === undefined ? findByEmail(organization, who.email) : contacts.byId(who.id);
      const is = contact && membershipIn(contact, question.id)?.subscription;
      if (!contact || is === undefined || is === subscription) return undefined;
      const refusal = refuse(409, 'Contact is already subscribed to this channel', {
        why: `${contact.email} is ${is} in channel "${channels.get(question.id)?.name}".`,
        fix: 'A subscription that exists is not changed by an enrolment.',
      });
      const { id: contactId, key: email } = contact;
      return { ...refusal, about: { contactId, email, channelId: question.id, subscription } };
    },
  };
}

/** Refuses an enrolment for an unknown email instead of creating a contact. */
export function unknownEmail(): Quirk {
  return {
    answers(question, organization) {
      const asked = enrolmentIn(question);
      const email = asked?.who.email;
      if (!asked || email === undefined || !organization.channels.has(question.id))
        return undefined;
      if (findByEmail(organization, email)) return undefined;
      const refusal = refuse(404, 'Contact not found', {
        why: 'The organization has no contact with this email.',
        fix: 'Create the contact first.',
      });
      const { subscription } = asked;
      return { ...refusal, about: { email, channelId: question.id, subscription } };
    },
  };
}

/** Responds to a successful enrolment with this status. */
export function enrolStatus(status: string): Quirk {
  return {
    turns(reply) {
      const enrolled = reply.route === 'contacts.enrol' && reply.outcome.status === 201;
      return enrolled ? withStatus(reply, Number(status)) : reply;
    },
  };
}

/** Updates the contact's `updatedAt` when a subscription changes. */
export function enrolTouches(): Quirk {
  return { behaviour: { touches: true } };
}

const elsewhere = new Set(['object', 'channels', 'properties', 'groups', 'event']);

/** Responds to an enrolment with only the contact's own row, without data from other tables. */
export function enrolRaw(): Quirk {
  return {
    turns(reply) {
      const { body } = reply.outcome;
      if (reply.route !== 'contacts.enrol' || !isRecord(body) || !isRecord(body['contact'])) {
        return reply;
      }
      const row = Object.entries(body['contact']).filter(([field]) => !elsewhere.has(field));
      return withBody(reply, { ...body, contact: Object.fromEntries(row) });
    },
  };
}

/**
 * Preserves the case of emails as they were entered. An enrolment then finds only the exact
 * spelling.
 */
export function emailAsGiven(): Quirk {
  return { behaviour: { keepsCase: true } };
}
