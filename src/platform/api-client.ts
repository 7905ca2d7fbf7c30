/**
 * The typed client of the platform, with every operation of the specification; nothing else writes
 * to it. Every method throws Rejected (4xx, in the platform's words), Unavailable (`acted` states
 * whether a write may have had its effect), RateLimited, Invalid for an impossible id, and the
 * signal's reason if it is aborted before anything was written.
 */
import {
  type Call,
  type Caller,
  type CallerOptions,
  type CallOptions,
  createCaller,
  type Called,
} from './api-call.ts';
import {
  type ApiKey,
  apiKey,
  type Domain,
  domain,
  domainList,
  type DomainList,
  nameservers,
  type Nameservers,
  type Template,
  template,
  templateList,
  type TemplateList,
  testSend,
  verification,
  type Verification,
  briefContactList,
  contact,
  contactList,
  deletion,
  enrolment,
  type Contact,
  type ContactList,
  type Enrolment,
} from './answer-schemas.ts';
import { operations } from './operations.ts';
import type {
  DomainCreateBody,
  TemplateCreateBody,
  TemplateUpdateBody,
  TestSendBody,
  contactStatus,
  EnrolBody,
  Subscription,
} from './request-schemas.ts';
import { Invalid, Unavailable } from '../domain/errors.ts';
import type { z } from 'zod';
import { httpDate } from '../http/rate-limit-headers.ts';

/** The operations of one organization. */
export interface Platform {
  contacts: Contacts;
  templates: Templates;
  domains: Domains;
  apiKeys: {
    /** POST /api/api-key/v1/enable/{id}. It may be repeated. A disabled key is refused (401). */
    enable(id: string, options?: CallOptions): Promise<ApiKey>;
  };
}

/** Creates the client over any `send`: a connection, or a platform in the same process. */
export function createPlatform(options: CallerOptions): Platform {
  const caller = createCaller(options);
  const get: Get = async (call, how) => (await caller.call(call, how)).value;
  return {
    contacts: createContacts(caller),
    templates: createTemplates(get),
    domains: createDomains(get),
    apiKeys: {
      enable: async (id, how) =>
        get(
          { operation: operations.enableApiKey, id, schema: apiKey, expected: 'an API key' },
          how,
        ),
    },
  };
}

/** Calls an operation, and returns the parsed value alone. */
type Get = <T>(call: Call<T>, options?: CallOptions) => Promise<T>;

interface Templates extends Paged<object, TemplateList, Template> {
  /**
   * GET /api/template/v1/list. Returns one page, newest first, including archived templates. Names
   * are not unique. `total` may count this page only.
   */
  list(query: { page: number; limit: number }, options?: CallOptions): Promise<TemplateList>;
  /** POST /api/template/v1/create. Never sent twice: only a refusal has a known outcome. */
  create(body: TemplateCreateBody, options?: CallOptions): Promise<Template>;
  /**
   * PUT /api/template/v1/{id}. Changes only the given fields. If the content changes without
   * variables, the platform derives them again, so give both.
   */
  update(id: string, body: TemplateUpdateBody, options?: CallOptions): Promise<Template>;
  /**
   * POST /api/template/v1/{id}/test. Sends one email to `to`, with the template's variables
   * resolved. It is never sent twice, so after any failure except a refusal the email may have been
   * sent. Returns 'unclear' if the response does not contain `success: true`.
   */
  test(id: string, body: TestSendBody, options?: CallOptions): Promise<'sent' | 'unclear'>;
}

function createTemplates(get: Get): Templates {
  const one = { schema: template, expected: 'a template' };
  const all = { schema: templateList, expected: 'a list of templates' };
  const list: Templates['list'] = async ({ page, limit }, how) =>
    get({ operation: operations.listTemplates, query: { page, limit }, ...all }, how);
  return {
    ...paged({ list, rowsOf: (page) => page.templates }),
    list,
    create: async (body, how) => get({ operation: operations.createTemplate, body, ...one }, how),
    update: async (id, body, how) =>
      get({ operation: operations.updateTemplate, id, body, ...one }, how),
    async test(id, body, how) {
      const operation = operations.testTemplate;
      const addresses = [body.to, body.fromEmail ?? ''];
      const expected = 'the answer to a test send';
      const sent = await get({ operation, id, body, addresses, schema: testSend, expected }, how);
      return sent.success === true ? 'sent' : 'unclear';
    },
  };
}

