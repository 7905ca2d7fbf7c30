import { z } from 'zod';
import { email, subscription, templateUpdateBody } from '../../platform/request-schemas.ts';
import type { ApiOutcome } from '../shared/api-answer.ts';
import type { Dashboard } from './dashboard.ts';
import { json } from '../api/request-parsing.ts';

/** A dashboard action, sent as a request to the console. */
export interface Act {
  does: string;
  /** The body fields with their types; `?` marks an optional field. */
  fields: Record<string, string>;
  /**
   * Performs the action. Throws Invalid if a named record does not exist, or if a record to create
   * already exists.
   */
  perform(dashboard: Dashboard, body: string): ApiOutcome;
}

const id = z.string();
const person = { contact: id };
const names = { firstName: z.string().optional(), lastName: z.string().optional() };

/** Holds every action under its name. */
export const acts: ReadonlyMap<string, Act> = new Map([
  act(
    ['sign-up', 'a person signs up, or comes back: opted in to the channels (ids)'],
    { email, ...names, channels: z.array(z.string()).optional() },
    (dashboard, body) => dashboard.signUp(body),
  ),
  act(
    ['leave', 'the person opts out of a channel'],
    { ...person, channel: id },
    (dashboard, body) => dashboard.leave(body.contact, body.channel),
  ),
  act(['unsubscribe', 'the person wants no mail at all'], person, (dashboard, { contact }) =>
    dashboard.unsubscribe(contact),
  ),
  act(['resubscribe', 'takes back all that stops mail'], person, (dashboard, { contact }) =>
    dashboard.resubscribe(contact),
  ),
  act(['block', 'a colleague blocks the person'], person, (dashboard, { contact }) =>
    dashboard.block(contact),
  ),
  act(
    ['suppress', 'mail bounced, or was reported as spam'],
    { ...person, reason: z.string() },
    (dashboard, { contact, reason }) => dashboard.suppress(contact, reason),
  ),
  act(
    ['edit-contact', 'a colleague changes the email or the names of a contact'],
    { ...person, email: email.optional(), ...names },
    (dashboard, { contact, ...fields }) => dashboard.editContact(contact, fields),
  ),
  act(
    ['remove-from-channel', 'a colleague takes the contact out of a channel: no row is left'],
    { ...person, channel: id },
    (dashboard, body) => dashboard.removeFromChannel(body.contact, body.channel),
  ),
  act(['delete', 'a colleague deletes the contact'], person, (dashboard, { contact }) =>
    dashboard.deleteContact(contact),
  ),
  act(
    ['edit-template', 'a colleague edits a template'],
    { template: id, fields: templateUpdateBody },
    (dashboard, { template, fields }) => dashboard.editTemplate(template, fields),
  ),
  act(['delete-template', 'a colleague deletes a template'], { template: id }, (dashboard, body) =>
    dashboard.deleteTemplate(body.template),
  ),
  act(
    ['create-channel', 'a colleague makes a channel, with the subscription it shows by default'],
    { id: z.string().min(1), name: z.string().min(1), subscription: subscription.optional() },
    (dashboard, channel) => dashboard.createChannel(channel),
  ),
  act(
    ['settle-domain', 'the check of a domain ends: active, failed or another status'],
    { domain: id, status: z.string().min(1), reason: z.string().optional() },
    (dashboard, { domain, ...end }) => dashboard.settleDomain(domain, end),
  ),
  act(['delete-domain', 'a colleague deletes a domain'], { domain: id }, (dashboard, body) =>
    dashboard.deleteDomain(body.domain),
  ),
  act(
    ['create-key', 'a colleague makes an API key'],
    { name: z.string().optional(), permissions: z.string().optional() },
    (dashboard, body) => dashboard.createKey(body),
  ),
  act(['enable-key', 'a colleague enables an API key'], { key: id }, (dashboard, { key }) =>
    dashboard.enableKey(key),
  ),
  act(['disable-key', 'a colleague disables an API key'], { key: id }, (dashboard, { key }) =>
    dashboard.disableKey(key),
  ),
  act(['revoke-key', 'a colleague revokes it, for good'], { key: id }, (dashboard, { key }) =>
    dashboard.revokeKey(key),
  ),
  act(['rotate-key', 'a colleague gives it a new secret'], { key: id }, (dashboard, { key }) =>
    dashboard.rotateKey(key),
  ),
]);

function act<Shape extends z.core.$ZodShape>(
  [name, does]: [name: string, does: string],
  shape: Shape,
  run: (dashboard: Dashboard, body: z.infer<z.ZodObject<Shape>>) => object,
): [string, Act] {
  const schema = z.strictObject(shape);
  const readBody = json(schema);
  const perform = (dashboard: Dashboard, text: string) => {
    const read = readBody(text);
    return read.ok ? { status: 200, body: run(dashboard, read.value) } : read.refusal;
  };
  const { properties = {}, required = [] } = z.toJSONSchema(schema, { io: 'input' });
  const fields: Record<string, string> = {};
  for (const [field, shape] of Object.entries(properties)) {
    const type = typeof shape === 'object' ? shape.type : undefined;
    fields[required.includes(field) ? field : `${field}?`] = String(type ?? 'any');
  }
  return [name, { does, fields, perform }];
}
