/**
 * The operations of the API ("Endpoints"), by resource, and below what several rows use: texts of
 * templates, contacts that match a query, and enrolment.
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
import { type Call, operation, type Operation } from './operation.ts';
import {
  type About,
  type ApiOutcome,
  refuse,
  refuseBriefly,
  timestamp,
} from '../shared/api-answer.ts';
import { findByEmail, type Organization } from '../store/organization.ts';
import { viewContact, viewDomain, viewKey, viewTemplate } from './answer-views.ts';
import { nameserversOf } from '../store/domains.ts';
import type { Channel, ContactRow, TemplateRow } from '../shared/row-types.ts';
import { emailKey, membershipIn } from '../store/contacts.ts';

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
  operation({
    method: 'GET',
    path: '/api/contacts/list',
    route: 'contacts.list',
    query: contactListQuery,
    // Contacts are listed newest first. The three counters ignore search and status.
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
  operation({
    method: 'GET',
    path: '/api/contacts/retrieve/{contact_id}',
    route: 'contacts.retrieve',
    run: ({ contacts }, { id }) => {
      const contact = contacts.byId(id);
      if (contact === undefined) return contactNotFound(id);
      return done(viewContact(contact), { contactId: id, email: contact.key });
    },
  }),
  operation({
    method: 'DELETE',
    path: '/api/contacts/{contact_id}',
    route: 'contacts.delete',
    // Removes the contact and everything stored about it.
    run: ({ contacts }, { id }) => {
      const contact = contacts.byId(id);
      if (contact === undefined) return contactNotFound(id);
      contacts.remove(contact);
      const body = { success: true, object: 'contact', id, event: 'contact.delete' };
      return done(body, { contactId: id, email: contact.key });
    },
  }),
  operation({
    method: 'POST',
    path: '/api/contacts/channel/{channel_id}',
    route: 'contacts.enrol',
    body: enrolment,
    run: enrolContact,
  }),
  operation({
    method: 'GET',
    path: '/api/template/v1/list',
    route: 'templates.list',
    query: templateListQuery,
    run: (organization, { query: { page = 1, limit = 20 } }) => {
      const listed = organization.templates.listed();
      const templates = listed.page(page, limit).map((row) => viewTemplate(organization, row));
      return done({ templates, total: listed.size, page, limit, event: 'template.list' });
    },
  }),
  operation({
    method: 'POST',
    path: '/api/template/v1/create',
    route: 'templates.create',
    body: templateCreateBody,
    run: (organization, { body }) => {
      const template = organization.templates.add(body, organization.now());
      return done(viewTemplate(organization, template), { templateId: template.id });
    },
  }),
  operation({
    method: 'PUT',
    path: '/api/template/v1/{id}',
    route: 'templates.update',
    body: templateUpdateBody,
    // Only the given fields change, any status may follow any other, and the version number
    // does not increase.
    run: (organization, { id, body }) => {
      const template = organization.templates.byId(id);
      if (template === undefined) return templateNotFound(id);
      organization.templates.change(template, body, organization.now());
      return done(viewTemplate(organization, template), { templateId: id });
    },
  }),
  operation({
    method: 'POST',
    path: '/api/template/v1/{id}/test',
    route: 'templates.test',
    sends: true,
    body: testSendBody,
    // Puts the email into the outbox. The template supplies whatever the request omits.
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
        content: template.content.map((element) => mapTexts(element, resolve)),
      });
      return done({ success: true }, { templateId: id });
    },
  }),
  operation({
    method: 'POST',
    path: '/api/domain/v1/create',
    route: 'domains.create',
    body: domainCreateBody,
    run: ({ domains, now }, { body }) => {
      const existing = domains.byName(body.domain);
      if (existing) {
        const conflict = refuse(409, 'Domain already exists', {
          why: `The organization has the domain ${existing.domain} already, with the id "${existing.id}".`,
          fix: 'Use the domain that is there, or choose another name.',
        });
        return { ...conflict, about: { domainId: existing.id } };
      }
      const domain = domains.add(body, now());
      return {
        status: 201,
        body: { ...viewDomain(domain), event: 'domain.created' },
        about: { domainId: domain.id },
      };
    },
  }),
  operation({
    method: 'POST',
    path: '/api/domain/v1/verify/{domain_id}',
    route: 'domains.verify',
    brief: true,
    // Whatever the domain's status was, it becomes verifying. The specification does not show
    // how the check ends; in the emulator, the console ends it.
    run: ({ domains, now }, { id }) => {
      if (!identifier.test(id)) return refuseBriefly(400, 'Invalid domain format');
      const domain = domains.byId(id);
      if (domain === undefined) {
        return { ...refuseBriefly(404, 'Domain not found'), about: { domainId: id } };
      }
      domains.change(domain, { status: 'verifying', lastVerifiedAt: now() }, now());
      return done({ id, status: domain.status }, { domainId: id });
    },
  }),
  operation({
    method: 'GET',
    path: '/api/domain/v1/nameservers/{domain_id}',
    route: 'domains.nameservers',
    session: true,
    brief: true,
    run: ({ domains }, { id }) => {
      const domain = domains.byId(id);
      if (domain === undefined) {
        return { ...refuseBriefly(404, 'DNS records not found'), about: { domainId: id } };
      }
      const names = { domainId: id, domain: domain.domain, ...nameserversOf(domain.domain) };
      const body = { object: 'domain_nameservers', ...names, event: 'domain.nameservers' };
      return done(body, { domainId: id });
    },
  }),
  operation({
    method: 'GET',
    path: '/api/domain/v1/list',
    route: 'domains.list',
    query: domainListQuery,
    // The specification does not show this endpoint; the emulator treats it like the other
    // lists.
    run: ({ domains }, { query: { page = 1, limit = 20 } }) => {
      const listed = domains.listed();
      const domainRows = listed.page(page, limit).map(viewDomain);
      const paged = { domains: domainRows, total: listed.size, page, limit };
      return done({ object: 'domain', ...paged, event: 'domain.list' });
    },
  }),
  operation({
    method: 'POST',
    path: '/api/api-key/v1/enable/{api_key_id}',
    route: 'keys.enable',
    // An enabled key stays enabled. A revoked key counts as unknown.
    run: ({ keys, now }, { id }) => {
      const key = keys.byId(id);
      if (key === undefined || key.revoked) {
        const refusal = refuse(404, 'API key not found', {
          why: `The organization has no API key with the id "${id}".`,
          fix: "Look up the id of the key in the organization's dashboard.",
        });
        return { ...refusal, about: { keyId: id } };
      }
      if (!key.enabled) keys.change(key, { enabled: true }, now());
      return done(viewKey(key), { keyId: id });
    },
  }),
];

function done(body: object, about?: About): ApiOutcome {
  return { status: 200, body, ...(about && { about }) };
}

const identifier = /^[\w.~-]{1,255}$/;

function templateNotFound(id: string): ApiOutcome {
  const refusal = refuse(404, 'Template not found', {
    why: `The organization has no template with the id "${id}".`,
    fix: 'List the templates to find its id.',
  });
  return { ...refusal, about: { templateId: id } };
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

/** Returns the value with every text changed, as it is not specified how content looks. */
function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value);
  if (Array.isArray(value)) return value.map((inner) => mapTexts(inner, change));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, mapTexts(inner, change)]),
  );
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

function contactNotFound(id: string): ApiOutcome {
  const refusal = refuse(404, 'Contact not found', {
    why: `The organization has no contact with the id "${id}".`,
    fix: 'List the contacts to find its id; it may have been deleted.',
  });
  return { ...refusal, about: { contactId: id } };
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
