import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { ownRedis, type TestRedis } from '../support/redis.ts';
import { startChild, startServer, startWorker, total } from '../support/worker/fleet.ts';

const LIMIT = { requests: 100, windowSeconds: 1 };
/** Enough for everybody to be still at it when Redis is back. */
const REQUESTS = 600;

/** Two workers, and what happens to their Redis while they are at it. */
async function disturb(happen: (redis: TestRedis) => Promise<void>) {
  const redis = await ownRedis();
  const server = await startServer('fixed', LIMIT);
  const all = ['a', 'b'].map((name) => startWorker({ url: server.url, redis: redis.url, name }));
  const sent = Promise.all(all.map((one) => one.send(REQUESTS / 2)));
  await pause(1000);
  await happen(redis);
  await sent;
  await Promise.all(all.map((one) => one.close()));
  await server.close();
  await redis.close();
  return total(all.map((one) => one.result()));
}

test.concurrent.for([
  ['killed', (redis: TestRedis) => redis.kill(), ['lost', 'lost']],
  ['emptied', (redis: TestRedis) => redis.flush(), []],
  [
    'paused, and back',
    async (redis: TestRedis) => {
      redis.pause();
      await pause(2500);
      redis.resume();
    },
    ['lost', 'lost', 'there', 'there'],
  ],
  [
    'restarted',
    async (redis: TestRedis) => {
      await redis.kill();
      await pause(300);
      await redis.start();
    },
    ['lost', 'lost', 'there', 'there'],
  ],
] as const)('the budget survives Redis being %s', async ([, happen, seen]) => {
  const { done, refused, notices } = await disturb(happen);
  expect(done).toBe(REQUESTS);
  expect(refused).toBeLessThan(REQUESTS * 0.05);
  const states = notices.map((one) => (one === 'there' ? one : 'lost'));
  expect(states.toSorted()).toEqual([...seen].toSorted());
});

test.concurrent('the budget joins a Redis that is back while nothing waits', async () => {
  const redis = await ownRedis();
  const server = await startServer('fixed', { requests: 100_000, windowSeconds: 1 });
  const worker = startWorker({ url: server.url, redis: redis.url, name: 'at ease' });
  const states = () => worker.result().notices.map((one) => (one === 'there' ? one : 'lost'));
  const sendUntil = async (last: string) => {
    for (let sent = 0; sent < 1000 && states().at(-1) !== last; sent += 1) await worker.send(1);
  };
  await worker.send(10);
  await redis.kill();
  await sendUntil('lost');
  await redis.start();
  await sendUntil('there');
  await worker.close();
  await server.close();
  await redis.close();
  expect(states()).toEqual(['lost', 'there']);
});

test.concurrent('a Redis that answers pings only is reported once', async () => {
  const { done, refused, notices } = await disturb(async ({ url }) => {
    const redis = new Redis(url);
    await redis.config('SET', 'maxmemory', '1mb');
    redis.disconnect();
  });
  expect(done).toBe(REQUESTS);
  expect(refused).toBeLessThan(REQUESTS * 0.05);
  // A line of each worker, without where in the script it happened.
  expect(notices).toHaveLength(2);
  for (const one of notices) expect(one).toMatch(/OOM(?!.*script:)/);
});

test.concurrent(
  'without Redis from the beginning a worker runs alone, and says so once',
  async () => {
    const server = await startServer('fixed', LIMIT);
    const worker = startWorker({ url: server.url, redis: 'redis://127.0.0.1:1', name: 'alone' });
    await worker.send(150);
    await worker.close();
    await server.close();
    const { done, refused, notices } = worker.result();
    expect({ done, refused, said: notices.length }).toEqual({ done: 150, refused: 0, said: 1 });
    expect(notices[0]).toMatch(/ECONNREFUSED/);
  },
);

/** One worker here, one in a process of its own that something happens to. */
async function beside(happen: (signal: (name: NodeJS.Signals) => void) => Promise<void>) {
  const redis = await ownRedis();
  const server = await startServer('fixed', LIMIT);
  const reach = { url: server.url, redis: redis.url };
  const child = startChild({ ...reach, name: 'child' }, 400);
  const worker = startWorker({ ...reach, name: 'survivor' });
  while (server.seen() < 30) await pause(20);
  const sent = worker.send(400);
  await happen(child.signal);
  await sent;
  await worker.close();
  const theirs = await child.result.catch(String);
  await server.close();
  await redis.close();
  return { own: worker.result(), theirs };
}

test.concurrent('permits of a dead worker count as spent', async () => {
  const { own, theirs } = await beside(async (signal) => {
    await pause(300);
    signal('SIGKILL');
  });
  expect(own.done).toBe(400);
  expect(own.refused).toBeLessThan(400 * 0.02);
  expect(theirs).toBe('Error: child ended with SIGKILL');
});

test.concurrent('a worker that was stopped comes back late', async () => {
  const { own, theirs } = await beside(async (signal) => {
    signal('SIGSTOP');
    await pause(5500);
    signal('SIGCONT');
  });
  if (typeof theirs === 'string') throw new Error(theirs);
  const { done, refused } = total([own, theirs]);
  expect(done).toBe(800);
  // What it held when it was stopped leaves when it goes on.
  expect(refused).toBeLessThanOrEqual(32);
});
