/** What becomes of runs that came due while nobody took them, on a real Redis. */
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/http/system-clock.ts';
import { openRunQueue } from '../../src/worker/queues/run-queue.ts';
import type { Schedule } from '../../src/worker/queues/run-schedule.ts';
import { ownRedis, type TestRedis } from '../support/redis.ts';
import { untilHolds } from '../support/waiting.ts';

let redis: TestRedis;
beforeAll(async () => void (redis = await ownRedis()));
afterAll(async () => redis.close());

const opened = (mirror: string) => {
  const queue = openRunQueue({
    url: redis.url,
    mirror,
    clock: systemClock,
    notice: () => undefined,
  });
  onTestFinished(async () => queue.close());
  return queue;
};
const scheduled = (full: string): Schedule => ({
  patterns: { full, fast: undefined, templates: undefined, sentinel: undefined },
  timezone: 'UTC',
});

/** A pattern that is due once a minute, in two seconds. */
function soon(): string {
  return `${(new Date().getUTCSeconds() + 2) % 60} * * * * *`;
}

test('a run that came due while nobody served the mirror is made up for, once', async () => {
  const schedule = scheduled(soon());
  await opened('acme').follow(schedule);
  await pause(3_000);
  const next = opened('acme');
  await next.follow(schedule);
  const taken: string[] = [];
  next.serve(async (tick) => {
    taken.push(tick);
    return 'over';
  });
  await untilHolds(() => expect(taken).toEqual(['full']));
  await pause(1_000);
  expect(taken).toEqual(['full']);
});

test('another pattern replaces the one before', async () => {
  const queue = opened('beta');
  await queue.follow(scheduled('0 0 1 1 *'));
  await queue.follow(scheduled(soon()));
  const taken: string[] = [];
  queue.serve(async (tick) => {
    taken.push(tick);
    return 'over';
  });
  await untilHolds(() => expect(taken).toEqual(['full']));
});
