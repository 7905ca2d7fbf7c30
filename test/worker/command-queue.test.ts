/** What is handed to a worker, and in which order, on a real Redis. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Clock } from '../../src/domain/clock.ts';
import { explain } from '../../src/compose/output/failure-report.ts';
import { systemClock } from '../../src/http/system-clock.ts';
import {
  handOver,
  serveCommands,
  type HandedOver,
} from '../../src/compose/queues/command-queue.ts';
import { ownRedis, type TestRedis } from '../support/redis.ts';
import { connectTo } from '../support/worker/connections.ts';

let redis: TestRedis;
beforeAll(async () => void (redis = await ownRedis()));
beforeEach(async () => redis.flush());
afterAll(async () => redis.close());

const options = () => ({ url: redis.url, mirror: 'acme', clock: systemClock });
const serve = (work: Parameters<typeof serveCommands>[1]) =>
  serveCommands({ ...options(), connections: connectTo(redis.url) }, work);
const handed = (sealed: string, how: HandedOver['how']): HandedOver => ({
  sealed,
  renew: () => sealed,
  how,
  urgent: false,
  tell: () => undefined,
  signal: new AbortController().signal,
  isServed: async () => true,
});

test('commands that may run beside others do not wait for exclusive ones', async () => {
  const go = Promise.withResolvers<void>();
  let most = 0;
  let atOnce = 0;
  const served = serve(async ({ sealed }) => {
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

test('a command for another process is offered again', async () => {
  let times = 0;
  const served = serve(async () => {
    times += 1;
    return times > 1 ? 'done' : 'elsewhere';
  });
  expect(await handOver(options(), handed('ann', 'beside'))).toBe('done');
  await served.close();
});

test('a caller that waits keeps its command valid, also in the hands of a worker', async () => {
  let times = 0;
  const clock: Clock = {
    ...systemClock,
    sleep: async (ms, stop) => systemClock.sleep(ms / 500, stop),
  };
  const renew = (): string => `renewed ${(times += 1)}`;
  const given = handOver({ ...options(), clock }, { ...handed('first', 'alone'), renew });
  await expect.poll(() => times).toBeGreaterThan(0);
  const served = serve(async ({ sealed, latest }) => {
    expect(sealed).toMatch(/^renewed/);
    await expect.poll(latest).not.toBe(sealed);
    return latest();
  });
  expect(await given).toMatch(/^renewed/);
  await served.close();
});

test.each([
  ['is withdrawn if nobody took it', false, undefined],
  ['may have begun if a worker had taken it', true, expect.stringMatching(/→ run it again$/)],
])('a command whose worker is gone %s', async (_, isTaken, text) => {
  const go = Promise.withResolvers<string>();
  let taken = 0;
  const work = async () => {
    taken += 1;
    return go.promise;
  };
  const clock: Clock = {
    ...systemClock,
    sleep: async (ms, stop) => systemClock.sleep(ms / 500, stop),
  };
  const before = isTaken ? serve(work) : undefined;
  const isServed = async () => isTaken && taken === 0;
  const given = handOver({ ...options(), clock }, { ...handed('all', 'alone'), isServed });
  const failure = isTaken ? { text, code: 75 } : undefined;
  expect(await given.catch(explain)).toEqual(failure && expect.objectContaining(failure));
  go.resolve('done');
  await before?.close();
  if (isTaken) return;
  // The caller does it itself, and a worker that comes later does not.
  const later = serve(work);
  await handOver(options(), handed('ann', 'alone'));
  expect(taken).toBe(1);
  await later.close();
});

test('the caller reads why a command was refused', async () => {
  const served = serve(async () => {
    throw new Error('sealed with another key\ncrm-mirror: all is well');
  });
  const refused = await handOver(options(), handed('ann', 'beside')).catch(explain);
  expect(refused).toMatchObject({
    text: String.raw`sealed with another key\u000acrm-mirror: all is well`,
  });
  await served.close();
});

test('a command that is offered again, because Redis was away, is done once', async () => {
  let times = 0;
  const served = serve(async () => {
    times += 1;
    redis.pause();
    await sleep(6_000);
    redis.resume();
    await sleep(8_000);
    return `run ${times}`;
  });
  expect(await handOver(options(), handed('all', 'alone'))).toBe('run 1');
  expect(times).toBe(1);
  await served.close();
});
