/** Events of a CRM, signed as Standard Webhooks or by HubSpot, over real HTTP into a real Redis. */
import { createHmac } from 'node:crypto';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { Unavailable } from '../../../src/domain/errors.ts';
import { systemClock } from '../../../src/http/system-clock.ts';
import {
  openEventQueue,
  type EventQueue,
  type Heard,
} from '../../../src/compose/queues/event-queue.ts';
import { createMetrics, type Metrics } from '../../../src/worker/server/metrics.ts';
import type { Webhook } from '../../../src/worker/server/webhooks.ts';
import { ownRedis, type TestRedis } from '../../support/redis.ts';
import { startServer, type Started } from '../../support/server/started-server.ts';
import {
  type SharedConnections,
  shareConnections,
} from '../../../src/compose/queues/shared-connections.ts';
import { untilHolds } from '../../support/waiting.ts';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const appSecret = 'b5c9f1c4-2a6e-4a37-9d02-5f2d1f6a8e10';

let redis: TestRedis;
let shared: SharedConnections;
let events: EventQueue;
let metrics: Metrics;
let started: Started;
beforeAll(async () => void (redis = await ownRedis()));
beforeEach(async () => {
  await redis.flush();
  shared = shareConnections('test', systemClock);
  const connections = shared.to(redis.url);
  events = openEventQueue({ mirror: 'acme', clock: systemClock, connections });
  metrics = createMetrics([]);
  started = await serve();
});
afterEach(async () => {
  await started.close();
  await events.close();
  shared.close();
  if (started.failures.length > 0) throw started.failures[0];
});
afterAll(async () => redis.close());

const serve = async (publicUrl?: string) => {
  const webhooks = new Map<string, Webhook>([
    ['acme', { format: 'standard', secret, id: 'data.id', events }],
    ['globex', { format: 'hubspot', secret: appSecret, id: 'objectId', events }],
  ]);
  const webhookOf = (mirror: string) => webhooks.get(mirror);
  return startServer({ webhookOf, metrics, publicUrl, token: 'tok' });
};

/** The ids that are queued, in any order. */
async function queued(): Promise<string[]> {
  const client = new Redis(redis.url);
  const jobs = await client.zrange('crm-mirror:events-acme:delayed', '0', '-1');
  const data: string[] = await Promise.all(
    jobs.map(
      async (job) =>
        JSON.parse((await client.hget(`crm-mirror:events-acme:${job}`, 'data')) ?? '').id,
    ),
  );
  client.disconnect();
  return data.toSorted();
}

interface Sent {
  id?: string;
  /** Milliseconds from now. */
  ago?: number;
  key?: string;
  headers?: Record<string, string>;
}

async function post(path: string, body: string, headers: Record<string, string>) {
  const given = { 'content-type': 'application/json', ...headers };
  const answer = await fetch(started.url + path, { method: 'POST', body, headers: given });
  const text = await answer.text();
  expect(text).not.toMatch(/\n| at \S+:|ann@/);
  return { status: answer.status, headers: answer.headers, body: JSON.parse(text) };
}

function standardHeaders(body: string, { id = 'msg_1', ago = 0, key = secret }: Sent) {
  const at = new Date(Date.now() - ago);
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new StandardWebhook(key).sign(id, at, body),
  };
}

const standard = async (content: unknown, sent: Sent = {}) => {
  const body = typeof content === 'string' ? content : JSON.stringify(content);
  return post('/webhooks/acme', body, { ...standardHeaders(body, sent), ...sent.headers });
};

/** Signed as HubSpot's documentation has it: method, address, body, time. */
const hubspot = async (content: unknown, sent: Sent & { url?: string; path?: string } = {}) => {
  const { ago = 0, key = appSecret, path = '/webhooks/globex', url = started.url + path } = sent;
  const body = JSON.stringify(content);
  const timestamp = String(Date.now() - ago);
  const text = `POST${url}${body}${timestamp}`;
  const signature = createHmac('sha256', key).update(text, 'utf8').digest('base64');
  return post(path, body, {
    'x-hubspot-signature-v3': signature,
    'x-hubspot-request-timestamp': timestamp,
    ...sent.headers,
  });
};

const minute = 60_000;
const refused = 'not signed as it should be, or too long ago';

