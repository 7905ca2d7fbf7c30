/**
 * The schemas of the emulator's responses, field by field ("Resources and their fields",
 * "Endpoints"). They are strict, and a test checks that no response contains any other field.
 */
import { z } from 'zod';
import {
  contactStatus,
  subscription,
  templateStatus,
  templateVariable,
  tls,
} from '../../platform/request-schemas.ts';

const text = z.string();
const count = z.number().int().min(0);
const time = z.iso.datetime();
const named = z.strictObject({ id: text, name: text });
const times = { createdAt: time, updatedAt: time };
const event = text.meta({ description: 'Names the action performed.' });
const pages = { total: count, page: count, limit: count };

const Contact = z.strictObject({
  object: z.literal('contact'),
  id: text,
  email: text,
  firstName: text,
  lastName: text,
  status: contactStatus,
  properties: z.record(text, z.unknown()),
  groups: z.array(named),
  /** Holds only the channels in which the contact has a row of its own. */
  channels: z.array(named.extend({ subscription })),
  suppressionReason: text.nullable(),
  suppressedAt: time.nullable(),
  ...times,
});

const ContactList = z.strictObject({
  object: z.literal('contact'),
  contacts: z.array(Contact),
  ...pages,
  totalContacts: count,
  subscribedContacts: count,
  unsubscribedContacts: count,
  event,
});

const ContactDeletion = z.strictObject({
  success: z.boolean(),
  object: z.literal('contact'),
  id: text,
  event: z.literal('contact.delete'),
});

const Enrolment = z.strictObject({
  contact: Contact.extend({ event }),
  subscriptionId: text,
  event,
});

const Template = z.strictObject({
  id: text,
  name: text,
  description: text,
  subject: text,
  fromEmail: text,
  replyTo: text,
  previewText: text,
  organizationId: text,
  createdByUserId: text,
  status: templateStatus,
  content: z.array(z.unknown()),
  variables: z.array(templateVariable.strict()),
  currentVersion: z.number().int(),
  thumbnailUrl: text,
  isDefault: z.boolean(),
  deletedAt: time.nullable(),
  ...times,
});

const TemplateList = z.strictObject({ templates: z.array(Template), ...pages, event });
const TestSend = z.strictObject({ success: z.boolean() });

const DnsRecord = z.strictObject({
  id: text,
  recordType: text,
  recordTypeName: text,
  domain: text,
  name: text,
  value: text,
  ttl: text,
  priority: z.number(),
  status: text,
  ...times,
});

const Domain = z.strictObject({
  object: z.literal('domain'),
  id: text,
  domain: text,
  status: text,
  userVerifiedDomain: z.boolean(),
  systemVerified: z.boolean(),
  customReturnPath: text,
  trackingSubdomain: text,
  isClickTrackingEnabled: z.boolean(),
  isOpenTrackingEnabled: z.boolean(),
  tls,
  isTrackingDomain: z.boolean(),
  isSendingEmailEnabled: z.boolean(),
  isReceivingEmailEnabled: z.boolean(),
  verificationFailedReason: text,
  dnsRecords: z.array(DnsRecord),
  lastVerifiedAt: time,
  ...times,
});

const DomainCreation = Domain.extend({ event });
const DomainVerification = z.strictObject({ id: text, status: text });
const DomainNameservers = z.strictObject({
  object: z.literal('domain_nameservers'),
  domainId: text,
  domain: text,
  nameservers: z.array(text),
  dnsProvider: text,
  event,
});
const DomainList = z.strictObject({
  object: z.literal('domain'),
  domains: z.array(Domain),
  ...pages,
  event,
});

const ApiKey = z.strictObject({
  id: text,
  name: text,
  start: text,
  prefix: text,
  enabled: z.boolean(),
  requestCount: count,
  ...times,
  permissions: text,
  createdBy: named.extend({ email: text }),
});

const Refusal = z.strictObject({ message: text, why: text, fix: text, link: z.url() });
const BriefRefusal = z.strictObject({ message: text });

/** Holds every schema under its name in the OpenAPI document. */
export const answers = {
  Contact,
  ContactList,
  ContactDeletion,
  Enrolment,
  Template,
  TemplateList,
  TestSend,
  DnsRecord,
  Domain,
  DomainCreation,
  DomainVerification,
  DomainNameservers,
  DomainList,
  ApiKey,
  Refusal,
  BriefRefusal,
};
export type AnswerName = keyof typeof answers;

export type Answered<Name extends AnswerName> = z.infer<(typeof answers)[Name]>;
