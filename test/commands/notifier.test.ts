/** Notices over real HTTP: signed, told once, tried again, and in nobody's way. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { Webhook } from 'standardwebhooks';
import { loadConfig } from '../../src/config/load-config.ts';
import { createNotifier } from '../../src/worker/notifications/webhook-notifier.ts';
import type { Notice } from '../../src/cli/status/trouble-notice.ts';
import { ownRedis } from '../support/redis.ts';
import { quickClock } from '../support/engine/engine-world.ts';
import { ann, bob, mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';
import { start, until } from '../support/commands/worker-processes.ts';
import { untilHolds } from '../support/waiting.ts';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

interface Heard {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** Somebody's server, which answers with these statuses, one after the other, and then with 204. */
async function receiver(...statuses: number[]) {
  const heard: Heard[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => void (body += chunk.toString()));
    request.on('end', () => {
      heard.push({ path: request.url ?? '', headers: request.headers, body });
      response.writeHead(statuses.shift() ?? 204).end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const bound = server.address();
  const port = typeof bound === 'object' && bound ? bound.port : 0;
  return { heard, url: `http://127.0.0.1:${port}/hooks/crm?to=ops` };
}

/** A mirror of which nobody has been told anything yet. */
async function telling(url: string) {
  const world = await mirrored();
  world.config({ notices: { url, secret } });
  const told: { notice: Notice | undefined; why: string | undefined }[] = [];
  const stop = new AbortController();
  const shell = { stop: stop.signal, abort: new AbortController().signal };
  const log = { noticed: (notice?: Notice, why?: string) => void told.push({ notice, why }) };
  const open = () => {
    const options = { shell, log, clock: quickClock(), random: () => 0.5 };
    return createNotifier(loadConfig(world.file, {}), options);
  };
  const begin = () => {
    const notifier = open();
    if (!notifier) throw new Error('nobody is to be told');
    onTestFinished(async () => notifier.close());
    return notifier;
  };
  return { world, told, stop, open, begin };
}

const types = (heard: readonly Heard[]) => heard.map(({ body }) => JSON.parse(body).type);

/** The platform answers every listing with this status. */
const refusing = (world: Mirrored, status: number) =>
  world.server.fail(({ path }) => path.startsWith('/api/contacts/list'), { is: 'answer', status });

test('reports the first failure and the recovery, signed and without an address', async () => {
  const { heard, url } = await receiver();
  const { world, told, begin } = await telling(url);
  const notifier = begin();
  const fault = refusing(world, 403);
  for (let nth = 0; nth < 2; nth += 1) {
    expect((await world.call('sync')).code).toBe(1);
    notifier.ran();
    await untilHolds(() => expect(types(heard)).toEqual(['mirror.failed']));
  }
  fault.undo();
  expect((await world.call('sync')).code).toBe(0);
  notifier.ran();
  await untilHolds(() => expect(types(heard)).toEqual(['mirror.failed', 'mirror.recovered']));
  for (const { path, headers, body } of heard) {
    expect(path).toBe('/hooks/crm?to=ops');
    const single = Object.fromEntries(Object.entries(headers).map(([k, v]) => [k, String(v)]));
    const event = new Webhook(secret).verify(body, single);
    const data = { mirror: 'world', run: expect.any(String), reason: expect.any(String) };
    expect(event).toMatchObject({ timestamp: expect.any(String), data });
    for (const address of [ann, bob, 'key_live']) expect(body).not.toContain(address);
  }
  expect(new Set(heard.map(({ headers }) => headers['webhook-id'])).size).toBe(2);
  await notifier.close();
  expect(told.map(({ notice, why }) => [notice?.type, why])).toEqual([
    ['mirror.failed', undefined],
    ['mirror.recovered', undefined],
  ]);
});

test('repeats nothing after a restart', async () => {
  const { heard, url } = await receiver();
  const { world, begin } = await telling(url);
  refusing(world, 403);
  for (let nth = 0; nth < 2; nth += 1) {
    const notifier = begin();
    await world.call('sync');
    notifier.ran();
    await notifier.close();
  }
  expect(types(heard)).toEqual(['mirror.failed']);
});

test('retries under the same id when the receiver fails, and again after the next run', async () => {
  const { heard, url } = await receiver(500, 503, 500, 500, 404);
  const { world, told, begin } = await telling(url);
  refusing(world, 403);
  await world.call('sync');
  const notifier = begin();
  notifier.ran();
  await untilHolds(() => expect(told).toHaveLength(1));
  expect(told[0]).toMatchObject({ notice: { type: 'mirror.failed' }, why: /answers 500/ });
  expect(heard).toHaveLength(4);
  expect(new Set(heard.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  notifier.ran();
  await untilHolds(() => expect(told).toHaveLength(2));
  expect(told[1]).toMatchObject({ notice: { type: 'mirror.failed' }, why: undefined });
  expect(heard).toHaveLength(6);
});

test('keeps nobody waiting for an unreachable receiver, and gives up when stopped', async () => {
  const { world, told, stop, begin } = await telling('http://127.0.0.1:1/');
  refusing(world, 403);
  await world.call('sync');
  const notifier = begin();
  notifier.ran();
  stop.abort(new Error('stop'));
  await notifier.close();
  expect(told).toEqual([]);
});

test('reports held changes, and sends nothing without a configured receiver', async () => {
  const { heard, url } = await receiver();
  const { world, begin, open } = await telling(url);
  await world.call('sync');
  const people = Array.from({ length: 300 }, (_, at) => ({ email: `p${at}@x.org`, news: 'yes' }));
  world.people([{ email: ann, news: 'yes' }, ...people]);
  expect((await world.call('sync')).code).toBe(3);
  const notifier = begin();
  notifier.ran();
  await untilHolds(() => expect(types(heard)).toEqual(['mirror.held']));
  expect(JSON.parse(heard[0]?.body ?? '').data.fix).toContain('crm-mirror approve');
  world.config();
  expect(open()).toBeUndefined();
});

test('is called by a worker after a run', async () => {
  const redis = await ownRedis();
  onTestFinished(async () => redis.close());
  const { heard, url } = await receiver();
  const world = await mirrored();
  const notices = { url, secret };
  const schedule = { full: '* * * * * *' };
  const fault = refusing(world, 403);
  const worker = start(world.config({ redis: redis.url, schedule, notices, timeoutMs: 5_000 }));
  await until(() => types(heard).includes('mirror.failed'));
  fault.undo();
  await until(() => types(heard).includes('mirror.recovered'));
  expect(await worker.ends()).toBe(143);
  expect(types(heard)).toEqual(['mirror.failed', 'mirror.recovered']);
});
