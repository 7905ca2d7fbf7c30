/** Which commands count as unanswered. */
import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { QuickRedis } from '../../../src/http/rate-limit/shared/quick-redis.ts';
import { ownRedis } from '../../support/redis.ts';

async function connected() {
  const server = await ownRedis();
  onTestFinished(server.close);
  const redis = new QuickRedis(server.url);
  redis.on('error', () => undefined);
  onTestFinished(() => redis.disconnect());
  await once(redis, 'ready');
  return { server, redis };
}

/** Blocks this thread, as a sleeping or starved machine does. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

test('a command is answered although this process was suspended for longer than its time limit', async () => {
  const { redis } = await connected();
  const answer = redis.ping();
  await new Promise(setImmediate);
  block(1_500);
  expect(await answer).toBe('PONG');
});

test('a command fails if Redis does not answer, and later ones are answered', async () => {
  const { redis, server } = await connected();
  server.pause();
  await expect(redis.echo('late')).rejects.toThrow('Command timed out');
  server.resume();
  expect(await redis.echo('next')).toBe('next');
});