interface Domains extends Paged<object, DomainList, Domain> {
  /** GET /api/domain/v1/list. Returns one page, loosely checked: its shape is not specified. */
  list(query: { page: number; limit: number }, options?: CallOptions): Promise<DomainList>;
  /**
   * POST /api/domain/v1/create. The response names the DNS records to create. Rejected with 409 if
   * the domain exists. Never sent twice: if the outcome is unknown, the list shows it.
   */
  create(body: DomainCreateBody, options?: CallOptions): Promise<Domain>;
  /**
   * POST /api/domain/v1/verify/{id}. Starts or continues a check of the DNS records; `status` may
   * be any word. It may be repeated. Rejected with 400, 403 or 404.
   */
  verify(id: string, options?: CallOptions): Promise<Verification>;
  /**
   * GET /api/domain/v1/nameservers/{id}, which needs the session of a user of the dashboard and not
   * the API key (Authentication 6): its cookie as name=value, whose name ends in .session_token;
   * others are left out. Rejected with 401 for an unknown cookie, 403 for a user without an
   * organization, and 404 without DNS records. Throws Invalid for a text that is not a cookie.
   */
  nameservers(id: string, options: { sessionCookie: string } & CallOptions): Promise<Nameservers>;
}

function createDomains(get: Get): Domains {
  const all = { schema: domainList, expected: 'a list of domains' };
  const list: Domains['list'] = async ({ page, limit }, how) =>
    get({ operation: operations.listDomains, query: { page, limit }, ...all }, how);
  return {
    ...paged({ list, rowsOf: (page) => page.domains }),
    list,
    create: async (body, how) =>
      get({ operation: operations.createDomain, body, schema: domain, expected: 'a domain' }, how),
    async verify(id, how) {
      const expected = 'the answer to a verification';
      return get({ operation: operations.verifyDomain, id, schema: verification, expected }, how);
    },
    async nameservers(id, { sessionCookie, ...how }) {
      const operation = operations.readNameservers;
      const cookie = sessionToken(sessionCookie);
      const expected = 'a list of nameservers';
      return get({ operation, id, cookie, schema: nameservers, expected }, how);
    },
  };
}

function sessionToken(text: string): string {
  const token = text
    .replace(/^cookie:/i, '')
    .split(';')
    .map((cookie) => cookie.trim())
    .find((cookie) => /^[^\s=,]+\.session_token=[\x21-\x7e]+$/.test(cookie));
  if (token !== undefined) return token;
  throw new Invalid('the session cookie is none: copy name=value, its name ends in .session_token');
}

interface ContactFilter {
  /** A part of the address. `%` and `_` may act as wildcards, so compare what comes back. */
  search?: string | undefined;
  status?: z.infer<typeof contactStatus> | undefined;
}

/** The query for one page, whose defaults the specification does not tell for sure. */
interface ContactQuery extends ContactFilter {
  page: number;
  /** The page size, from 1 to 100; pages count from 1. */
  limit: number;
  /** Leaves out names, properties and groups, which take as long to parse as all the rest. */
  brief?: boolean | undefined;
}

/** The contact to enrol: an id, or an address, for which a contact is created if none has it. */
export type Enrol =
  | { contactId: string; subscription: Subscription }
  | { email: string; subscription: Subscription };

/** A response with `date`, the platform's clock at this response in epoch milliseconds. */
type Dated<T> = T & { date: number | undefined };
type ContactPage = Dated<ContactList>;
/** The response to an enrolment. */
export type Enrolled = Dated<Enrolment>;

interface Contacts extends Paged<ContactFilter, ContactPage, Contact> {
  /**
   * GET /api/contacts/list. Returns one page, newest first. `total` counts the matches, and the
   * other counts ignore the filter. `groups` may be empty although a contact has some, and
   * `channels` may name every existing channel.
   */
  list(query: ContactQuery, options?: CallOptions): Promise<ContactPage>;
  /** GET /api/contacts/retrieve/{id}. Returns undefined if the platform says there is none. */
  retrieve(id: string, options?: CallOptions): Promise<Dated<Contact> | undefined>;
  /** DELETE /api/contacts/{id}. 'unclear': a 404, or no `success: true`; only reading tells. */
  remove(id: string, options?: CallOptions): Promise<'removed' | 'unclear'>;
  /**
   * POST /api/contacts/channel/{channelId}. The contact in the response may be a bare row. Rejected
   * with 400 for an invalid address, 404 for an unknown channel or id, 409 for the same
   * subscription. By address it is repeated only after a 500, which only the platform itself
   * returns.
   */
  enrol(channelId: string, who: Enrol, options?: CallOptions): Promise<Enrolled>;
}

