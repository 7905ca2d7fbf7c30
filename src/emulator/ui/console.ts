/**
 * The emulator's own console: views of the world to look at, and acts by which a developer plays
 * people and the platform.
 */
import { z } from 'zod';
import { Invalid } from '../../domain/errors.ts';
import { type ApiOutcome, type Asked, refuse } from '../shared/api-answer.ts';
import type { Dashboard, World } from './dashboard.ts';
import { json, query } from '../api/operation-table.ts';
import { email, subscription, templateUpdateBody } from '../../platform/request-schemas.ts';

/** The path prefix of the emulator's own console, which needs no key and has no limit. */
export const CONSOLE = '/_emulator/';

/** Says what each view shows; each accepts `?organization=id` and `?count=100`. */
const views = {
  state: 'everything there is, with at most so many of each kind of record',
  outbox: 'the test emails that were sent, oldest first',
  requests: 'what was asked of the API, oldest first',
};

function isView(name: string): name is keyof typeof views {
  return Object.hasOwn(views, name);
}

/** Returns whether a page of another website, open in the user's browser, sent the request. */
export function isForeign({ origin, host }: Record<string, string | undefined>): boolean {
  if (origin === undefined) return false;
  return URL.parse(origin)?.host !== host;
}

/** The response to a page of another website, which could otherwise read and change the world. */
export const foreign: ApiOutcome = refuse(403, 'Forbidden', {
  why: 'The request comes from a page of another site (Origin).',
  fix: 'Ask from the emulator itself, or from a program that sends no Origin.',
});

const readQuery = query(
  z.object({
    count: z.coerce.number().int().min(0).default(100),
    organization: z.string().optional(),
  }),
);

/**
 * Creates the console.
 *
 *   GET  /_emulator/           all views and actions
 *   GET  /_emulator/<view>     the world
 *   POST /_emulator/<act>      one dashboard action, with its fields as the JSON body
 *   POST /_emulator/reset      restores the world as it was when the first request arrived
 *
 * Views and actions apply to the first organization, or to the one named by ?organization=id.
 */
export function createConsole(emulator: {
  readonly organizationId: string;
  organizations(): string[];
  player(organizationId: string): { world: World; dashboard: Dashboard };
  reset(): void;
}): (asked: Asked) => ApiOutcome {
  const done = (body: ApiOutcome['body']): ApiOutcome => ({ status: 200, body });
  return ({ method, path, query, body }) => {
    const read = readQuery(query);
    if (!read.ok) return read.refusal;
    const { count, organization = emulator.organizationId } = read.value;
    const name = path.slice(CONSOLE.length);
    try {
      const { world, dashboard } = emulator.player(organization);
      if (method === 'GET' && name === '')
        return done({
          about: 'The emulator of the platform. What is here needs no key, and counts nowhere.',
          organizations: emulator.organizations(),
          look: [
            ...Object.entries(views).map(([name, shows]) => ({ get: CONSOLE + name, shows })),
            { get: '/openapi.json', shows: 'the API as OpenAPI 3.1' },
            { get: '/docs', shows: 'the API as a page to read' },
          ],
          act: [
            ...Array.from(acts, ([name, { does, fields }]) => {
              return { post: CONSOLE + name, does, fields };
            }),
            { post: `${CONSOLE}reset`, does: 'leads back to the beginning', fields: {} },
          ],
          options: {
            '?organization=': 'the id of one; the first if left out',
            '?count=': 'default 100',
          },
        });
      if (method === 'GET' && isView(name)) {
        return done(name === 'state' ? world.state(count) : { [name]: world[name](count) });
      }
      const act = method === 'POST' ? acts.get(name) : undefined;
      if (act) return act.perform(dashboard, body);
      if (method !== 'POST' || name !== 'reset') {
        throw new Invalid(`The emulator's console does not know ${method} ${path}.`);
      }
      emulator.reset();
      return done({ reset: true });
    } catch (error) {
      if (!(error instanceof Invalid)) throw error;
      const fix = `GET ${CONSOLE} shows what there is.`;
      return refuse(404, 'Not found', { why: error.message, fix });
    }
  };
}

