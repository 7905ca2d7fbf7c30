/**
 * Provides the operations on contacts and their channel subscriptions (specification, "Endpoints",
 * Contacts).
 */
import type { z } from 'zod';
import { httpDate } from '../http/rate-limit-headers.ts';
import {
  briefContactList,
  contact,
  contactList,
  deletion,
  enrolment,
  type Contact,
  type ContactList,
  type Enrolment,
} from './answer-schemas.ts';
import type { Called, Caller, CallOptions } from './api-call.ts';
import { operations } from './operations.ts';
import { paged, type Paged } from './paging.ts';
import type { contactStatus, EnrolBody, Subscription } from './request-schemas.ts';

interface ContactFilter {
  /** A part of the address. `%` and `_` may act as wildcards, so compare the returned addresses. */
  search?: string | undefined;
  status?: z.infer<typeof contactStatus> | undefined;
}

/**
 * The query for one page. page and limit are always sent, because the specification contradicts
 * itself about their defaults.
 */
interface ContactQuery extends ContactFilter {
  /** The page number, starting at 1. */
  page: number;
  /** The page size, from 1 to 100. */
  limit: number;
  /**
   * Leaves out names, properties and groups, which take as long to parse as all other fields
   * together.
   */
  brief?: boolean | undefined;
}

/** The contact to enrol: an id, or an address, for which a contact is created if none has it. */
export type Enrol =
  { contactId: string; subscription: Subscription } | { email: string; subscription: Subscription };

/** A response with `date`, the platform's clock at this response in epoch milliseconds. */
type Dated<T> = T & { date: number | undefined };
type ContactPage = Dated<ContactList>;
/** The response to an enrolment. */
export type Enrolled = Dated<Enrolment>;

/** Contacts and their channel subscriptions. */
export interface Contacts extends Paged<ContactFilter, ContactPage, Contact> {
  /**
   * GET /api/contacts/list. Returns one page, newest first. `total` counts the matches;
   * totalContacts, subscribedContacts and unsubscribedContacts ignore the filter. In a page,
   * `groups` may be empty although a contact has some, and `channels` may name every existing
   * channel.
   */
  list(query: ContactQuery, options?: CallOptions): Promise<ContactPage>;
  /**
   * GET /api/contacts/retrieve/{id}. Returns undefined if the platform states that the contact does
   * not exist.
   */
  retrieve(id: string, options?: CallOptions): Promise<Dated<Contact> | undefined>;
  /**
   * DELETE /api/contacts/{id}. Returns 'unclear' if the response is a 404 or does not contain
   * `success: true`; then only reading the contact shows the outcome.
   */
  remove(id: string, options?: CallOptions): Promise<'removed' | 'unclear'>;
  /**
   * POST /api/contacts/channel/{channelId}. The contact in the response may be a bare row. Rejected
   * with 400 for an invalid address, 404 for an unknown channel or id, and 409 if the contact
   * already has this subscription. An enrolment by address is repeated only after a 500, because
   * only the platform itself returns that status.
   */
  enrol(channelId: string, who: Enrol, options?: CallOptions): Promise<Enrolled>;
}

/** Creates the operations on contacts. */
export function createContacts({ call, find }: Caller): Contacts {
  const list: Contacts['list'] = async ({ page, limit, search, status, brief }, options) => {
    const address = search === undefined ? undefined : plain(search);
    const query = { page, limit, search: address, status };
    const addresses = address?.includes('@') ? [address] : [];
    const operation = operations.listContacts;
    const expected = 'a list of contacts';
    const schema: z.ZodType<ContactList> = brief ? briefContactList : contactList;
    const listed = await call({ operation, query, addresses, schema, expected }, options);
    return dated(listed);
  };
  return {
    ...paged({ list, rowsOf: (page) => page.contacts }),
    list,
    async retrieve(id, options) {
      const operation = operations.retrieveContact;
      const call = { operation, id, contact: id, schema: contact, expected: 'a contact' };
      const found = await find(call, options);
      return found && dated(found);
    },
    async remove(id, options) {
      const operation = operations.deleteContact;
      const expected = 'the answer to a deletion';
      const done = await find({ operation, id, contact: id, schema: deletion, expected }, options);
      return done?.value.success === true ? 'removed' : 'unclear';
    },
    async enrol(channelId, who, options) {
      const body = enrolBody(who);
      const operation = 'email' in who ? operations.enrolByEmail : operations.enrolById;
      const addresses = body.email === undefined ? [] : [body.email];
      const expected = 'the answer to an enrolment';
      const enrolled = await call(
        {
          operation,
          id: channelId,
          body,
          addresses,
          contact: body.contact_id,
          schema: enrolment,
          expected,
        },
        options,
      );
      return dated(enrolled);
    },
  };
}

function dated<T extends object>({ value, answer }: Called<T>): Dated<T> {
  return { ...value, date: httpDate(answer.headers['date']) };
}

function enrolBody(who: Enrol): EnrolBody {
  const { subscription } = who;
  if ('email' in who) return { email: plain(who.email), subscription };
  return { contact_id: who.contactId, subscription };
}

/**
 * Converts an address to the form that is sent. The platform looks addresses up in lower case, but
 * stores them as they are given.
 */
function plain(address: string): string {
  return address.trim().toLowerCase();
}
