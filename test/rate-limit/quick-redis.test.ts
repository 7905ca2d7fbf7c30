/** Which commands count as unanswered. */
import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { QuickRedis } from '../../src/rate-limit/shared/quick-redis.ts';
import { ownRedis } from '../support/redis.ts';

async function connected() {
  const server = await ownRedis();
  onTestFinished(server.close);
  const redis = new QuickRedis(server.url);
  redis.on('error', () => undefined);
  onTestFinished(() => redis.disconnect());
  await once(redis, 'ready');
  return { server, redis };
}

/** As a machine does that sleeps, or whose cores are taken away. */
function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

test('a command is answered although this process stood still for longer than it waits', async () => {
  const { redis } = await connected();
  const answer = redis.ping();
  await new Promise(setImmediate);
  standStill(1_500);
  expect(await answer).toBe('PONG');
});

test('a command fails if Redis does not answer, and later ones are answered', async () => {
  const { redis, server } = await connected();
  server.pause();
  await expect(redis.ping()).rejects.toThrow('Command timed out');
  server.resume();
  expect(await redis.ping()).toBe('PONG');
});
