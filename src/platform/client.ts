/**
 * The platform as the engine sees it: every operation of the specification that it uses, typed.
 * Nothing else writes to the platform. 429s are waited out and failures retried below this file.
 *
 * Every method throws Rejected (4xx, in the platform's words), Unavailable (`acted` says whether a
 * write may have had its effect), RateLimited, Invalid for an id that cannot be one, and the
 * signal's reason when aborted before anything was written.
 */
import type { z } from 'zod';
import { httpDate } from '../http/observation.ts';
import {
  contact,
  contactList,
  deletion,
  enrolment,
  template,
  templateList,
  type Contact,
  type ContactList,
  type Enrolment,
  type Template,
  type TemplateList,
} from './answer.ts';
import { createCaller, type Caller, type CallerOptions, type CallOptions } from './call.ts';
import { operations } from './operations.ts';
import type {
  contactStatus,
  EnrolBody,
  Subscription,
  TemplateCreateBody,
  TemplateUpdateBody,
} from './request.ts';

/** Both always sent: the defaults of the specification contradict each other (Limits 2). */
interface Page {
  /** From 1. */
  page: number;
  /** 1 to 100. */
  limit: number;
}

interface ContactPage extends Page {
  /** A part of the address; `%` and `_` may be wildcards, so compare what comes back. */
  search?: string | undefined;
  status?: z.infer<typeof contactStatus> | undefined;
}

/** Who is enrolled: a contact there is, or an address, which is created when unknown. */
export type Enrol =
  { contactId: string; subscription: Subscription } | { email: string; subscription: Subscription };

interface Contacts {
  /** GET /api/contacts/list. `date`: the platform's clock at this answer, epoch milliseconds. */
  list(page: ContactPage, options?: CallOptions): Promise<ContactList & { date?: number }>;
  /** GET /api/contacts/retrieve/{id}; undefined: the platform says that there is none. */
  retrieve(id: string, options?: CallOptions): Promise<Contact | undefined>;
  /** DELETE /api/contacts/{id}; after 'unclear' only reading tells. */
  remove(id: string, options?: CallOptions): Promise<'removed' | 'unclear'>;
  /** POST /api/contacts/channel/{channelId}; the contact that comes back may be a bare row. */
  enrol(channelId: string, who: Enrol, options?: CallOptions): Promise<Enrolment>;
}

interface Templates {
  /** GET /api/template/v1/list; `total` may count this page only. */
  list(page: Page, options?: CallOptions): Promise<TemplateList>;
  /** POST /api/template/v1/create; never sent twice: any failure but a refusal is unknown. */
  create(body: TemplateCreateBody, options?: CallOptions): Promise<Template>;
  /** PUT /api/template/v1/{id}; only the fields given change. */
  update(id: string, body: TemplateUpdateBody, options?: CallOptions): Promise<Template>;
}

export interface Platform {
  contacts: Contacts;
  templates: Templates;
}

export function createPlatform(options: CallerOptions): Platform {
  const caller = createCaller(options);
  return { contacts: createContacts(caller), templates: createTemplates(caller) };
}

function createContacts({ call, find }: Caller): Contacts {
  return {
    async list({ page, limit, search, status }, options) {
      const address = search === undefined ? undefined : plain(search);
      const query = { page, limit, search: address, status };
      const addresses = address?.includes('@') ? [address] : [];
      const operation = operations.listContacts;
      const expected = 'a list of contacts';
      const listed = await call(
        { operation, query, addresses, schema: contactList, expected },
        options,
      );
      const date = httpDate(listed.answer.headers['date']);
      return date === undefined ? listed.value : { ...listed.value, date };
    },
    async retrieve(id, options) {
      const operation = operations.retrieveContact;
      const found = await find({ operation, id, schema: contact, expected: 'a contact' }, options);
      return found?.value;
    },
    async remove(id, options) {
      const operation = operations.deleteContact;
      const expected = 'the answer to a deletion';
      const done = await find({ operation, id, schema: deletion, expected }, options);
      return done?.value.success === true ? 'removed' : 'unclear';
    },
    async enrol(channelId, who, options) {
      const body = enrolBody(who);
      const operation = 'email' in who ? operations.enrolByEmail : operations.enrolById;
      const addresses = body.email === undefined ? [] : [body.email];
      const expected = 'the answer to an enrolment';
      const enrolled = await call(
        { operation, id: channelId, body, addresses, schema: enrolment, expected },
        options,
      );
      return enrolled.value;
    },
  };
}

function createTemplates({ call }: Caller): Templates {
  const expected = 'a template';
  return {
    async list({ page, limit }, options) {
      const operation = operations.listTemplates;
      const query = { page, limit };
      const listed = await call(
        { operation, query, schema: templateList, expected: 'a list of templates' },
        options,
      );
      return listed.value;
    },
    async create(body, options) {
      const operation = operations.createTemplate;
      return (await call({ operation, body, schema: template, expected }, options)).value;
    },
    async update(id, body, options) {
      const operation = operations.updateTemplate;
      return (await call({ operation, id, body, schema: template, expected }, options)).value;
    },
  };
}

function enrolBody(who: Enrol): EnrolBody {
  const { subscription } = who;
  if ('email' in who) return { email: plain(who.email), subscription };
  return { contact_id: who.contactId, subscription };
}

/** The platform looks addresses up in lower case, and stores them as they are given. */
function plain(address: string): string {
  return address.trim().toLowerCase();
}
