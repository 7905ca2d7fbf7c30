/**
 * Defines the rows that the emulator stores: for each kind of row, its type and a schema that
 * rejects a file that was tampered with. Times are milliseconds since the epoch.
 */
import { z } from 'zod';
import {
  contactStatus,
  type DomainCreateBody,
  subscription,
  templateUpdateBody,
  tls,
} from '../../platform/request-schemas.ts';

const text = z.string();
const time = z.number();
const named = z.object({ id: text, name: text });
const person = named.extend({ email: text });
const dated = z.object({ id: text, serial: z.number(), createdAt: time, updatedAt: time });

const channel = named.extend({
  /** The subscription shown for a contact that has no row of its own. */
  subscription: subscription.optional(),
});

const membership = z.object({
  /** The `subscriptionId` of the enrolment. */
  id: text,
  channel,
  subscription,
});

const contact = dated.extend({
  /** Modified only by `change`, which keeps the index up to date; the same applies to `key`. */
  email: text,
  /** The email in the form used for lookups and searches: trimmed and in lower case. */
  key: text,
  firstName: text,
  lastName: text,
  /** Modified only by `change`, which keeps the listings up to date. */
  status: contactStatus,
  properties: z.record(text, z.unknown()),
  groups: z.array(named),
  memberships: z.array(membership),
  suppressionReason: text.nullable(),
  suppressedAt: time.nullable(),
});

const templateFields = templateUpdateBody.required();
const template = dated.extend(templateFields.shape);

/** The stored part of a DNS record. The rest is the same for all records of a domain. */
const dnsRecord = z.object({
  id: text,
  recordType: z.enum(['MX', 'TXT', 'CNAME']),
  recordTypeName: text,
  /** The name within the domain; @ stands for the domain itself. */
  name: text,
  value: text,
  priority: z.number(),
});

const domain = dated.extend({
  domain: text,
  status: text,
  userVerifiedDomain: z.boolean(),
  systemVerified: z.boolean(),
  customReturnPath: text,
  trackingSubdomain: text,
  isClickTrackingEnabled: z.boolean(),
  isOpenTrackingEnabled: z.boolean(),
  tls,
  isSendingEmailEnabled: z.boolean(),
  isReceivingEmailEnabled: z.boolean(),
  verificationFailedReason: text,
  dnsRecords: z.array(dnsRecord),
  lastVerifiedAt: time,
});

const key = named.extend({
  /** The value for the x-api-key header. Modified only by `rotate`. */
  secret: text,
  enabled: z.boolean(),
  revoked: z.boolean(),
  requestCount: z.number(),
  /** Comma-separated names, of which only `read` and `write` have a meaning. */
  permissions: text,
  createdBy: person,
  createdAt: time,
  updatedAt: time,
});

const user = person.extend({
  session: text,
  organizationId: text.nullable(),
});

const send = z.object({
  at: text,
  templateId: text,
  to: text,
  fromEmail: text,
  subject: text,
  /** The HTML of the request; null if it has none. The template's own content is in `content`. */
  html: text.nullable(),
  content: z.array(z.unknown()),
});

/** Holds the schema of each kind of row. Together these rows make up the whole world. */
export const rowSchemas = {
  draws: z.object({ id: z.literal('draws'), start: z.number(), count: z.number() }),
  organization: named,
  user,
  channel,
  key,
  contact,
  template,
  domain,
  send: z.object({ id: text, send }),
};

export type Rows = { [Kind in keyof typeof rowSchemas]: z.infer<(typeof rowSchemas)[Kind]> };

type Fixed<Row, Field extends keyof Row> = Omit<Row, Field> & Readonly<Pick<Row, Field>>;

export type ContactRow = Fixed<Rows['contact'], 'id' | 'serial' | 'email' | 'key' | 'createdAt'>;
export type TemplateRow = Fixed<Rows['template'], 'id' | 'serial' | 'createdAt'>;
export type DomainRow = Fixed<Rows['domain'], 'id' | 'serial' | 'domain' | 'createdAt'>;
export type KeyRow = Fixed<Rows['key'], 'id' | 'name' | 'permissions' | 'createdBy' | 'createdAt'>;
export type SendRow = Rows['send'];
export type UserRow = Readonly<Rows['user']>;
export type Channel = Rows['channel'];
export type ContactStatus = z.infer<typeof contactStatus>;
export type Membership = z.infer<typeof membership>;
export type DnsRecord = z.infer<typeof dnsRecord>;
/** A test email, which is stored but never delivered. */
export type TestSend = z.infer<typeof send>;
/** The writable fields of a template ("Templates": update). */
export type TemplateFields = z.infer<typeof templateFields>;

/** A row to add, of which every field may be left out. */
type Draft<Row> = { [Field in keyof Row]?: Row[Field] | undefined };

/** A contact to add, by default as a new one. */
export type NewContact = { email: string } & Draft<
  Omit<Rows['contact'], 'email' | 'serial' | 'key' | 'memberships'>
>;
/** A template to add. Omitted fields are empty, and the status defaults to draft. */
export type NewTemplate = { name: string } & Draft<Omit<Rows['template'], 'name' | 'serial'>>;
/** A domain to add. `status` defaults to pending. */
export type NewDomain = DomainCreateBody &
  Draft<Pick<Rows['domain'], 'id' | 'status' | 'createdAt'>>;
/** A key to add; what is omitted is generated. It is enabled, with all permissions. */
export type NewKey = Draft<
  Omit<Rows['key'], 'requestCount' | 'createdBy' | 'createdAt' | 'updatedAt'>
>;
/** A user to add. Omitted fields are generated. */
export type NewUser = { name: string; email: string } & Draft<Rows['user']>;
