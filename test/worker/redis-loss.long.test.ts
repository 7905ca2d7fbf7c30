import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { CEILING } from '../../src/http/rate-limit/route-budget.ts';
import { countLate } from '../support/rate-limit/limit-scenario.ts';
import { ownRedis, type TestRedis } from '../support/redis.ts';
import { untilHolds } from '../support/waiting.ts';
import {
  startChild,
  startServer,
  startWorker,
  total,
  type Worker,
} from '../support/worker/fleet.ts';

const LIMIT = { requests: 100, windowSeconds: 1 };
const REQUESTS = 600;

type Notice = 'lost' | 'there' | undefined;

/** What a worker was told, without the reasons. */
function toldTo(worker: Worker): Notice[] {
  return worker.result().notices.map((one) => (one === 'there' ? one : 'lost'));
}

const lastOf = (worker: Worker): Notice => toldTo(worker).at(-1);

/** A few more requests, one after the other, until the worker has been told. */
async function sendUntil(worker: Worker, last: Notice): Promise<void> {
  for (let sent = 0; sent < 1000 && lastOf(worker) !== last; sent += 1) await worker.send(1);
}

/** Two workers, what happens to their Redis while they send, and what they are told last. */
async function disturb(happen: (redis: TestRedis) => Promise<void>, last: Notice) {
  const redis = await ownRedis();
  const server = await startServer('fixed', LIMIT);
  const late = countLate(REQUESTS, 2);
  const all = ['a', 'b'].map((name) => startWorker({ url: server.url, redis: redis.url, name }));
  const sent = Promise.all(all.map((one) => one.send(REQUESTS / 2)));
  await untilHolds(() => expect(server.seen()).toBeGreaterThan(60));
  await happen(redis);
  await sent;
  await Promise.all(all.map((one) => sendUntil(one, last)));
  await Promise.all(all.map((one) => one.close()));
  await server.close();
  await redis.close();
  expect(all.map(lastOf)).toEqual([last, last]);
  // Nothing is said twice.
  for (const told of all.map(toldTo))
    expect(told).toEqual(told.map((_, at) => (at % 2 === 0 ? 'lost' : 'there')));
  const { done, refused, notices } = total(all.map((one) => one.result()));
  expect(done).toBeGreaterThanOrEqual(REQUESTS);
  expect(refused).toBeLessThan(REQUESTS * 0.05 + late());
  return notices;
}

test.concurrent.for([
  ['killed', (redis: TestRedis) => redis.kill(), 'lost'],
  ['emptied', (redis: TestRedis) => redis.flush(), undefined],
  [
    'paused, and back',
    async (redis: TestRedis) => {
      redis.pause();
      await pause(2500);
      redis.resume();
    },
    'there',
  ],
  [
    'restarted',
    async (redis: TestRedis) => {
      await redis.kill();
      await pause(300);
      await redis.start();
    },
    'there',
  ],
] as const)('the budget survives Redis being %s', async ([, happen, last]) => {
  await disturb(happen, last);
});

test.concurrent('the budget joins a Redis that is back while nothing waits', async () => {
  const redis = await ownRedis();
  const server = await startServer('fixed', { requests: 100_000, windowSeconds: 1 });
  const worker = startWorker({ url: server.url, redis: redis.url, name: 'at ease' });
  await worker.send(10);
  await redis.kill();
  await sendUntil(worker, 'lost');
  await redis.start();
  await sendUntil(worker, 'there');
  await worker.close();
  await server.close();
  await redis.close();
  expect(toldTo(worker)).toEqual(['lost', 'there']);
});

test.concurrent('a Redis that answers pings only is reported once', async () => {
  const notices = await disturb(async ({ url }) => {
    const redis = new Redis(url);
    await redis.config('SET', 'maxmemory', '1mb');
    redis.disconnect();
  }, 'lost');
  // A line of each worker, without where in the script it happened.
  expect(notices).toHaveLength(2);
  for (const one of notices) expect(one).toMatch(/OOM(?!.*script:)/);
});

test.concurrent('without Redis from the beginning a worker runs alone, and says so once', async () => {
  const server = await startServer('fixed', LIMIT);
  const late = countLate(150);
  const worker = startWorker({ url: server.url, redis: 'redis://127.0.0.1:1', name: 'alone' });
  await worker.send(150);
  await worker.close();
  await server.close();
  const { done, refused, notices } = worker.result();
  expect({ done, said: notices.length }).toEqual({ done: 150, said: 1 });
  expect(refused).toBeLessThanOrEqual(late());
  expect(notices[0]).toMatch(/ECONNREFUSED/);
});

/** One worker here, one in a process of its own that something happens to. */
async function beside(happen: (signal: (name: NodeJS.Signals) => void) => Promise<void>) {
  const redis = await ownRedis();
  const server = await startServer('fixed', LIMIT);
  const reach = { url: server.url, redis: redis.url };
  const late = countLate(800, 2);
  const child = startChild({ ...reach, name: 'child' }, 400);
  const worker = startWorker({ ...reach, name: 'survivor' });
  await untilHolds(() => expect(server.seen()).toBeGreaterThanOrEqual(30));
  const sent = worker.send(400);
  await happen(child.signal);
  await sent;
  await worker.close();
  const theirs = await child.result.catch(String);
  await server.close();
  await redis.close();
  return { own: worker.result(), theirs, late: late() };
}

test.concurrent('permits of a dead worker count as spent', async () => {
  const { own, theirs, late } = await beside(async (signal) => {
    await pause(300);
    signal('SIGKILL');
  });
  expect(own.done).toBe(400);
  expect(own.refused).toBeLessThan(400 * 0.02 + late);
  expect(theirs).toBe('Error: child ended with SIGKILL');
});

test.concurrent('a worker that was stopped comes back late', async () => {
  const { own, theirs, late } = await beside(async (signal) => {
    signal('SIGSTOP');
    await pause(5500);
    signal('SIGCONT');
  });
  if (typeof theirs === 'string') throw new Error(theirs);
  const { done, refused } = total([own, theirs]);
  expect(done).toBe(800);
  // What it held when it was stopped leaves when it goes on.
  expect(refused).toBeLessThanOrEqual(CEILING + late);
});
