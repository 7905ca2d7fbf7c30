/**
 * The rows that the emulator stores: of each kind the schema, which refuses a file that was
 * tampered with, and the type. Times are milliseconds since the epoch.
 */
import { z } from 'zod';
import {
  contactStatus,
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
  /** The subscription that is shown for a contact without a row of its own. */
  subscription: subscription.optional(),
});

const membership = z.object({
  /** The `subscriptionId` of the enrolment. */
  id: text,
  channel,
  subscription,
});

const contact = dated.extend({
  /** Changed by `change` only, which keeps the index right; the same holds for `key`. */
  email: text,
  /** The email as it is looked up and searched: trimmed and in lower case. */
  key: text,
  firstName: text,
  lastName: text,
  /** Changed by `change` only, which keeps the listings right. */
  status: contactStatus,
  properties: z.record(text, z.unknown()),
  groups: z.array(named),
  memberships: z.array(membership),
  suppressionReason: text.nullable(),
  suppressedAt: time.nullable(),
});

const templateFields = templateUpdateBody.required();
const template = dated.extend(templateFields.shape);

/** The stored part of a DNS record; the rest is the same for all records of a domain. */
const dnsRecord = z.object({
  id: text,
  recordType: z.enum(['MX', 'TXT', 'CNAME']),
  /** The purpose of the record. */
  recordTypeName: text,
  /** The name within the domain; @ is the domain itself. */
  name: text,
  value: text,
  /** Used for MX only. */
  priority: z.number(),
});

const domain = dated.extend({
  /** In lower case. */
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
  /** The value for x-api-key. Changed by `rotate` only. */
  secret: text,
  enabled: z.boolean(),
  /** Revoked for good: the key counts as unknown. */
  revoked: z.boolean(),
  requestCount: z.number(),
  /** Names separated by commas; only `read` and `write` have a meaning. */
  permissions: text,
  createdBy: person,
  createdAt: time,
  updatedAt: time,
});

const user = person.extend({
  /** The value of the session cookie. */
  session: text,
  /** Null: the user is a member of no organization. */
  organizationId: text.nullable(),
});

const send = z.object({
  at: text,
  templateId: text,
  to: text,
  fromEmail: text,
  subject: text,
  /** Null if the request has none; the template's own content is in `content`. */
  html: text.nullable(),
  content: z.array(z.unknown()),
});

/** The schema of each kind of row; together these rows are the whole world. */
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

/** The type of each kind of row. */
export type Rows = { [Kind in keyof typeof rowSchemas]: z.infer<(typeof rowSchemas)[Kind]> };

type Fixed<Row, Field extends keyof Row> = Omit<Row, Field> & Readonly<Pick<Row, Field>>;

export type ContactRow = Fixed<Rows['contact'], 'id' | 'serial' | 'email' | 'key' | 'createdAt'>;
export type TemplateRow = Fixed<Rows['template'], 'id' | 'serial' | 'createdAt'>;
export type DomainRow = Fixed<Rows['domain'], 'id' | 'serial' | 'domain' | 'createdAt'>;
export type KeyRow = Fixed<Rows['key'], 'id' | 'name' | 'permissions' | 'createdBy' | 'createdAt'>;
/** A test email with its number as the id. */
export type SendRow = Rows['send'];
/** Somebody who works on the platform's own dashboard. */
export type UserRow = Readonly<Rows['user']>;
export type Channel = Rows['channel'];
export type ContactStatus = z.infer<typeof contactStatus>;
/** A contact's own row in a channel. */
export type Membership = z.infer<typeof membership>;
export type DnsRecord = z.infer<typeof dnsRecord>;
/** A test email, which is stored and delivered to nobody. */
export type TestSend = z.infer<typeof send>;
/** The fields of a template that can be written ("Templates": update). */
export type TemplateFields = z.infer<typeof templateFields>;
