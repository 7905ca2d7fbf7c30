/** How processes share one budget by a log in a real Redis. */
import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { observe } from '../../src/http/rate-limit-headers.ts';
import { systemClock } from '../../src/http/system-clock.ts';
import { type BudgetLog, budgetLog } from '../../src/http/rate-limit/shared/budget-log.ts';
import {
  newFleet,
  type Message,
  type Report,
} from '../../src/http/rate-limit/shared/fleet-budget.ts';
import { type Link, openLink } from '../../src/http/rate-limit/shared/redis-connection.ts';
import { sharedBudgets } from '../../src/http/rate-limit/shared/shared-budget.ts';
import { untilHolds } from '../support/waiting.ts';
import { anyRedis } from '../support/redis.ts';

let server: Awaited<ReturnType<typeof anyRedis>>;
let link: Link;
let redis: Redis;
beforeAll(async () => {
  server = await anyRedis();
  redis = new Redis(server.url);
  const listener = { notice: () => undefined, changed: () => undefined };
  link = openLink({ url: server.url, clock: systemClock, ...listener });
});
afterAll(async () => {
  link.close();
  redis.disconnect();
  await server.close();
});

const newKey = (): string => `budget:{${randomUUID()}}`;

function messageOf(worker: string, more: Partial<Message> = {}): Message {
  const usual = { reports: [], reserve: 0, jitter: 0 };
  return { worker, want: 0, ...usual, away: false, leaving: false, ...more };
}

/** A response of a limit of 1,000 a minute. */
function answer(lease: string | undefined, remaining: number): Report {
  const headers = {
    'x-ratelimit-limit': '1000',
    'x-ratelimit-remaining': `${remaining}`,
    'x-ratelimit-window': '60',
  };
  const seen = observe(200, headers, 0);
  return { is: 'answer', lease: lease ?? '', n: 1, ageMs: 0, tripMs: 5, seen };
}

/** A budget of which one response is known. */
async function known(key: string): Promise<BudgetLog> {
  const log = budgetLog({ link, key });
  const probe = await log.send(messageOf('first', { want: 1 }));
  await log.send(messageOf('first', { reports: [answer(probe?.lease, 999)] }));
  return log;
}

/** Takes permits one by one, and reports each of them. */
async function use(log: BudgetLog, worker: string, times: number): Promise<void> {
  for (let at = 0; at < times; at += 1) {
    const reply = await log.send(messageOf(worker, { want: 1 }));
    if (!reply || reply.n === 0) continue;
    const left = reply.limit.left ?? 0;
    await log.send(messageOf(worker, { reports: [answer(reply.lease, left - 1)] }));
  }
}

test('all processes see the same budget, whoever changed it', async () => {
  const key = newKey();
  await known(key);
  const all = ['a', 'b', 'c', 'd'].map((worker) => ({ worker, log: budgetLog({ link, key }) }));
  await Promise.all(all.map(({ worker, log }) => use(log, worker, 20)));
  const seen: unknown[] = [];
  for (const { worker, log } of all) seen.push((await log.send(messageOf(worker)))?.limit);
  expect(new Set(seen.map((limit) => JSON.stringify(limit))).size).toBe(1);
  expect(seen[0]).toMatchObject({ limit: 1000, windowMs: 60_000 });
});

test('a permit is granted once', async () => {
  const key = newKey();
  await known(key);
  const asking = ['a', 'b', 'c'].map((worker) => {
    return budgetLog({ link, key }).send(messageOf(worker, { want: 16 }));
  });
  const replies = await Promise.all(asking);
  const leases = replies.flatMap((reply) => (reply?.n ? [reply.lease] : []));
  expect(new Set(leases).size).toBe(leases.length);
  // A slow start: two at once.
  expect(replies.reduce((sum, reply) => sum + (reply?.n ?? 0), 0)).toBe(2);
});

test('a message takes one round trip', async () => {
  const key = newKey();
  let trips = 0;
  const run: Link['run'] = (...asked) => {
    trips += 1;
    return link.run(...asked);
  };
  const other = await known(key);
  const log = budgetLog({ link: { ...link, run }, key });
  for (let at = 0; at < 10; at += 1) {
    await other.send(messageOf('first'));
    expect(await log.send(messageOf('a'))).toBeDefined();
  }
  expect(trips).toBe(10);
});

async function limits(...logs: BudgetLog[]): Promise<unknown[]> {
  const found: unknown[] = [];
  for (const log of logs) found.push((await log.send(messageOf('first')))?.limit);
  return found;
}

/** More characters than a log has without a copy. */
const much = Array.from({ length: 200 }, () => answer('', 900));