const id = z.string();
const person = { contact: id };
const names = { firstName: z.string().optional(), lastName: z.string().optional() };

const acts = new Map([
  act(
    'sign-up',
    'a person signs up, or comes back: opted in to the channels (ids)',
    { email, ...names, channels: z.array(z.string()).optional() },
    (on, body) => on.signUp(body),
  ),
  act('leave', 'the person opts out of a channel', { ...person, channel: id }, (on, body) =>
    on.leave(body.contact, body.channel),
  ),
  act('unsubscribe', 'the person wants no mail at all', person, (on, { contact }) =>
    on.unsubscribe(contact),
  ),
  act('resubscribe', 'takes back all that stops mail', person, (on, { contact }) =>
    on.resubscribe(contact),
  ),
  act('block', 'a colleague blocks the person', person, (on, { contact }) => on.block(contact)),
  act(
    'suppress',
    'mail bounced, or was reported as spam',
    { ...person, reason: z.string() },
    (on, { contact, reason }) => on.suppress(contact, reason),
  ),
  act(
    'edit-contact',
    'a colleague changes the email or the names of a contact',
    { ...person, email: email.optional(), ...names },
    (on, { contact, ...fields }) => on.editContact(contact, fields),
  ),
  act(
    'remove-from-channel',
    'a colleague takes the contact out of a channel: no row is left',
    { ...person, channel: id },
    (on, body) => on.removeFromChannel(body.contact, body.channel),
  ),
  act('delete', 'a colleague deletes the contact', person, (on, { contact }) =>
    on.deleteContact(contact),
  ),
  act(
    'edit-template',
    'a colleague edits a template',
    { template: id, fields: templateUpdateBody },
    (on, { template, fields }) => on.editTemplate(template, fields),
  ),
  act('delete-template', 'a colleague deletes a template', { template: id }, (on, { template }) =>
    on.deleteTemplate(template),
  ),
  act(
    'create-channel',
    'a colleague makes a channel, with the subscription it shows by default',
    { id: z.string().min(1), name: z.string().min(1), subscription: subscription.optional() },
    (on, channel) => on.createChannel(channel),
  ),
  act(
    'settle-domain',
    'the check of a domain ends: active, failed or another status',
    { domain: id, status: z.string().min(1), reason: z.string().optional() },
    (on, { domain, ...end }) => on.settleDomain(domain, end),
  ),
  act('delete-domain', 'a colleague deletes a domain', { domain: id }, (on, { domain }) =>
    on.deleteDomain(domain),
  ),
  act(
    'create-key',
    'a colleague makes an API key',
    { name: z.string().optional(), permissions: z.string().optional() },
    (on, body) => on.createKey(body),
  ),
  act('enable-key', 'a colleague enables an API key', { key: id }, (on, { key }) =>
    on.enableKey(key),
  ),
  act('disable-key', 'a colleague disables an API key', { key: id }, (on, { key }) =>
    on.disableKey(key),
  ),
  act('revoke-key', 'a colleague revokes it, for good', { key: id }, (on, { key }) =>
    on.revokeKey(key),
  ),
  act('rotate-key', 'a colleague gives it a new secret', { key: id }, (on, { key }) =>
    on.rotateKey(key),
  ),
]);

/** Makes a row. `run` throws Invalid if a record does not exist, or exists already. */
function act<Shape extends z.core.$ZodShape>(
  name: string,
  does: string,
  shape: Shape,
  run: (on: Dashboard, body: z.infer<z.ZodObject<Shape>>) => Record<string, unknown>,
) {
  const schema = z.strictObject(shape);
  const readBody = json(schema);
  const perform = (on: Dashboard, text: string): ApiOutcome => {
    const read = readBody(text);
    return read.ok ? { status: 200, body: run(on, read.value) } : read.refusal;
  };
  const { properties = {}, required = [] } = z.toJSONSchema(schema, { io: 'input' });
  const fields: Record<string, string> = {};
  for (const [field, shape] of Object.entries(properties)) {
    const type = typeof shape === 'object' ? shape.type : undefined;
    fields[required.includes(field) ? field : `${field}?`] = String(type ?? 'any');
  }
  return [name, { does, fields, perform }] as const;
}
