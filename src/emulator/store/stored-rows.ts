/** The schemas of stored rows, so that a file that was tampered with is refused. */
import { z } from 'zod';
import {
  contactStatus,
  subscription,
  templateUpdateBody,
  tls,
} from '../../platform/request-schemas.ts';
import type { StoredRow } from './storage.ts';

const text = z.string();
const time = z.number();
const named = z.object({ id: text, name: text });
const channel = named.extend({ subscription: subscription.optional() });
const person = named.extend({ email: text });
const dated = z.object({ id: text, serial: z.number(), createdAt: time, updatedAt: time });

const key = person.omit({ email: true }).extend({
  secret: text,
  enabled: z.boolean(),
  revoked: z.boolean(),
  requestCount: z.number(),
  permissions: text,
  createdBy: person,
  createdAt: time,
  updatedAt: time,
});

const contact = dated.extend({
  email: text,
  key: text,
  firstName: text,
  lastName: text,
  status: contactStatus,
  properties: z.record(text, z.unknown()),
  groups: z.array(named),
  memberships: z.array(z.object({ id: text, channel, subscription })),
  suppressionReason: text.nullable(),
  suppressedAt: time.nullable(),
});

const template = dated.extend(templateUpdateBody.required().shape);

const record = z.object({
  id: text,
  recordType: z.enum(['MX', 'TXT', 'CNAME']),
  recordTypeName: text,
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
  dnsRecords: z.array(record),
  lastVerifiedAt: time,
});

const send = z.object({
  at: text,
  templateId: text,
  to: text,
  fromEmail: text,
  subject: text,
  html: text.nullable(),
  content: z.array(z.unknown()),
});

const draws = z.object({ id: z.literal('draws'), start: z.number(), count: z.number() });
const user = person.extend({ session: text, organizationId: text.nullable() });

/** Checks any stored row. */
export const storedRow: z.ZodType<StoredRow> = z.discriminatedUnion('kind', [
  row('draws', draws),
  row('organization', named),
  row('user', user),
  row('channel', channel),
  row('key', key),
  row('contact', contact),
  row('template', template),
  row('domain', domain),
  row('send', z.object({ id: text, send })),
]);

function row<Kind extends StoredRow['kind'], Row extends z.ZodType>(kind: Kind, schema: Row) {
  return z.object({ kind: z.literal(kind), organization: text, row: schema });
}