describe('Standard Webhooks', () => {
  test('queues an event before it is answered', async () => {
    const { status, body } = await standard({ type: 'contact.updated', data: { id: 'c:1' } });
    expect([status, body]).toEqual([202, { status: 'accepted', records: 1 }]);
    expect(await queued()).toEqual(['c:1']);
    expect(await metrics.text()).toContain('crm_mirror_events_accepted_total{mirror="acme"} 1');
  });

  test('accepts several at once, ids as numbers and texts, each record once', async () => {
    const data = [1, '1', 2.5, '9007199254740993', ' a '].map((id) => ({ data: { id } }));
    const list = JSON.stringify([...data, { data: {} }, null, 7, { data: { id: ['x', 'y', {}] } }]);
    const { status, body } = await standard(list.replace('"9007199254740993"', '9007199254740993'));
    expect([status, body]).toEqual([202, { status: 'accepted', records: 6 }]);
    expect(await queued()).toEqual(['1', '2.5', '9007199254740993', 'a', 'x', 'y']);
  });

  test.each<[string, Sent]>([
    ['by another secret', { key: 'whsec_QW5vdGhlciBzZWNyZXQgb2Ygc29tZWJvZHk=' }],
    ['six minutes ago', { ago: 6 * minute }],
    ['in six minutes', { ago: -6 * minute }],
    ['without an id', { headers: { 'webhook-id': '' } }],
    ['under another id', { headers: { 'webhook-id': 'msg_2' } }],
    [
      'at another time',
      { headers: { 'webhook-timestamp': String(Math.floor(Date.now() / 1e3)) }, ago: 2 * minute },
    ],
    ['at no time', { headers: { 'webhook-timestamp': 'now' } }],
    ['with no signature', { headers: { 'webhook-signature': '' } }],
    ['with half a signature', { headers: { 'webhook-signature': 'v1' } }],
    ['with another version', { headers: { 'webhook-signature': 'v1a,AAAA' } }],
  ])('refuses an event signed %s', async (_, sent) => {
    const { status, body } = await standard({ data: { id: 1 } }, sent);
    expect([status, body]).toEqual([401, { error: refused }]);
    expect(await queued()).toEqual([]);
    expect(await metrics.text()).toMatch(/events_refused_total\{mirror="acme",reason="\w+"\} 1/);
  });

  test('accepts one from four minutes ago; of several signatures one is enough', async () => {
    const body = JSON.stringify({ data: { id: 1 } });
    const headers = standardHeaders(body, { ago: 4 * minute });
    const signature = `v1,AAAA ${headers['webhook-signature']}`;
    const { status } = await post('/webhooks/acme', body, {
      ...headers,
      'webhook-signature': signature,
    });
    expect(status).toBe(202);
  });

  test('accepts the example of the specification', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 1_614_265_330_000 });
    const { status, body } = await post('/webhooks/acme', '{"test": 2432232314}', {
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    });
    vi.useRealTimers();
    expect([status, body]).toEqual([400, { error: 'no event names a record at data.id' }]);
  });

  test('refuses a changed body', async () => {
    const body = JSON.stringify({ data: { id: 1 } });
    const headers = standardHeaders(body, {});
    const { status } = await post('/webhooks/acme', body.replace('1', '2'), headers);
    expect([status, await queued()]).toEqual([401, []]);
  });

  test('answers a repeated event well without queueing it, resent or replayed', async () => {
    const body = JSON.stringify({ data: { id: 1 } });
    const headers = standardHeaders(body, {});
    expect((await post('/webhooks/acme', body, headers)).status).toBe(202);
    await clearQueue();
    const overheard = await post('/webhooks/acme', body, headers);
    const anew = await standard({ data: { id: 1 } }, { ago: minute });
    for (const answer of [overheard, anew]) {
      expect([answer.status, answer.body]).toEqual([200, { status: 'accepted before' }]);
    }
    expect(await queued()).toEqual([]);
    // Another event is another one, even under the same id.
    expect((await standard({ data: { id: 2 } })).status).toBe(202);
    expect((await standard({ data: { id: 1 } }, { id: 'msg_2' })).status).toBe(202);
    expect(await queued()).toEqual(['1', '2']);
  });

  test.each([
    ['{"data":{}}', 'no event names a record at data.id'],
    ['[]', 'no event names a record at data.id'],
    ['[{"id":1},{"data":{"id":""}},{"data":{"id":true}}]', 'no event names a record at data.id'],
    [`{"data":{"id":"${'x'.repeat(501)}"}}`, 'no event names a record at data.id'],
    ['{"data":', 'the body is no JSON'],
    ['', 'the body is no JSON'],
  ])('refuses an event without a record: %.40s', async (body, error) => {
    const answer = await standard(body);
    expect([answer.status, answer.body]).toEqual([400, { error }]);
  });
});

async function clearQueue(): Promise<void> {
  const client = new Redis(redis.url);
  const keys = await client.keys('crm-mirror:events-acme:*');
  await client.del(...keys);
  client.disconnect();
}

