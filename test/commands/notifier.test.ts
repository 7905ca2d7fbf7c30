/** Notices over real HTTP: signed, told once, tried again, and in nobody's way. */
import { expect, onTestFinished, test } from 'vitest';
import { Webhook } from 'standardwebhooks';
import { ownRedis } from '../support/redis.ts';
import { ann, bob, mirrored } from '../support/commands/mirrored-contacts.ts';
import { type Heard, receiver, refusing, reporting } from '../support/commands/notice-receivers.ts';
import { start, until } from '../support/worker/fleet.ts';
import { untilHolds } from '../support/waiting.ts';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

/** A mirror that reports to one signed webhook. */
const telling = async (url: string) => reporting({ url, secret });

const types = (heard: readonly Heard[]) => heard.map(({ body }) => JSON.parse(body).type);

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
  expect(new Set(heard.slice(4).map(({ headers }) => headers['webhook-id'])).size).toBe(1);
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