test('the log stays short, and a process begins with the newest copy', async () => {
  const key = newKey();
  const log = await known(key);
  const late = budgetLog({ link, key });
  await late.send(messageOf('late'));
  for (let at = 0; at < 20; at += 1) await log.send(messageOf('first', { reports: much }));
  expect(await redis.xlen(key)).toBeLessThan(5);
  const [first, ...others] = await limits(log, late, budgetLog({ link, key }));
  expect(first).toMatchObject({ limit: 1000 });
  expect(others).toEqual([first, first]);
});

test('several processes for which a copy is due add one', async () => {
  const key = newKey();
  const all = [await known(key), budgetLog({ link, key }), budgetLog({ link, key })];
  await all[0]?.send(messageOf('first', { reports: much }));
  await Promise.all(all.map((log) => log.send(messageOf('first'))));
  await limits(...all);
  const entries = await redis.xrange(key, '-', '+');
  expect(entries.filter(([, fields]) => fields[5] !== '')).toHaveLength(1);
});

test('a copy of a lost log is not added to the new one', async () => {
  const key = newKey();
  const old = await known(key);
  await old.send(messageOf('first', { reports: much }));
  await redis.del(key);
  const other = budgetLog({ link, key });
  await other.send(messageOf('other', { want: 1 }));
  const [first, ...others] = await limits(old, other, budgetLog({ link, key }));
  expect(first).not.toHaveProperty('limit', 1000);
  expect(others).toEqual([first, first]);
});

test('what cannot be read is skipped', async () => {
  const key = newKey();
  const log = await known(key);
  for (const message of ['', '{', '{"worker":1}'])
    await redis.xadd(key, '*', 'at', '1', 'message', message, 'copy', '{');
  for (const one of [log, budgetLog({ link, key })])
    expect((await one.send(messageOf('a')))?.limit).toMatchObject({ limit: 1000 });
});

test('after the log is lost, nothing is known, for all processes', async () => {
  const key = newKey();
  const logs = [await known(key), budgetLog({ link, key })];
  for (const log of logs) expect((await log.send(messageOf('a')))?.limit.limit).toBe(1000);
  await redis.del(key);
  for (const log of logs) expect((await log.send(messageOf('a')))?.limit.limit).toBeUndefined();
});

test('a clock that was set back is begun anew', async () => {
  const key = newKey();
  const hours = 3_600_000;
  const inFuture = (Date.now() + hours) / 1000;
  const message = JSON.stringify(messageOf('a'));
  await redis.xadd(key, '*', 'at', `${inFuture}`, 'message', message, 'copy', '');
  const reply = await budgetLog({ link, key }).send(messageOf('b', { want: 1 }));
  expect(reply).toMatchObject({ n: 1, workers: 1 });
});

describe('a log that forbids every request for days', () => {
  /** A budget whose minutes pass when a test says so. */
  async function forbidden() {
    const organization = randomUUID();
    const key = `crm-mirror:limit:5:{${organization}:route}`;
    await redis.del(key);
    const message = JSON.stringify(messageOf('a'));
    const fleet = newFleet(Date.now());
    fleet.limits.blocked = { sinceMs: 0, untilMs: 2 * 86_400_000, at: 0 };
    const copy = JSON.stringify({ after: '0-1', fleet });
    await redis.xadd(key, '*', 'at', `${Date.now() / 1000}`, 'message', message, 'copy', copy);
    let ahead = 0;
    const monotonic = () => performance.now() + ahead;
    const clock = { ...systemClock, monotonic };
    const own = { url: server.url, organization, worker: 'b', clock, random: () => 0 };
    const { budgetOf, close } = sharedBudgets(own);
    onTestFinished(close);
    const budget = budgetOf('route', () => undefined);
    const ask = () => budget.decide(monotonic(), 1);
    await untilHolds(() =>
      expect(ask()).toMatchObject({ leave: 0, waitMs: expect.closeTo(6e4, -3) }),
    );
    return { key, ask, pass: (ms: number) => void (ahead += ms) };
  }

  test('forbids nothing a minute after it was removed', async () => {
    const { key, ask, pass } = await forbidden();
    await redis.del(key);
    pass(60_000);
    await untilHolds(() => expect(ask().leave).toBe(1));
  });

  test('is begun anew after an hour', async () => {
    const { ask, pass } = await forbidden();
    pass(3_600_000);
    await untilHolds(() => expect(ask().leave).toBe(1));
  });
});

test('the log expires, and a newcomer does not make that earlier', async () => {
  const key = newKey();
  const log = await known(key);
  const soonMs = await redis.pttl(key);
  expect(soonMs).toBeGreaterThan(120_000);
  expect(soonMs).toBeLessThan(10 * 60_000);
  const seen = observe(429, { 'retry-after': '7200' }, 0);
  const reports: Report[] = [{ is: 'answer', lease: '', n: 1, ageMs: 0, tripMs: 5, seen }];
  await log.send(messageOf('first', { reports }));
  await budgetLog({ link, key }).send(messageOf('new'));
  expect(await redis.pttl(key)).toBeGreaterThan(7_200_000);
});
