/**
 * What the platform answers ("Resources and their fields", "Endpoints"), read strictly where a
 * decision hangs on it and loosely elsewhere: fields not named here are dropped, and a field that
 * is only shown to people becomes undefined when it is not what it should be.
 */
import { z } from 'zod';

/** For display: whatever is wrong with it, the record stands. */
function shown<T extends z.ZodType>(schema: T) {
  return schema.nullish().catch(undefined);
}

const channel = z.object({
  id: z.string().min(1),
  name: shown(z.string()),
  /** opt_in or opt_out today; kept open, so that a third value is seen and not lost. */
  subscription: z.string(),
});

const group = z.object({ id: z.string(), name: shown(z.string()) });

/** Contact, as list and retrieve give it. The list's `groups` may be empty without being so. */
export const contact = z.object({
  id: z.string().min(1),
  email: z.string().min(1),
  status: z.string(),
  channels: z.array(channel),
  suppressionReason: z.string().nullish(),
  suppressedAt: z.string().nullish(),
  firstName: shown(z.string()),
  lastName: shown(z.string()),
  properties: shown(z.record(z.string(), z.unknown())),
  groups: shown(z.array(group)),
  createdAt: shown(z.string()),
  updatedAt: shown(z.string()),
});
export type Contact = z.infer<typeof contact>;

const count = z.number().int().min(0);

/** GET /api/contacts/list */
export const contactList = z.object({
  contacts: z.array(contact),
  total: count,
  totalContacts: count.optional().catch(undefined),
  subscribedContacts: count.optional().catch(undefined),
  unsubscribedContacts: count.optional().catch(undefined),
});
export type ContactList = z.infer<typeof contactList>;

/** The same, without what is only shown of a contact. */
export const briefContactList = contactList.extend({
  contacts: z.array(
    contact.omit({ firstName: true, lastName: true, properties: true, groups: true }),
  ),
});

/** DELETE /api/contacts/{contact_id}; a success is only what says so. */
export const deletion = z.object({ success: z.unknown().optional() });

/** POST /api/contacts/channel/{channel_id}: the contact may be a bare row, without channels. */
export const enrolment = z.object({
  contact: shown(
    z.object({
      id: z.string().min(1),
      email: shown(z.string()),
      status: shown(z.string()),
      channels: shown(z.array(channel)),
      suppressionReason: shown(z.string()),
      suppressedAt: shown(z.string()),
      createdAt: shown(z.string()),
      updatedAt: shown(z.string()),
    }),
  ),
  subscriptionId: shown(z.string()),
});
export type Enrolment = z.infer<typeof enrolment>;

const variable = z.object({
  name: z.string(),
  type: z.string().nullish(),
  defaultValue: z.string().nullish(),
});

/** Template, as create, update and list give it. */
export const template = z.object({
  id: z.string().min(1),
  name: z.string(),
  description: z.string().nullish(),
  subject: z.string().nullish(),
  fromEmail: z.string().nullish(),
  replyTo: z.string().nullish(),
  previewText: z.string().nullish(),
  content: z.array(z.unknown()).nullish(),
  variables: z.array(variable).nullish(),
  status: z.string().nullish(),
  organizationId: shown(z.string()),
  currentVersion: shown(z.number()),
  deletedAt: z.string().nullish(),
  createdAt: shown(z.string()),
  updatedAt: shown(z.string()),
});
export type Template = z.infer<typeof template>;

/** GET /api/template/v1/list; `total` can be the number on this page: page until a short one. */
export const templateList = z.object({ templates: z.array(template), total: count });
export type TemplateList = z.infer<typeof templateList>;

/** POST /api/template/v1/{id}/test; a success is only what says so. */
export const testSend = z.object({ success: z.unknown().optional() });

const dnsRecord = z.object({
  id: shown(z.string()),
  recordType: shown(z.string()),
  recordTypeName: shown(z.string()),
  domain: shown(z.string()),
  name: shown(z.string()),
  value: shown(z.string()),
  ttl: shown(z.string()),
  priority: shown(z.number()),
  status: shown(z.string()),
});
export type DnsRecord = z.infer<typeof dnsRecord>;

/** Domain, as create and list give it. */
export const domain = z.object({
  id: z.string().min(1),
  domain: z.string().min(1),
  /** pending and verifying are stated; others were seen, so it stays open. */
  status: z.string(),
  userVerifiedDomain: shown(z.boolean()),
  systemVerified: shown(z.boolean()),
  customReturnPath: shown(z.string()),
  trackingSubdomain: shown(z.string()),
  isClickTrackingEnabled: shown(z.boolean()),
  isOpenTrackingEnabled: shown(z.boolean()),
  tls: shown(z.string()),
  isTrackingDomain: shown(z.boolean()),
  isSendingEmailEnabled: shown(z.boolean()),
  isReceivingEmailEnabled: shown(z.boolean()),
  verificationFailedReason: shown(z.string()),
  dnsRecords: shown(z.array(dnsRecord)),
  lastVerifiedAt: shown(z.string()),
  createdAt: shown(z.string()),
  updatedAt: shown(z.string()),
});
export type Domain = z.infer<typeof domain>;

/** GET /api/domain/v1/list: its shape is not shown; that of every list ("Limits" 3). */
export const domainList = z.object({
  domains: z.array(domain),
  total: count.optional().catch(undefined),
});
export type DomainList = z.infer<typeof domainList>;

/** POST /api/domain/v1/verify/{domain_id} */
export const verification = z.object({ id: shown(z.string()), status: z.string() });
export type Verification = z.infer<typeof verification>;

/** GET /api/domain/v1/nameservers/{domain_id} */
export const nameservers = z.object({
  domainId: shown(z.string()),
  domain: shown(z.string()),
  nameservers: z.array(z.string()),
  dnsProvider: shown(z.string()),
});
export type Nameservers = z.infer<typeof nameservers>;

/** API key, as enable gives it. */
export const apiKey = z.object({
  id: z.string().min(1),
  enabled: z.boolean(),
  name: shown(z.string()),
  start: shown(z.string()),
  prefix: shown(z.string()),
  requestCount: shown(z.number()),
  permissions: shown(z.string()),
  createdBy: shown(
    z.object({ id: shown(z.string()), name: shown(z.string()), email: shown(z.string()) }),
  ),
  createdAt: shown(z.string()),
  updatedAt: shown(z.string()),
});
export type ApiKey = z.infer<typeof apiKey>;

const words = z.string().catch('');

/** Errors 1; some bodies carry only `message`. */
export const envelope = z.object({ message: words, why: words, fix: words });
export type Envelope = z.infer<typeof envelope>;
