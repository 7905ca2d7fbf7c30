/**
 * The operations of the API ("Endpoints"), by resource, and below what several rows use: texts of
 * templates, contacts that match a query, and enrolment. At the end, what an operation is, how the
 * one for a request is found, and how its query and body are parsed and refused.
 */
import { z } from 'zod';
import {
  contactListQuery,
  type ContactListQuery,
  domainCreateBody,
  domainListQuery,
  enrolBody,
  type Subscription,
  templateCreateBody,
  templateListQuery,
  templateUpdateBody,
  testSendBody,
} from '../../platform/request-schemas.ts';
import {
  type About,
  type ApiOutcome,
  type Asked,
  refuse,
  refuseBriefly,
  timestamp,
} from '../shared/api-answer.ts';
import { findByEmail, nameserversOf, type Organization } from '../store/organization.ts';
import { viewContact, viewDomain, viewKey, viewTemplate, type AnswerName } from './answers.ts';
import type { Channel, ContactRow, TemplateRow } from '../shared/row-types.ts';
import { emailKey, membershipIn } from '../store/contacts.ts';
import { mapLeaves } from '../../domain/stored-json.ts';
import type { Method } from '../../domain/exchange.ts';
import type { Route } from '../limits/route-limits.ts';

/** The body of an enrolment: `contact_id` counts before `email`; by default an opt_in. */
export const enrolment = enrolBody.transform(
  ({ contact_id: id, email, subscription = 'opt_in' }, context) => {
    if (id !== undefined) return { who: { id }, subscription };
    if (email !== undefined) return { who: { email: emailKey(email) }, subscription };
    context.addIssue({ code: 'custom', message: 'contact_id or email is required' });
    return z.NEVER;
  },
);

