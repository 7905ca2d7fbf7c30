/**
 * What the platform accepts: the query and body of every operation, with the bounds its
 * specification states ("Endpoints", "Limits"). The client sends these, the emulator demands them.
 */
import { z } from 'zod';

export const subscription = z.enum(['opt_in', 'opt_out']);
export type Subscription = z.infer<typeof subscription>;

export const contactStatus = z.enum(['subscribed', 'unsubscribed', 'blocked']);

/** local@host.tld: no whitespace, exactly one @, a dot in the part after it. */
export const email = z.string().regex(/^[^\s@]+@[^\s@]+\.[^\s@]+$/, 'Invalid email format');

/** "Limits 2"; the two statements about the default of `limit` conflict. */
const page = z.coerce.number().int().min(1).optional().meta({ default: 1 });
const limit = z.coerce.number().int().min(1).max(100).optional();

/** GET /api/contacts/list */
export const contactListQuery = z.object({
  page,
  limit: limit.meta({ default: 100 }),
  search: z.string().optional(),
  status: contactStatus.optional(),
});
export type ContactListQuery = z.infer<typeof contactListQuery>;

/** POST /api/contacts/channel/{channel_id} */
export const enrolBody = z.object({
  contact_id: z.string().optional(),
  email: email.optional(),
  subscription: subscription.optional(),
});
export type EnrolBody = z.infer<typeof enrolBody>;

export const templateStatus = z.enum(['draft', 'published', 'archived']);

export const templateVariable = z.object({
  name: z.string(),
  type: z.enum(['string', 'number']),
  defaultValue: z.string().nullable(),
});

const templateName = z.string().min(1).max(255);
const templateSubject = z.string().max(500);
const content = z.array(z.unknown());

/** POST /api/template/v1/create */
export const templateCreateBody = z.object({
  name: templateName,
  description: z.string().optional(),
  subject: templateSubject.optional(),
  content: content.optional(),
});
export type TemplateCreateBody = z.infer<typeof templateCreateBody>;

/** PUT /api/template/v1/{id}: partial; only the fields given change. */
export const templateUpdateBody = z.object({
  name: templateName.optional(),
  description: z.string().optional(),
  subject: templateSubject.optional(),
  fromEmail: z.string().max(255).optional(),
  replyTo: z.string().max(255).optional(),
  previewText: z.string().optional(),
  content: content.optional(),
  variables: z.array(templateVariable).optional(),
  status: templateStatus.optional(),
});
export type TemplateUpdateBody = z.infer<typeof templateUpdateBody>;

/** GET /api/template/v1/list */
export const templateListQuery = z.object({ page, limit: limit.meta({ default: 20 }) });
export type TemplateListQuery = z.infer<typeof templateListQuery>;

/** POST /api/template/v1/{id}/test */
export const testSendBody = z.object({
  to: z.string().min(1),
  fromEmail: z.string().optional(),
  subject: z.string().optional(),
  html: z.string().optional(),
  variables: z.record(z.string(), z.unknown()).optional(),
});
export type TestSendBody = z.infer<typeof testSendBody>;

/** Letters, digits and inner hyphens, at most 63 of them. */
const label = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?';

/** Labels with dots between them; the last one of two letters or more. */
const domainName = z
  .string()
  .min(4)
  .max(255)
  .regex(new RegExp(`^(?:${label}\\.)+[A-Za-z]{2,63}$`), 'Invalid domain format');

const subdomain = z
  .string()
  .min(1)
  .max(255)
  .regex(new RegExp(`^${label}(?:\\.${label})*$`), 'Invalid subdomain format');

export const tls = z.enum(['opportunistic', 'enforced']);
export type Tls = z.infer<typeof tls>;

/** POST /api/domain/v1/create: no default is stated for tls. */
export const domainCreateBody = z.object({
  domain: domainName,
  custom_return_path: subdomain.optional().meta({ default: 'inbound' }),
  tracking: subdomain.optional().meta({ default: 'tracking' }),
  click_tracking: z.boolean().optional().meta({ default: false }),
  open_tracking: z.boolean().optional().meta({ default: false }),
  tls: tls.optional(),
  sending_email: z.boolean().optional().meta({ default: true }),
  receiving_email: z.boolean().optional().meta({ default: true }),
});
export type DomainCreateBody = z.infer<typeof domainCreateBody>;

/** GET /api/domain/v1/list: not shown; as every list is paged ("Limits 2"). */
export const domainListQuery = z.object({ page, limit: limit.meta({ default: 20 }) });
export type DomainListQuery = z.infer<typeof domainListQuery>;
