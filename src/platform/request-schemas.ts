/**
 * The requests that the platform accepts ("Endpoints", "Limits"), as the emulator enforces them.
 */
import { z } from 'zod';

/** The two subscriptions of a contact to a channel. */
export const subscription = z.enum(['opt_in', 'opt_out']);
/** One of the two subscriptions. */
export type Subscription = z.infer<typeof subscription>;

/** The statuses by which contacts can be filtered. */
export const contactStatus = z.enum(['subscribed', 'unsubscribed', 'blocked']);

/** An address local@host.tld: no whitespace, exactly one @, and a dot in the part after it. */
export const emailForm = /^[^\s@]+@[^\s@]+\.[^\s@]+$/;
export const email = z.string().regex(emailForm, 'Invalid email format');

/** The page of a list ("Limits" 2). The default of `limit` is not specified clearly. */
const page = z.coerce.number().int().min(1).optional().meta({ default: 1 });
const limit = z.coerce.number().int().min(1).max(100).optional();

/** The query of GET /api/contacts/list. */
export const contactListQuery = z.object({
  page,
  limit: limit.meta({ default: 100 }),
  search: z.string().optional(),
  status: contactStatus.optional(),
});
/** A parsed query of GET /api/contacts/list. */
export type ContactListQuery = z.infer<typeof contactListQuery>;

/** The body of POST /api/contacts/channel/{channel_id}. */
export const enrolBody = z.object({
  contact_id: z.string().optional(),
  email: email.optional(),
  subscription: subscription.optional(),
});
/** A parsed body of an enrolment. */
export type EnrolBody = z.infer<typeof enrolBody>;

/** The statuses of a template. */
export const templateStatus = z.enum(['draft', 'published', 'archived']);

/** A variable of a template. */
export const templateVariable = z.object({
  name: z.string(),
  type: z.enum(['string', 'number']),
  defaultValue: z.string().nullable(),
});

const templateName = z.string().min(1).max(255);
const templateSubject = z.string().max(500);
const content = z.array(z.unknown());

/** The body of POST /api/template/v1/create. */
export const templateCreateBody = z.object({
  name: templateName,
  description: z.string().optional(),
  subject: templateSubject.optional(),
  content: content.optional(),
});
/** A parsed body of a template creation. */
export type TemplateCreateBody = z.infer<typeof templateCreateBody>;

/** The body of PUT /api/template/v1/{id}. Only the given fields change. */
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
/** A parsed body of a template update. */
export type TemplateUpdateBody = z.infer<typeof templateUpdateBody>;

/** The query of GET /api/template/v1/list. */
export const templateListQuery = z.object({ page, limit: limit.meta({ default: 20 }) });

/** The body of POST /api/template/v1/{id}/test. */
export const testSendBody = z.object({
  to: z.string().min(1),
  fromEmail: z.string().optional(),
  subject: z.string().optional(),
  html: z.string().optional(),
  variables: z.record(z.string(), z.unknown()).optional(),
});
/** A parsed body of a test email. */
export type TestSendBody = z.infer<typeof testSendBody>;

const label = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?';

/** A domain name: labels separated by dots, the last one with at least two letters. */
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

/** Whether mail is sent without TLS, or not at all, if the receiver does not support TLS. */
export const tls = z.enum(['opportunistic', 'enforced']);

/** The body of POST /api/domain/v1/create. The specification states no default for tls. */
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
/** A parsed body of a domain creation. */
export type DomainCreateBody = z.infer<typeof domainCreateBody>;

/** The query of GET /api/domain/v1/list: not specified, but every list is paged. */
export const domainListQuery = z.object({ page, limit: limit.meta({ default: 20 }) });