/** Lists every operation of the API ("Endpoints"). The first matching row handles a request. */
export const operations: readonly Operation[] = [
  operation('GET', '/api/contacts/list', {
    route: 'contacts.list',
    summary: 'List contacts',
    description:
      'Newest first. `search` looks for a part of the email, whatever the case. The default of ' +
      '`limit` is stated as 20 and as 100; here it is 100. `totalContacts`, `subscribedContacts` ' +
      'and `unsubscribedContacts` ignore the query.',
    success: [200, 'ContactList'],
    query: contactListQuery,
    run: (organization, { query }) => {
      const { contacts } = organization;
      const { page = 1, limit = 100 } = query;
      const { total, rows } = findContacts(organization, { ...query, page, limit });
      return done({
        object: 'contact',
        contacts: rows.map(viewContact),
        total,
        page,
        limit,
        totalContacts: contacts.listed().size,
        subscribedContacts: contacts.listed('subscribed').size,
        unsubscribedContacts: contacts.listed('unsubscribed').size,
        event: 'contact.list',
      });
    },
  }),
  operation('GET', '/api/contacts/retrieve/{contact_id}', {
    route: 'contacts.retrieve',
    summary: 'Retrieve a contact',
    success: [200, 'Contact'],
    refusals: { 404: 'Contact not found' },
    run: ({ contacts }, { id }) => {
      const contact = contacts.byId(id);
      if (contact === undefined) return contactNotFound(id);
      return done(viewContact(contact), { contactId: id, email: contact.key });
    },
  }),
  operation('DELETE', '/api/contacts/{contact_id}', {
    route: 'contacts.delete',
    summary: 'Remove a contact',
    description:
      'What becomes of its history is not shown; here it is gone, and a contact that is created again is new.',
    success: [200, 'ContactDeletion'],
    refusals: { 404: 'Contact not found' },
    run: ({ contacts }, { id }) => {
      const contact = contacts.byId(id);
      if (contact === undefined) return contactNotFound(id);
      contacts.remove(contact);
      const body = { success: true, object: 'contact', id, event: 'contact.delete' };
      return done(body, { contactId: id, email: contact.key });
    },
  }),
  operation('POST', '/api/contacts/channel/{channel_id}', {
    route: 'contacts.enrol',
    summary: 'Add a contact to a channel',
    description:
      'Creates the contact of an unknown email. Which of `contact_id` and `email` must be present ' +
      'is not shown; here one of them is needed, and `contact_id` wins. The default of ' +
      '`subscription` is not shown; here it is opt_in. Whether the other subscription than the ' +
      'present one changes it is not shown; here it does.',
    success: [201, 'Enrolment'],
    refusals: {
      400: 'Invalid email format',
      404: 'Channel subscription not found; Contact not found',
      409: 'Contact is already subscribed to this channel',
    },
    body: enrolment,
    run: enrolContact,
  }),
  operation('GET', '/api/template/v1/list', {
    route: 'templates.list',
    summary: 'List templates',
    description: 'Newest first, archived ones too. The default of `limit` is 20.',
    success: [200, 'TemplateList'],
    query: templateListQuery,
    run: (
      organization,
      { query: { page = 1, limit = organization.behaviour.templatesListed } },
    ) => {
      const listed = organization.templates.listed();
      const templates = listed.page(page, limit).map((row) => viewTemplate(organization, row));
      return done({ templates, total: listed.size, page, limit, event: 'template.list' });
    },
  }),
  operation('POST', '/api/template/v1/create', {
    route: 'templates.create',
    summary: 'Create a template',
    description:
      'The structure of `content` is not shown; anything is kept as it is. Names need not be unique.',
    success: [200, 'Template'],
    body: templateCreateBody,
    run: (organization, { body }) => {
      const template = organization.templates.add(body, organization.now());
      return done(viewTemplate(organization, template), { templateId: template.id });
    },
  }),
  operation('PUT', '/api/template/v1/{id}', {
    route: 'templates.update',
    summary: 'Update a template',
    description:
      'Only the fields given change. Which status may follow which is not shown; here any may ' +
      'follow any. Whether `currentVersion` moves is not shown; here it does not.',
    success: [200, 'Template'],
    refusals: { 404: 'Template not found' },
    body: templateUpdateBody,
    run: (organization, { id, body }) => {
      const template = organization.templates.byId(id);
      if (template === undefined) return templateNotFound(id);
      organization.templates.change(template, body, organization.now());
      return done(viewTemplate(organization, template), { templateId: id });
    },
  }),
  operation('POST', '/api/template/v1/{id}/test', {
    route: 'templates.test',
    summary: 'Send a test email',
    description:
      'How variables are written is not shown; here {{name}} is replaced by the value given, else ' +
      'by the default of the variable. Nothing is delivered: `/_emulator/outbox` shows the email.',
    success: [200, 'TestSend'],
    refusals: { 404: 'Template not found' },
    sends: true,
    body: testSendBody,
    run: (organization, { id, body }) => {
      const template = organization.templates.byId(id);
      if (template === undefined) return templateNotFound(id);
      const resolve = resolver(template, body.variables ?? {});
      organization.outbox.add({
        at: timestamp(organization.now()),
        templateId: id,
        to: body.to,
        fromEmail: body.fromEmail ?? template.fromEmail,
        subject: resolve(body.subject ?? template.subject),
        html: body.html === undefined ? null : resolve(body.html),
        // Every text is changed, as it is not specified how content looks.
        content: template.content.map((element) =>
          mapLeaves(element, (leaf) => (typeof leaf === 'string' ? resolve(leaf) : leaf)),
        ),
      });
      return done({ success: true }, { templateId: id });
    },
  }),
  operation('POST', '/api/domain/v1/create', {
    route: 'domains.create',
    summary: 'Create a domain',
    description:
      'The default of `tls` is not stated; here it is opportunistic. The name is kept in lower ' +
      'case, and is unique within the organization. Before the first verification ' +
      '`lastVerifiedAt` is the time of creation. The hosts in the DNS records are made up.',
    success: [201, 'DomainCreation'],
    refusals: { 400: 'Invalid domain format', 409: 'Domain already exists' },
    body: domainCreateBody,
    run: ({ domains, now }, { body }) => {
      const existing = domains.byName(body.domain);
      if (existing) {
        const { id, domain } = existing;
        return refuse(409, 'Domain already exists', {
          why: `The organization has the domain ${domain} already, with the id "${id}".`,
          fix: 'Use the domain that is there, or choose another name.',
          about: { domainId: id },
        });
      }
      const domain = domains.add(body, now());
      const view = { ...viewDomain(domain), event: 'domain.created' };
      return { status: 201, body: view, about: { domainId: domain.id } };
    },
  }),
  operation('POST', '/api/domain/v1/verify/{domain_id}', {
    route: 'domains.verify',
    summary: 'Verify the DNS records of a domain',
    description:
      'How and when a verification ends is not shown; here it goes on until ' +
      '`/_emulator/settle-domain` ends it. A `domain_id` of other characters than letters, digits ' +
      'and . _ ~ - is a 400.',
    success: [200, 'DomainVerification'],
    refusals: { 400: 'Invalid domain format', 404: 'Domain not found' },
    brief: true,
    run: ({ domains, now }, { id }) => {
      if (!identifier.test(id)) return refuseBriefly(400, 'Invalid domain format');
      const domain = domains.byId(id);
      if (!domain) return refuseBriefly(404, 'Domain not found', { domainId: id });
      const at = now();
      domains.change(domain, { status: 'verifying', lastVerifiedAt: at, updatedAt: at });
      return done({ id, status: domain.status }, { domainId: id });
    },
  }),
  operation('GET', '/api/domain/v1/nameservers/{domain_id}', {
    route: 'domains.nameservers',
    summary: 'Read the nameservers of a domain',
    description:
      'Needs a session cookie, whose name ends in .session_token. A request with an API key alone ' +
      'is a 403, one with neither a 401. The nameservers are made up.',
    success: [200, 'DomainNameservers'],
    refusals: { 404: 'DNS records not found' },
    session: true,
    brief: true,
    run: ({ domains }, { id }) => {
      const domain = domains.byId(id);
      if (!domain) return refuseBriefly(404, 'DNS records not found', { domainId: id });
      const names = { domainId: id, domain: domain.domain, ...nameserversOf(domain.domain) };
      const body = { object: 'domain_nameservers', ...names, event: 'domain.nameservers' };
      return done(body, { domainId: id });
    },
  }),
  operation('GET', '/api/domain/v1/list', {
    route: 'domains.list',
    summary: 'List domains',
    description:
      'The parameters and the answer of this operation are not shown by the specification. They ' +
      'are made here as those of the other lists: newest first, 20 by default.',
    success: [200, 'DomainList'],
    query: domainListQuery,
    run: ({ domains }, { query: { page = 1, limit = 20 } }) => {
      const listed = domains.listed();
      const domainRows = listed.page(page, limit).map(viewDomain);
      const paged = { domains: domainRows, total: listed.size, page, limit };
      return done({ object: 'domain', ...paged, event: 'domain.list' });
    },
  }),
  operation('POST', '/api/api-key/v1/enable/{api_key_id}', {
    route: 'keys.enable',
    summary: 'Enable an API key',
    description:
      'The errors of this operation are not shown. Here an unknown and a revoked key are a 404, ' +
      'and a disabled key cannot enable itself. Enabling an enabled key changes nothing.',
    success: [200, 'ApiKey'],
    refusals: { 404: 'API key not found' },
    run: ({ keys, now }, { id }) => {
      const key = keys.byId(id);
      if (key === undefined || key.revoked) {
        return refuse(404, 'API key not found', {
          why: `The organization has no API key with the id "${id}".`,
          fix: "Look up the id of the key in the organization's dashboard.",
          about: { keyId: id },
        });
      }
      if (!key.enabled) keys.change(key, { enabled: true, updatedAt: now() });
      return done(viewKey(key), { keyId: id });
    },
  }),
];

