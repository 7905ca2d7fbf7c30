import { onTestFinished } from 'vitest';
import { createGate } from '../../../src/http/rate-limit/request-gate.ts';
import { createSend } from '../../../src/http/send-request.ts';
import { createPlatform, type Platform } from '../../../src/platform/api-client.ts';
import { virtualClock } from '../waiting.ts';
import { serve } from '../http/test-server.ts';

export const KEY = 'key_live_1234567890';

export const ann = {
  object: 'contact',
  id: 'con_1',
  email: 'ann@example.com',
  firstName: null,
  status: 'subscribed',
  properties: { city: 'Berlin' },
  groups: [],
  channels: [{ id: 'ch_news', name: 'Newsletter', subscription: 'opt_in' }],
  suppressionReason: null,
  suppressedAt: null,
  createdAt: '2026-01-01T00:00:00.000Z',
  unheardOf: 1,
};
export const listed = {
  object: 'contact',
  contacts: [ann],
  total: 1,
  page: 1,
  limit: 100,
  event: 'x',
};
export const template = {
  id: 'tpl_1',
  name: 'Welcome',
  description: null,
  deletedAt: null,
  extra: 1,
};

export const domain = { object: 'domain', id: 'dom_1', domain: 'example.com', status: 'pending' };
export const apiKey = { id: 'key_1', name: 'CI', enabled: true, requestCount: 'x', extra: 1 };
export const COOKIE = 'app.session_token=s3cr3t.token';

export interface Reply {
  status?: number;
  headers?: Record<string, string>;
  body: unknown;
}

/** A platform at `url` whose waits take no time; `run` ends when the call has. */
export function connect(url: string, timeoutMs = 20_000) {
  const clock = virtualClock();
  const random = () => 1;
  const { send, close } = createSend({ url, timeoutMs, userAgent: 'crm-mirror/1' });
  onTestFinished(close);
  const gate = createGate({ clock, random });
  const platform = createPlatform({ send, gate, clock, random, apiKey: KEY });
  const run = <T>(use: (platform: Platform) => Promise<T>) => clock.run(use(platform));
  return { run, gate };
}

/** A server that answers with each reply in turn, the last one for ever. */
export async function answering(...replies: Reply[]) {
  const requests: Record<string, unknown>[] = [];
  const url = await serve((request, response) => {
    const { method, url: path, headers, text } = request;
    requests.push({ method, path, headers, body: text === '' ? undefined : JSON.parse(text) });
    const {
      status = 200,
      headers: more = {},
      body,
    } = replies[requests.length - 1] ?? replies.at(-1)!;
    const json = typeof body === 'string' ? body : JSON.stringify(body);
    response.writeHead(status, { 'content-type': 'application/json', ...more }).end(json);
  });
  return { ...connect(url), requests };
}

export const fails = (sent: Promise<unknown>): Promise<unknown> =>
  sent.then(
    (value) => Promise.reject(new Error(`expected a failure, not ${JSON.stringify(value)}`)),
    (error: unknown) => error,
  );

export async function collect<T>(iterated: AsyncIterable<T>): Promise<T[]> {
  const collected: T[] = [];
  for await (const value of iterated) collected.push(value);
  return collected;
}

export const enrolByEmail = ({ contacts }: Platform) =>
  contacts.enrol('ch', { email: ann.email, subscription: 'opt_in' });

/** Every operation: its route, whether it changes anything, a call of it. */
export const calls: [string, boolean, (platform: Platform) => Promise<unknown>][] = [
  ['contacts.list', false, ({ contacts }) => contacts.list({ page: 1, limit: 100 })],
  ['contacts.retrieve', false, ({ contacts }) => contacts.retrieve('con_1')],
  ['contacts.delete', true, ({ contacts }) => contacts.remove('con_1')],
  [
    'contacts.enrol',
    true,
    ({ contacts }) => contacts.enrol('ch', { contactId: 'con_1', subscription: 'opt_out' }),
  ],
  ['contacts.enrol', true, enrolByEmail],
  ['templates.list', false, ({ templates }) => templates.list({ page: 1, limit: 100 })],
  ['templates.create', true, ({ templates }) => templates.create({ name: 'Welcome' })],
  ['templates.update', true, ({ templates }) => templates.update('tpl_1', { name: 'Welcome' })],
  ['templates.test', true, ({ templates }) => templates.test('tpl_1', { to: ann.email })],
  ['domains.list', false, ({ domains }) => domains.list({ page: 1, limit: 100 })],
  ['domains.create', true, ({ domains }) => domains.create({ domain: 'example.com' })],
  ['domains.verify', true, ({ domains }) => domains.verify('dom_1')],
  [
    'domains.nameservers',
    false,
    ({ domains }) => domains.nameservers('dom_1', { sessionCookie: COOKIE }),
  ],
  ['keys.enable', true, ({ apiKeys }) => apiKeys.enable('key_1')],
];
