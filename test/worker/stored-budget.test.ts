/** How processes change one budget in a real Redis. */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/http/system-clock.ts';
import type { FleetBudget } from '../../src/rate-limit/shared/fleet-budget.ts';
import { type Link, openLink } from '../../src/rate-limit/shared/redis-connection.ts';
import { storedBudget } from '../../src/rate-limit/shared/stored-budget.ts';
import { anyRedis } from '../support/redis.ts';

let server: Awaited<ReturnType<typeof anyRedis>>;
let link: Link;
beforeAll(async () => {
  server = await anyRedis();
  const listener = { notice: () => undefined, changed: () => undefined };
  link = openLink({ url: server.url, clock: systemClock, ...listener });
});
afterAll(async () => {
  link.close();
  await server.close();
});

function budgetOf(key: string, worker: string, over = link) {
  return storedBudget({ link: over, key, worker, clock: systemClock, random: Math.random });
}

const newKey = (): string => `budget:{${randomUUID()}}`;
const more = (fleet: FleetBudget) => {
  fleet.limits.sent += 1;
  return { changes: true, sent: fleet.limits.sent };
};

test('no change is lost or made twice, whoever makes it', async () => {
  const key = newKey();
  const all = ['a', 'b', 'c', 'd'].map((worker) => budgetOf(key, worker));
  const changing = all.map(async ({ change }) => {
    for (let times = 0; times < 20; times += 1) expect(await change(more)).toBeDefined();
  });
  await Promise.all(changing);
  expect(await budgetOf(key, 'e').change(more)).toMatchObject({ sent: 81 });
});

test('what changes nothing is not stored', async () => {
  const key = newKey();
  const { change } = budgetOf(key, 'a');
  await change((fleet) => ({ ...more(fleet), changes: false }));
  expect(await change(more)).toMatchObject({ sent: 1 });
});

test('a budget that cannot be read, or is from the future, is replaced', async () => {
  const redis = new Redis(server.url);
  for (const stored of ['', 'a.1\n{"limits":', 'a.1\n{}', 'garbage']) {
    const key = newKey();
    await redis.set(key, stored);
    expect(await budgetOf(key, 'a').change(more)).toMatchObject({ sent: 1 });
  }
  redis.disconnect();
  const key = newKey();
  const { change } = budgetOf(key, 'a');
  await change((fleet) => ({ ...more(fleet), seen: (fleet.seenMs = 60_000) }));
  expect(await change(more)).toMatchObject({ sent: 1 });
});

test('a process that is far from Redis gets its turn beside a busy one', async () => {
  const key = newKey();
  const run: Link['run'] = async (...asked) => {
    await pause(20);
    const answer = await link.run(...asked);
    await pause(20);
    return answer;
  };
  const far = budgetOf(key, 'far', { ...link, run });
  const near = budgetOf(key, 'near');
  const end = new AbortController();
  const busy = (async () => {
    for (let sent = 0; !end.signal.aborted; sent += 1) {
      await near.change(more);
      await pause(5);
    }
  })();
  expect(await far.change(more)).toBeDefined();
  expect(await far.change(more)).toBeDefined();
  end.abort();
  await busy;
});