function done(body: ApiOutcome['body'], about?: About): ApiOutcome {
  return { status: 200, body, ...(about && { about }) };
}

const identifier = /^[\w.~-]{1,255}$/;

function templateNotFound(id: string): ApiOutcome {
  return refuse(404, 'Template not found', {
    why: `The organization has no template with the id "${id}".`,
    fix: 'List the templates to find its id.',
    about: { templateId: id },
  });
}

/** Replaces each {{name}} by its value or default. One with neither stays, so that it shows. */
function resolver(template: TemplateRow, given: Record<string, unknown>): (text: string) => string {
  const values = new Map<string, unknown>([
    ...template.variables.map(({ name, defaultValue }): [string, unknown] => [name, defaultValue]),
    ...Object.entries(given).filter(([, value]) => value !== null),
  ]);
  return (text) =>
    text.replace(/\{\{\s*([^{}]*?)\s*\}\}/g, (placeholder, name: string) => {
      const value = values.get(name) ?? placeholder;
      return typeof value === 'string' ? value : JSON.stringify(value);
    });
}

/** Returns a page of the matches and their number. A search for very little reads every row. */
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

function contactNotFound(id: string, about: About = { contactId: id }): ApiOutcome {
  return refuse(404, 'Contact not found', {
    why: `The organization has no contact with the id "${id}".`,
    fix: 'List the contacts to find its id; it may have been deleted.',
    about,
  });
}

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
function enrolContact(
  organization: Organization,
  { id: channelId, body: { who, subscription } }: Call<unknown, z.infer<typeof enrolment>>,
): ApiOutcome {
  const { contacts, channels } = organization;
  const asked = { contactId: who.id, email: who.email, channelId, subscription };
  const channel = channels.byId(channelId);
  if (channel === undefined) {
    return refuse(404, 'Channel subscription not found', {
      why: `The organization has no channel with the id "${channelId}".`,
      fix: 'Use the id of a channel of the organization this API key belongs to.',
      about: asked,
    });
  }

  const known = who.id === undefined ? findByEmail(organization, who.email) : contacts.byId(who.id);
  if (known !== undefined) return enrol(organization, known, { channel, subscription });
  if (who.id !== undefined) return contactNotFound(who.id, asked);

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
    return refuse(409, 'Contact is already subscribed to this channel', {
      why: `${contact.email} is ${subscription} in channel "${channel.id}" already.`,
      fix: 'Nothing has to be done; send the other subscription to change it.',
      about,
    });
  }
  const { id: subscriptionId } = contacts.setMembership(contact, channel, subscription);
  return {
    status: 201,
    body: { contact: { ...viewContact(contact), event }, subscriptionId, event },
    about,
  };
}

