/** Events over real HTTP, in each format, with signatures that are valid unless they are broken. */
import fc from 'fast-check';
import { createHmac } from 'node:crypto';
import { Agent, request } from 'node:http';
import { sign } from '../../src/worker/server/webhook-signature.ts';
import type { Webhook } from '../../src/worker/server/webhooks.ts';
import { startServer } from '../support/server/started-server.ts';
import { ADDRESS, area, judgeText, mutated, scrap, SECRET, strangeValue, twisted } from './area.ts';

const standardSecret = `whsec_${SECRET}`;
const paths = ['/webhooks/acme', '/webhooks/globex'];
const answers = new Set([200, 202, 400, 401, 404, 405, 413, 415, 431]);

const events = [
  { type: 'contact.updated', data: { id: 'c:1', email: ADDRESS } },
  [{ data: { id: ['1', 2, 3n.toString()] } }, { data: { id: 4 } }],
  { objectId: 101, subscriptionType: 'contact.propertyChange', occurredAt: 1 },
  [
    { objectId: 9, newObjectId: 9, primaryObjectId: 7, mergedObjectIds: [7, 8] },
    { objectId: 1, subscriptionType: 'contact.privacyDeletion' },
    { objectId: 2, objectTypeId: '0-1', subscriptionType: 'object.privacyDeletion' },
    { objectId: 3, subscriptionType: 'company.creation' },
  ],
];

const header = fc.tuple(
  fc
    .constantFrom('webhook-id', 'webhook-timestamp', 'webhook-signature', 'content-type', 'host')
    .chain((name) =>
      fc.constantFrom(name, 'x-hubspot-signature-v3', 'x-forwarded-proto', 'cookie'),
    ),
  scrap.map((text) => text.replaceAll(/[^\t\x20-\x7e\x80-\xff]/g, '')),
);

export const webhookArea = area('webhooks', async () => {
  const known = new Set<string>();
  const told: string[] = [];
  const queue: Webhook['events'] = {
    add: async (ids) => void told.push(...ids),
    knows: async (delivery) => known.has(delivery),
    remember: async (delivery) => void known.add(delivery),
  };
  const webhooks = new Map<string, Webhook>([
    ['acme', { format: 'standard', secret: standardSecret, id: 'data.id', events: queue }],
    ['globex', { format: 'hubspot', secret: SECRET, id: 'objectId', events: queue }],
  ]);
  const started = await startServer({ webhookOf: (mirror) => webhooks.get(mirror), token: SECRET });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const texts = events.map((event) => JSON.stringify(event));
  let number = 0;
  return {
    inputs: fc.record({
      path: fc.oneof(
        { weight: 8, arbitrary: fc.constantFrom(...paths) },
        { weight: 1, arbitrary: fc.webPath().map((path) => `/webhooks/${path}?${path}`) },
      ),
      body: fc.oneof(
        twisted(events).map((value) => JSON.stringify(value) ?? ''),
        mutated(texts),
        strangeValue.map((value) => JSON.stringify({ data: { id: value }, objectId: value })),
        scrap,
      ),
      headers: fc.oneof(
        { weight: 4, arbitrary: fc.constant([]) },
        { weight: 1, arbitrary: fc.array(header, { maxLength: 2 }) },
      ),
    }),
    async judge({ path, body, headers }) {
      number += 1;
      const now = Date.now();
      const given = {
        'content-type': 'application/json',
        ...sign(standardSecret, `msg_${number}`, { body, at: now }),
        'x-hubspot-request-timestamp': String(now),
        'x-hubspot-signature-v3': createHmac('sha256', SECRET)
          .update(`POST${started.url}${path}${body}${now}`)
          .digest('base64'),
        ...Object.fromEntries(headers),
      };
      told.length = 0;
      const { status, text } = await post(started.url + path, { body, headers: given, agent });
      if (started.failures.length > 0) throw started.failures.splice(0)[0];
      if (!answers.has(status)) throw new Error(`is answered by ${status}: ${text}`);
      if (status !== 431) JSON.parse(text);
      judgeText(text);
      const odd = told.find((id) => id === '' || id.length > 500 || !id.isWellFormed());
      if (odd !== undefined) throw new Error(`queues the id ${JSON.stringify(odd)}`);
      if (status === 202 && told.length === 0) throw new Error('accepts what names nobody');
      if (status !== 202 && told.length > 0) throw new Error(`queues what it answers by ${status}`);
    },
    async close() {
      agent.destroy();
      await started.close();
    },
  };
});

interface Post {
  body: string;
  headers: Record<string, string>;
  agent: Agent;
}

async function post(url: string, { body, headers, agent }: Post) {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>();
  const bytes = Buffer.from(body);
  const length = { 'content-length': bytes.length };
  const asked = request(url, { method: 'POST', headers: { ...headers, ...length }, agent });
  asked.on('error', reject);
  asked.on('response', (answer) => {
    let text = '';
    answer.on('error', reject);
    answer.on('data', (chunk: Buffer) => (text += chunk.toString()));
    answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }));
  });
  asked.end(bytes);
  return promise;
}
