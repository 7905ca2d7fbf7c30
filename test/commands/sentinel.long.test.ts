/** A worker that looks whether anybody left, as a process of its own on a real Redis. */
import { expect, test } from 'vitest';
import { sharedRedis } from '../support/redis.ts';
import { ann, mirrored } from '../support/commands/mirrored-contacts.ts';
import { start, until } from '../support/worker/fleet.ts';

const redis = await sharedRedis();

test('the worker notices an unsubscribe within seconds, without a run', async () => {
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
  // One request a look, and two pages after the unsubscribe; nothing else.
  const others = world.server.arrived.length - before - looks().length;
  expect(others).toBe(2);
});