/** What a row of the table says of its operation. */
interface Row<Query = unknown, Body = unknown> {
  route: Route;
  summary: string;
  /** Describes mostly what the specification does not show and how the emulator behaves there. */
  description?: string;
  success: [status: 200 | 201, answer: AnswerName];
  /** The error responses by status, in addition to those that the fields below imply. */
  refusals?: Record<number, string>;
  /** Whether it sends email: then its headers state when the window ends ("Limits 4"). */
  sends?: true;
  /** Whether the operation needs a user's session and accepts no API key ("Authentication 6"). */
  session?: true;
  /** Whether error responses contain only a message ("Errors 1"). */
  brief?: true;
  /** The schemas of the query and the body. Without one, what the client sends is ignored. */
  query?: z.ZodType<Query>;
  body?: z.ZodType<Body>;
}

/** An operation of the platform's API. */
export interface Operation extends Row {
  method: Method;
  /** The path, with at most one parameter, written as {name}. */
  path: string;
  /** Matches a path, and in it the encoded parameter. */
  pattern: RegExp;
  /** Checks a request against the schemas and executes it. `id` is '' if the path names none. */
  answer(organization: Organization, asked: Call<URLSearchParams, string>): ApiOutcome;
}

/** A request to one operation: as it came, or after it has been checked. */
interface Call<Query, Body> {
  id: string;
  query: Query;
  body: Body;
}