describe('HubSpot', () => {
  test('queues a privacy deletion as such, and once', async () => {
    const heard: [string, Heard][] = [];
    const batch = [
      { objectId: 1, subscriptionType: 'contact.deletion' },
      { objectId: 1, subscriptionType: 'contact.privacyDeletion' },
      { objectId: 2, subscriptionType: 'contact.deletion' },
    ];
    const { status, body } = await hubspot(batch);
    expect([status, body]).toEqual([202, { status: 'accepted', records: 2 }]);
    const work = async (id: string, what: Heard) => {
      heard.push([id, what]);
      return 'done' as const;
    };
    events.serve(work, { concurrency: 1, failed: (error) => started.failures.push(error) });
    await untilHolds(() => expect(heard).toHaveLength(2));
    expect(Object.fromEntries(heard)).toEqual({ 1: 'erased', 2: 'changed' });
  });

  test('accepts a hundred events at once; none of a contact are answered well', async () => {
    const hundred = Array.from({ length: 100 }, (_, at) => ({ objectId: 1000 + at }));
    expect((await hubspot(hundred)).status).toBe(202);
    expect(await queued()).toHaveLength(100);
    const deals = [{ subscriptionType: 'deal.creation', objectId: 1 }];
    const { status, body } = await hubspot(deals);
    // Else HubSpot would send them again and again.
    expect([status, body]).toEqual([200, { status: 'of no contact' }]);
    expect(await queued()).toHaveLength(100);
  });

  test.each<[string, Parameters<typeof hubspot>[1]]>([
    ['by another app', { key: 'another' }],
    ['six minutes ago', { ago: 6 * minute }],
    ['in six minutes', { ago: -6 * minute }],
    ['for another address', { url: 'https://evil.example/webhooks/globex' }],
    ['without a time', { headers: { 'x-hubspot-request-timestamp': '' } }],
    ['without a signature', { headers: { 'x-hubspot-signature-v3': '' } }],
    [
      'at another time',
      { ago: 2 * minute, headers: { 'x-hubspot-request-timestamp': `${Date.now()}` } },
    ],
  ])('refuses events signed %s', async (_, sent) => {
    const { status, body } = await hubspot([{ objectId: 1 }], sent);
    expect([status, body, await queued()]).toEqual([401, { error: refused }, []]);
  });

  test('does not queue a replayed event again', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() });
    expect((await hubspot([{ objectId: 1 }])).status).toBe(202);
    await clearQueue();
    expect((await hubspot([{ objectId: 1 }])).status).toBe(200);
    vi.useRealTimers();
    expect(await queued()).toEqual([]);
  });

  test('checks the address that the caller used behind a proxy', async () => {
    const path = '/webhooks/globex?a=b%3Ac&d=e';
    const host = new URL(started.url).host;
    const headers = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'crm.example.com, inner' };
    const forwarded = { url: 'https://crm.example.com/webhooks/globex?a=b:c&d=e', path, headers };
    expect((await hubspot([{ objectId: 1 }], forwarded)).status).toBe(401);
    const given = { url: `https://${host}/webhooks/globex?a=b:c&d=e`, path, headers };
    expect((await hubspot([{ objectId: 1 }], given)).status).toBe(202);
    await started.close();
    started = await serve('https://hooks.example.com/crm');
    expect((await hubspot([{ objectId: 2 }], given)).status).toBe(401);
    const known = 'https://hooks.example.com/crm/webhooks/globex';
    expect((await hubspot([{ objectId: 2 }], { url: known })).status).toBe(202);
  });
});

describe('a webhook', () => {
  test.each(['/webhooks/initech', '/webhooks/__proto__', '/webhooks/%20'])(
    'answers 404 on an unknown path: %s',
    async (path) => {
      const { status, body } = await post(path, '{}', {});
      expect([status, body]).toEqual([404, { error: 'there is no such webhook' }]);
    },
  );

  test('accepts at most one megabyte of JSON', async () => {
    const large = await standard({ data: { id: 1 }, more: 'x'.repeat(1024 * 1024) });
    expect([large.status, large.body]).toEqual([
      413,
      { error: 'the body is larger than 1048576 bytes' },
    ]);
    const most = await standard({ data: { id: 1 }, more: 'x'.repeat(1024 * 1024 - 100) });
    expect(most.status).toBe(202);
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', '']) {
      const { status } = await standard({ data: { id: 1 } }, { headers: { 'content-type': type } });
      expect([type, status]).toEqual([type, 415]);
    }
    const charset = { 'content-type': 'application/json; charset=utf-8' };
    const named = await standard({ data: { id: 3 } }, { id: 'msg_3', headers: charset });
    expect(named.status).toBe(202);
  });

  test('remembers a delivery only after it was queued', async () => {
    const gone = new Unavailable('Redis is gone', { acted: 'maybe' });
    vi.spyOn(events, 'add').mockRejectedValueOnce(gone);
    expect((await standard({ data: { id: 1 } })).status).toBe(503);
    expect((await standard({ data: { id: 1 } })).status).toBe(202);
    expect(await queued()).toEqual(['1']);
  });

  test('accepts nothing without Redis, and then what is sent again', async () => {
    await redis.kill();
    const { status, headers, body } = await standard({ data: { id: 1 } });
    expect([status, body]).toEqual([503, { error: 'not now: Redis cannot be asked' }]);
    expect(headers.get('retry-after')).toBe('5');
    await redis.start();
    await untilHolds(async () => expect((await standard({ data: { id: 1 } })).status).toBe(202));
    expect(await queued()).toEqual(['1']);
    expect(await metrics.text()).toContain('reason="unavailable"');
  });
});