function createContacts({ call, find }: Caller): Contacts {
  const list: Contacts['list'] = async ({ page, limit, search, status, brief }, options) => {
    const address = search === undefined ? undefined : plain(search);
    const query = { page, limit, search: address, status };
    const addresses = address?.includes('@') ? [address] : [];
    const operation = operations.listContacts;
    const expected = 'a list of contacts';
    const schema: z.ZodType<ContactList> = brief ? briefContactList : contactList;
    return dated(await call({ operation, query, addresses, schema, expected }, options));
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
      const { subscription } = who;
      const body: EnrolBody =
        'email' in who
          ? { email: plain(who.email), subscription }
          : { contact_id: who.contactId, subscription };
      const operation = 'email' in who ? operations.enrolByEmail : operations.enrolById;
      const addresses = body.email === undefined ? [] : [body.email];
      const expected = 'the answer to an enrolment';
      const about = { id: channelId, body, addresses, contact: body.contact_id };
      return dated(await call({ operation, ...about, schema: enrolment, expected }, options));
    },
  };
}

function dated<T extends object>({ value, answer }: Called<T>): Dated<T> {
  return { ...value, date: httpDate(answer.headers['date']) };
}

/** Converts an address to what is sent: lower case, in which the platform looks it up. */
const plain = (address: string): string => address.trim().toLowerCase();

// Reads a whole list page by page ("Limits" 2 and 3). `total` alone neither ends the read nor
// continues it, because it may count a single page, and records are added and removed while a list
// is read.
//
//   a page that is          and                               then
//   empty                                                     the end
//   without a new record    short                             the end
//                           full, less than 4 times in a row  continue: inserts shift known records
//                           full, the 4th time in a row       Unavailable: the pages do not advance
//   short                   as many seen as `total` says      the end
//                           fewer seen                        continue: the limit may be capped
//   full                                                      continue

const MOST_RECORDS = 100;
const MOST_REPEATS = 3;

/** The ways to read a list. The next page is requested only when the iteration reaches it. */
interface Paged<Query, Page, Row> {
  /**
   * Yields the responses one after another, also a first one that is empty. A record may be on
   * several pages, or on none if others were deleted: only a certified listing proves absence.
   */
  pages(query?: Query & PageSize, options?: CallOptions): AsyncGenerator<Page, void, undefined>;
  /** Yields every record on those pages, each id once. */
  all(query?: Query & PageSize, options?: CallOptions): AsyncGenerator<Row, void, undefined>;
}

interface PageSize {
  /** The records per page, from 1 to 100; the default is 100. */
  limit?: number | undefined;
}

/** Creates the ways to read a list from its list operation. They throw the same errors. */
export function paged<
  Query extends object,
  Page extends { total?: number | undefined },
  Row extends { id: string },
>({
  list,
  rowsOf,
}: {
  list(query: Query & { page: number; limit: number }, options?: CallOptions): Promise<Page>;
  rowsOf(page: Page): readonly Row[];
}): Paged<Query, Page, Row> {
  const pages: Paged<Query, Page, Row>['pages'] = async function* (query, options) {
    const { limit = MOST_RECORDS } = query ?? {};
    const seen = new Set<string>();
    let repeats = 0;
    for (let page = 1; ; page += 1) {
      const listed = await list(Object.assign({}, query, { page, limit }), options);
      const rows = rowsOf(listed);
      if (rows.length > 0 || page === 1) yield listed;
      const before = seen.size;
      for (const { id } of rows) seen.add(id);
      const full = rows.length >= limit;
      repeats = seen.size > before ? 0 : repeats + 1;
      if (repeats > 0 && !full) return;
      if (repeats > MOST_REPEATS) {
        const same = `the platform lists the same records on ${MOST_REPEATS + 2} pages`;
        const message = `${same}, up to page ${page}: its pages do not turn`;
        throw new Unavailable(message, { acted: 'no' });
      }
      if (!full && seen.size >= (listed.total ?? 0)) return;
    }
  };
  async function* all(...asked: Parameters<typeof pages>): AsyncGenerator<Row, void, undefined> {
    const given = new Set<string>();
    for await (const page of pages(...asked)) {
      for (const row of rowsOf(page)) {
        if (!given.has(row.id)) yield row;
        given.add(row.id);
      }
    }
  }
  return { pages, all };
}