/** Creates an operation of which `run` handles the checked requests. */
function operation<Query, Body>(
  method: Method,
  path: string,
  {
    run,
    ...row
  }: Row<Query, Body> & {
    run(organization: Organization, call: Call<Query, Body>): ApiOutcome;
  },
): Operation {
  const readQuery = query(row.query ?? z.custom<never>());
  const readBody = json(row.body ?? z.custom<never>());
  return {
    ...row,
    method,
    path,
    pattern: new RegExp(`^${path.replace(/\{\w+\}/, '([^/]+)')}$`),
    answer(organization, asked) {
      const query = readQuery(asked.query);
      if (!query.ok) return query.refusal;
      const body = readBody(row.body ? asked.body : 'null');
      if (!body.ok) return body.refusal;
      return run(organization, { id: asked.id, query: query.value, body: body.value });
    },
  };
}

/** Finds an operation by method and path, or the methods of the path, none if it does not exist. */
export function findOperation(
  asked: Pick<Asked, 'method' | 'path'>,
): { operation: Operation; id: string } | { allowed: string[] } {
  const allowed: string[] = [];
  for (const operation of operations) {
    const found = operation.pattern.exec(asked.path);
    const id = found ? decode(found[1] ?? '') : undefined;
    if (id === undefined) continue;
    if (operation.method === asked.method) return { operation, id };
    allowed.push(operation.method);
  }
  return { allowed };
}

/** Decodes a percent-encoded text; undefined if it is malformed. */
export function decode(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

/** A checked value of one part of a request, or the error response. */
type Read<T> = { ok: true; value: T } | { ok: false; refusal: ApiOutcome };

/** Creates a reader for a query of this shape. Other parameters are ignored. */
export function query<T>(schema: z.ZodType<T>) {
  return (parameters: URLSearchParams): Read<T> =>
    check(schema, Object.fromEntries(parameters), 'query');
}

/** Creates a reader for JSON of this shape, whatever its content type. Other fields are ignored. */
export function json<T>(schema: z.ZodType<T>) {
  return (text: string): Read<T> => {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      const why = text === '' ? 'The request has no body.' : 'The body is not valid JSON.';
      const fix = 'Send a JSON object as the body.';
      return { ok: false, refusal: refuse(400, 'Malformed JSON', { why, fix }) };
    }
    if (isDeeper(value, MOST_LEVELS)) {
      const why = `The body is nested more than ${MOST_LEVELS} levels deep.`;
      const fix = 'Send a flatter body.';
      return { ok: false, refusal: refuse(400, 'Invalid request', { why, fix }) };
    }
    return check(schema, value, 'body');
  };
}

function check<T>(schema: z.ZodType<T>, value: unknown, part: 'query' | 'body'): Read<T> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return { ok: true, value: parsed.data };
  const { issues } = parsed.error;
  // The specification prescribes a separate message for each format that it names ("Errors 3").
  const format = issues.find(({ code }) => code === 'invalid_format');
  const faults = issues.map(({ path, message }) => `${[part, ...path].join('.')}: ${message}`);
  const refusal = refuse(400, format?.message ?? 'Invalid request', {
    why: faults.join('; '),
    fix: `Correct the ${part} and send the request again.`,
  });
  return { ok: false, refusal: { ...refusal, misfit: true } };
}

/** Limits the nesting of a body, so that every response can be serialized. */
const MOST_LEVELS = 100;

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1));
}
