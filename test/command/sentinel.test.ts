/** A worker that looks whether anybody left, as a process of its own on a real Redis. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { ownRedis, type TestRedis } from '../redis.ts';
import { ann, mirrored } from './mirrored.ts';
import { start, until } from './workers.ts';

vi.setConfig({ testTimeout: 60_000 });

let redis: TestRedis;
beforeAll(async () => void (redis = await ownRedis()));
afterAll(async () => redis.close());

test('who unsubscribes is known within seconds, without a run', async () => {
  const world = await mirrored();
  expect((await world.call('sync')).code).toBe(0);
  const schedule = { full: '0 0 1 1 *', sentinel: '* * * * * *' };
  world.config({ redis: redis.url, schedule, timeoutMs: 5_000 });
  const before = world.server.arrived.length;
  const looks = () => world.server.arrived.slice(before).filter(({ path }) => path.endsWith('t=1'));
  const worker = start(world.file);
  await until(() => looks().length >= 2);
  world.emulator.dashboard.unsubscribe(ann);
  await worker.said('"learnt":1');
  expect(await worker.ends()).toBe(143);
  const { json } = await world.call('optouts', '--json');
  expect(json.optOuts).toMatchObject([{ email: ann, channel: '*', cause: 'unsubscribed' }]);
  // One request a look, and two pages once she had left; nothing else.
  const others = world.server.arrived.length - before - looks().length;
  expect(others).toBe(2);
});
