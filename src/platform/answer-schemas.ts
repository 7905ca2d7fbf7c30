/**
 * The responses of the platform ("Resources and their fields", "Endpoints"). Fields not named are
 * dropped, and a malformed one that is only shown to people becomes undefined.
 */
import { z } from 'zod';

/** Wraps the schema of a field that is only displayed: a wrong value becomes undefined. */
function shown<T extends z.ZodType>(schema: T) {
  return schema.nullish().catch(undefined);
}

const channel = z.object({
  id: z.string().min(1),
  name: shown(z.string()),
  subscription: z.string(),
});

const group = z.object({ id: z.string(), name: shown(z.string()) });

/** A contact in list and retrieve. In a list, `groups` may be empty although it has some. */
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
/** A contact on the platform. */
export type Contact = z.infer<typeof contact>;

const count = z.number().int().min(0);

/** The response to GET /api/contacts/list. */
export const contactList = z.object({
  contacts: z.array(contact),
  total: count,
  totalContacts: count.optional().catch(undefined),
  subscribedContacts: count.optional().catch(undefined),
  unsubscribedContacts: count.optional().catch(undefined),
});
/** One page of contacts. */
export type ContactList = z.infer<typeof contactList>;

/** The same response without the display-only fields of a contact. */
export const briefContactList = contactList.extend({
  contacts: z.array(
    contact.omit({ firstName: true, lastName: true, properties: true, groups: true }),
  ),
});

/** The response to DELETE /api/contacts/{contact_id}. Only `success: true` means success. */
export const deletion = z.object({ success: z.unknown().optional() });

/** The response to POST /api/contacts/channel/{channel_id}. The contact may have no channels. */
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
/** The response to an enrolment. */
export type Enrolment = z.infer<typeof enrolment>;

const variable = z.object({
  name: z.string(),
  type: z.string().nullish(),
  defaultValue: z.string().nullish(),
});

/** A template as returned by create, update and list. */
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
/** A template on the platform. */
export type Template = z.infer<typeof template>;

/** GET /api/template/v1/list. `total` may be of this page: read on until a short one. */
export const templateList = z.object({ templates: z.array(template), total: count });
/** One page of templates. */
export type TemplateList = z.infer<typeof templateList>;

/** The response to POST /api/template/v1/{id}/test. Only `success: true` means success. */
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
/** A DNS record that a sending domain needs. */
export type DnsRecord = z.infer<typeof dnsRecord>;

/** A domain as returned by create and list. */
export const domain = z.object({
  id: z.string().min(1),
  domain: z.string().min(1),
  /** The specification names pending and verifying, but other values have been seen. */
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
/** A sending domain of the organization. */
export type Domain = z.infer<typeof domain>;

/** GET /api/domain/v1/list: not specified, but formed as every list is ("Limits" 3). */
export const domainList = z.object({
  domains: z.array(domain),
  total: count.optional().catch(undefined),
});
/** One page of sending domains. */
export type DomainList = z.infer<typeof domainList>;

/** The response to POST /api/domain/v1/verify/{domain_id}. */
export const verification = z.object({ id: shown(z.string()), status: z.string() });
/** The state of a domain's verification. */
export type Verification = z.infer<typeof verification>;

/** The response to GET /api/domain/v1/nameservers/{domain_id}. */
export const nameservers = z.object({
  domainId: shown(z.string()),
  domain: shown(z.string()),
  nameservers: z.array(z.string()),
  dnsProvider: shown(z.string()),
});
/** The nameservers of a domain and the operator of its DNS. */
export type Nameservers = z.infer<typeof nameservers>;

/** An API key as returned by enable. */
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
/** An API key of the organization, without its secret. */
export type ApiKey = z.infer<typeof apiKey>;

const words = z.string().catch('');

/** The body of an error response ("Errors" 1). Some contain only `message`. */
export const envelope = z.object({ message: words, why: words, fix: words });
/** The texts of an error response. */
export type Envelope = z.infer<typeof envelope>;
