/**
 * The emulator's responses: a schema of each, field by field ("Resources and their fields",
 * "Endpoints"), and below the views that make them of stored rows. The schemas are strict, and a
 * test checks that no response contains any other field.
 */
import { z } from 'zod';
import { templateVariable } from '../../platform/request-schemas.ts';
import { timestamp } from '../shared/api-answer.ts';
import {
  type ContactRow,
  type DomainRow,
  type KeyRow,
  rowSchemas,
  type TemplateRow,
} from '../shared/row-types.ts';
import { type Organization, ownerOf } from '../store/organization.ts';

const text = z.string();
const count = z.number().int().min(0);
const time = z.iso.datetime();
const named = z.strictObject({ id: text, name: text });
const times = { createdAt: time, updatedAt: time };
const event = text.meta({ description: 'Names the action performed.' });
const pages = { total: count, page: count, limit: count };

const stored = rowSchemas.contact.omit({ key: true, serial: true, memberships: true });
const { subscription } = rowSchemas.contact.shape.memberships.element.shape;
const Contact = z.strictObject({
  object: z.literal('contact'),
  ...stored.shape,
  groups: z.array(named),
  /** Holds only the channels in which the contact has a row of its own. */
  channels: z.array(named.extend({ subscription })),
  suppressedAt: time.nullable(),
  ...times,
});

const Template = z.strictObject({
  ...rowSchemas.template.omit({ serial: true }).shape,
  organizationId: text,
  createdByUserId: text,
  variables: z.array(templateVariable.strict()),
  currentVersion: z.number().int(),
  thumbnailUrl: text,
  isDefault: z.boolean(),
  deletedAt: time.nullable(),
  ...times,
});

const DnsRecord = z.strictObject({
  ...rowSchemas.domain.shape.dnsRecords.element.shape,
  recordType: text,
  domain: text,
  ttl: text,
  status: text,
  ...times,
});

const Domain = z.strictObject({
  object: z.literal('domain'),
  ...rowSchemas.domain.omit({ serial: true }).shape,
  isTrackingDomain: z.boolean(),
  dnsRecords: z.array(DnsRecord),
  lastVerifiedAt: time,
  ...times,
});

const ApiKey = z.strictObject({
  ...rowSchemas.key.omit({ secret: true, revoked: true }).shape,
  start: text,
  prefix: text,
  requestCount: count,
  ...times,
  createdBy: named.extend({ email: text }),
});

export const answers = {
  Contact,
  ContactList: z.strictObject({
    object: z.literal('contact'),
    contacts: z.array(Contact),
    ...pages,
    totalContacts: count,
    subscribedContacts: count,
    unsubscribedContacts: count,
    event,
  }),
  ContactDeletion: z.strictObject({
    success: z.boolean(),
    object: z.literal('contact'),
    id: text,
    event: z.literal('contact.delete'),
  }),
  Enrolment: z.strictObject({ contact: Contact.extend({ event }), subscriptionId: text, event }),
  Template,
  TemplateList: z.strictObject({ templates: z.array(Template), ...pages, event }),
  TestSend: z.strictObject({ success: z.boolean() }),
  DnsRecord,
  Domain,
  DomainCreation: Domain.extend({ event }),
  DomainVerification: z.strictObject({ id: text, status: text }),
  DomainNameservers: z.strictObject({
    object: z.literal('domain_nameservers'),
    domainId: text,
    domain: text,
    nameservers: z.array(text),
    dnsProvider: text,
    event,
  }),
  DomainList: z.strictObject({
    object: z.literal('domain'),
    domains: z.array(Domain),
    ...pages,
    event,
  }),
  ApiKey,
  Refusal: z.strictObject({ message: text, why: text, fix: text, link: z.url() }),
  BriefRefusal: z.strictObject({ message: text }),
};
export type AnswerName = keyof typeof answers;

function viewTimes(row: { createdAt: number; updatedAt: number }) {
  return { createdAt: timestamp(row.createdAt), updatedAt: timestamp(row.updatedAt) };
}

/** A contact as the platform returns it ("Contact"). */
export type ContactView = z.infer<typeof Contact>;

/** Caches the latest view of each contact, because lists return the same contacts repeatedly. */
const shown = new WeakMap<ContactRow, { values: unknown[]; view: ContactView }>();

/** Returns the view of a contact, frozen, and the same object until the contact changes. */
export function viewContact(contact: ContactRow): Readonly<ContactView> {
  const last = shown.get(contact);
  // Values inside a row are never modified in place.
  const values: unknown[] = Object.values(contact);
  if (last && values.every((value, index) => value === last.values[index])) return last.view;
  const { key: _key, serial: _serial, memberships, ...fields } = contact;
  const view: ContactView = Object.freeze({
    object: 'contact',
    ...fields,
    channels: memberships.map(({ channel: { id, name }, subscription }) => ({
      id,
      name,
      subscription,
    })),
    suppressedAt: contact.suppressedAt === null ? null : timestamp(contact.suppressedAt),
    ...viewTimes(contact),
  });
  shown.set(contact, { values, view });
  return view;
}

/** A template as the platform returns it ("Template"). */
export type TemplateView = z.infer<typeof Template>;

export function viewTemplate({ id }: Organization, template: TemplateRow): TemplateView {
  const { serial: _, ...fields } = template;
  return {
    ...fields,
    organizationId: id,
    createdByUserId: ownerOf(id).id,
    currentVersion: 1,
    thumbnailUrl: '',
    isDefault: false,
    deletedAt: null,
    ...viewTimes(template),
  };
}

/** An API key as the platform returns it ("API key"), with the beginning of the secret. */
export type KeyView = z.infer<typeof ApiKey>;

export function viewKey(key: KeyRow): KeyView {
  const { secret, revoked: _, ...fields } = key;
  return {
    ...fields,
    // The visible part is enough to tell keys apart, and never more than half of the secret.
    start: secret.slice(0, Math.min(12, Math.ceil(secret.length / 2))),
    prefix: /^.*_/.exec(secret)?.[0] ?? '',
    ...viewTimes(key),
  };
}

/** A domain as the platform returns it ("Domain"), without `event`, which some responses add. */
export type DomainView = z.infer<typeof Domain>;

export function viewDomain(row: DomainRow): DomainView {
  const { serial: _, dnsRecords, ...fields } = row;
  return {
    object: 'domain',
    ...fields,
    isTrackingDomain: false,
    dnsRecords: dnsRecords.map((record) => ({
      ...record,
      domain: row.domain,
      ttl: 'Auto',
      status: 'active',
      ...viewTimes({ ...row, updatedAt: row.createdAt }),
    })),
    lastVerifiedAt: timestamp(row.lastVerifiedAt),
    ...viewTimes(row),
  };
}
