/** What is handed to a worker, and in which order, on a real Redis. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/http/system-clock.ts';
import { handOver, serveCommands, type HandedOver } from '../../src/worker/queues/command-queue.ts';
import { ownRedis, type TestRedis } from '../support/redis.ts';

let redis: TestRedis;
beforeAll(async () => void (redis = await ownRedis()));
beforeEach(async () => redis.flush());
afterAll(async () => redis.close());

const options = () => ({ url: redis.url, mirror: 'acme', clock: systemClock });
const handed = (sealed: string, how: HandedOver['how']): HandedOver => ({
  sealed,
  how,
  urgent: false,
  tell: () => undefined,
  signal: new AbortController().signal,
  isServed: async () => true,
});

test('what stands beside others waits for nothing that has to be alone', async () => {
  const go = Promise.withResolvers<void>();
  let most = 0;
  let atOnce = 0;
  const served = serveCommands(options(), async (sealed) => {
    if (sealed !== 'all') return 'forgotten';
    atOnce += 1;
    most = Math.max(most, atOnce);
    await go.promise;
    atOnce -= 1;
    return 'synced';
  });
  const all = Array.from({ length: 6 }, async () => handOver(options(), handed('all', 'alone')));
  await expect.poll(() => atOnce).toBeGreaterThan(0);
  expect(await handOver(options(), handed('ann', 'beside'))).toBe('forgotten');
  go.resolve();
  expect(await Promise.all(all)).toEqual(all.map(() => 'synced'));
  expect(most).toBe(1);
  await served.close();
});

test('what another process is to do is offered again', async () => {
  let times = 0;
  const served = serveCommands(options(), async () => {
    times += 1;
    return times > 1 ? 'done' : 'elsewhere';
  });
  expect(await handOver(options(), handed('ann', 'beside'))).toBe('done');
  await served.close();
});

test('why it was refused is what the caller reads', async () => {
  const served = serveCommands(options(), async () => {
    throw new Error('sealed with another key');
  });
  await expect(handOver(options(), handed('ann', 'beside'))).rejects.toThrow(
    /^sealed with another key$/,
  );
  await served.close();
});
