import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  budgetScript,
  readReply,
  type Message,
  type Reply,
  type Report,
} from '../../src/rate-limit/shared/budget-script.ts';
import { anyRedis } from '../support/redis.ts';

let server: Awaited<ReturnType<typeof anyRedis>>;
let redis: Redis;
beforeAll(async () => {
  server = await anyRedis();
  redis = new Redis(server.url);
});
afterAll(async () => {
  redis.disconnect();
  await server.close();
});

const TTL = 400;
const LIMIT = { limit: 100, window: 300 };

/** The time that the script is told instead of Redis' own, milliseconds since the epoch. */
let now = 1_800_000_000_000;
const script = budgetScript.replace("redis.call('TIME')", '{ ARGV[2], ARGV[3] }');

/** Nothing else moves the clock, but for half a millisecond that each call takes. */
const pass = (ms: number): void => void (now += ms);

function time(): [seconds: number, micros: number] {
  pass(0.5);
  return [Math.floor(now / 1000), Math.floor((now % 1000) * 1000)];
}

test('the script reads the time in one place, which these tests replace', () => {
  expect(script).not.toContain("call('TIME')");
  expect(script).toContain('{ ARGV[2], ARGV[3] }');
});

type Answered = Extract<Report, { is: 'answer' }>;

/** One route of one organization, asked by any client. */
function route() {
  const key = `crm-mirror:budget:{test:${randomUUID()}}`;
  const ask = async (worker: string, message: Partial<Message>): Promise<Reply> => {
    const standard = { reports: [], want: 0, ttl: TTL, reserve: 0, jitter: 0 };
    const text = JSON.stringify({ worker, ...standard, away: false, leaving: false, ...message });
    return readReply(String(await redis.eval(script, 1, key, text, ...time())));
  };
  const lease = (worker: string, want = 16) => ask(worker, { want });
  const report = (worker: string, ...reports: Report[]) => ask(worker, { reports });
  /** So many requests were answered, one after the other; so many are left. */
  const use = async (requests: number, left: number): Promise<void> => {
    for (let at = requests - 1; at >= 0; at -= 1) {
      const { lease: id } = await lease('first', 1);
      await report('first', answer(id, { remaining: left + at }));
    }
  };
  return { key, ask, lease, report, use };
}

function answer(lease: string | undefined, shown: Partial<Answered>): Answered {
  const standard = { ...LIMIT, is: 'answer', n: 1, age: 0, trip: 2, refused: false } as const;
  return { ...standard, lease: lease ?? '', ...shown };
}

const refusal = (lease: string | undefined, retryAfter: number) =>
  answer(lease, { refused: true, remaining: 0, retryAfter });

test('an unknown limit: one probe for the whole fleet, then as its answer says', async () => {
  const { lease, report } = route();
  const probe = await lease('a');
  expect(probe).toMatchObject({ n: 1, workers: 1 });
  for (const worker of ['a', 'b', 'c']) {
    const { n, wait } = await lease(worker);
    expect(n).toBe(0);
    expect(wait).toBeGreaterThan(0);
    expect(wait).toBeLessThan(100);
  }
  const told = await report('a', answer(probe.lease, { remaining: 99 }));
  expect(told).toMatchObject({ ...LIMIT, left: 99, workers: 3, others: 0 });
  expect((await lease('b')).n).toBeGreaterThan(0);
});

test('leased permits never exceed what is left', async () => {
  const { lease, use } = route();
  await use(40, 60);
  let out = 0;
  for (let times = 0; times < 20; times += 1) out += (await lease(`w${times % 4}`)).n;
  expect(out).toBeGreaterThan(20);
  expect(out).toBeLessThanOrEqual(60);
});

test('a share is left for other workers that wait', async () => {
  const { ask, use } = route();
  await use(40, 4);
  await ask('other', { want: 0 });
  await use(1, 3);
  expect((await ask('b', { want: 16 })).n).toBeLessThanOrEqual(2);
});

test('exhausted: wait until a window after the first answer, then one', async () => {
  const { ask, lease, report } = route();
  const { lease: id } = await lease('a');
  await report('a', answer(id, { remaining: 0 }));
  const { n, wait } = await ask('a', { want: 16 });
  expect(n).toBe(0);
  expect(wait).toBeGreaterThan(LIMIT.window - 50);
  expect(wait).toBeLessThan(LIMIT.window + 50);
  pass(wait + 5);
  expect((await ask('a', { want: 16 })).n).toBe(1);
  expect((await ask('b', { want: 16 })).n).toBe(0);
});

test('exhausted: a reset further away than a window is not waited for', async () => {
  const { ask, lease, report } = route();
  const { lease: id } = await lease('a');
  await report('a', answer(id, { remaining: 0, resetIn: 86_400_000 }));
  const { wait } = await ask('a', { want: 16 });
  expect(wait).toBeGreaterThan(LIMIT.window);
  expect(wait).toBeLessThan(LIMIT.window + 1000);
});

test('a trickle of units, even one a window, keeps nobody waiting longer', async () => {
  const { ask, lease, report, use } = route();
  await use(60, 40);
  const { lease: more } = await lease('a', 1);
  pass(30);
  await report('a', answer(more, { remaining: 45 }));
  const { lease: less } = await lease('a', 1);
  await report('a', answer(less, { limit: 1, remaining: 0 }));
  await ask('a', { want: 16 });
  const { n, wait } = await ask('b', { want: 16 });
  expect(n).toBe(0);
  expect(wait).toBeGreaterThan(LIMIT.window / 2);
  expect(wait).toBeLessThan(LIMIT.window + 50);
});

test('beside others, a log is asked again when our own requests no longer count', async () => {
  const { ask, lease, report } = route();
  const use = async (requests: number, left: number): Promise<void> => {
    for (let at = requests - 1; at >= 0; at -= 1) {
      const { lease: id } = await lease('a', 1);
      await report('a', answer(id, { limit: 20, remaining: left + at }));
    }
  };
  await use(8, 12);
  pass(150);
  // Others take five.
  await use(7, 0);
  pass(150);
  // A window after the first requests eight are free again, and are used.
  await use(8, 1);
  // Nothing comes back bit by bit.
  pass(130);
  await use(1, 0);
  const { n, wait } = await ask('a', { want: 16 });
  expect(n).toBe(0);
  // The seven of the middle count no more after 300 ms; three units would take 45 ms to come back.
  expect(wait).toBeLessThan(20);
});

test('a second answer counts although answers are slower than a lease', async () => {
  const { lease, report } = route();
  const trip = TTL + 100;
  const answered = async (remaining: number) => {
    const { lease: id } = await lease('a', 1);
    pass(trip);
    return report('a', answer(id, { trip, remaining }));
  };
  expect((await answered(99)).left).toBeUndefined();
  expect((await answered(98)).left).toBe(98);
});

test('an expired lease counts as spent, for a window', async () => {
  const { ask, lease, use } = route();
  await use(4, 6);
  const rest = (await lease('dead')).n;
  expect(rest).toBeGreaterThan(0);
  pass(TTL + 10);
  const { left } = await ask('b', { want: 0 });
  expect(left).toBe(6 - rest);
});

test('returned permits are free again, those of a lost answer are not', async () => {
  const { lease, report, use } = route();
  await use(30, 10);
  const one = await lease('a');
  const back = await report('a', { is: 'back', lease: one.lease ?? '', n: one.n });
  expect(back.left).toBe(10);
  const two = await lease('a', 1);
  const lost = await report('a', { is: 'lost', lease: two.lease ?? '', n: 1 });
  expect(lost.left).toBe(9);
});

test('an older answer may lower what is left, and not raise it', async () => {
  const { lease, report, use } = route();
  await use(30, 60);
  const early = await lease('a', 2);
  const late = await lease('b', 1);
  const marked = await report('b', answer(late.lease, { remaining: 20 }));
  expect(marked.left).toBe(20);
  const raised = await report('a', answer(early.lease, { remaining: 59 }));
  expect(raised.left).toBe(20);
  const lowered = await report('a', answer(early.lease, { remaining: 15 }));
  expect(lowered.left).toBe(15);
  const unknown = await report('c', answer('1.2:3', { remaining: 90 }));
  expect(unknown.left).toBe(15);
  const later = await lease('a', 1);
  const fresh = await report('a', answer(later.lease, { remaining: 50 }));
  expect(fresh.left).toBe(50);
});

test('429: nobody sends before the wait is over, which never gets shorter; then one', async () => {
  const { lease, report, use } = route();
  await use(10, 50);
  const [a, b] = [await lease('a', 1), await lease('b', 1)];
  await report('a', refusal(a.lease, 1000));
  const first = await lease('c');
  expect(first).toMatchObject({ n: 0 });
  expect(first.wait).toBeGreaterThan(950);
  await report('b', refusal(b.lease, 400));
  const second = await lease('c');
  expect(second.wait).toBeGreaterThan(first.wait - 100);
  pass(second.wait + 5);
  const [probe, none] = [await lease('a'), await lease('b')];
  expect([probe.n, none.n]).toEqual([1, 0]);
  // Refused again: longer.
  await report('a', refusal(probe.lease, 400));
  expect((await lease('b')).wait).toBeGreaterThan(350);
});

test('the same Retry-After is a different wait for each worker', async () => {
  const waits = [0, 0.9].map(async (jitter) => {
    const { ask, lease } = route();
    const { lease: id } = await lease('a');
    return (await ask('a', { reports: [refusal(id, 1000)], want: 1, jitter })).wait;
  });
  const [least = 0, more = 0] = await Promise.all(waits);
  expect(least).toBeGreaterThan(999);
  expect(more - least).toBeGreaterThan(20);
});

test('emptied, or after an absence: unknown again, one probe', async () => {
  const { key, ask, lease, use } = route();
  await use(10, 50);
  expect((await ask('b', { want: 16, away: true })).n).toBe(1);
  expect((await lease('a')).n).toBe(0);
  await redis.del(key);
  expect((await lease('a')).n).toBe(1);
  expect((await lease('b')).n).toBe(0);
});

test('emptied: what others used before is not ours to use', async () => {
  const { lease, report, use } = route();
  await use(1, 3);
  const { n, lease: id } = await lease('a');
  expect(n).toBeLessThanOrEqual(3);
  await report('a', answer(id, { remaining: 0 }));
  expect((await lease('b')).n).toBe(0);
});

test('a worker that leaves is not counted any more', async () => {
  const { ask } = route();
  await ask('a', {});
  expect((await ask('b', {})).workers).toBe(2);
  await ask('b', { leaving: true });
  expect((await ask('a', {})).workers).toBe(1);
});

test('a reserve is left', async () => {
  const { ask } = route();
  const { lease: id } = await ask('a', { want: 1, reserve: 0.5 });
  const reports = [answer(id, { remaining: 50 })];
  expect(await ask('a', { reports, want: 16, reserve: 0.5 })).toMatchObject({ n: 0, left: 0 });
});

test('without headers: two at once, one more with each successful round', async () => {
  const { lease, report } = route();
  const bare = { limit: undefined, window: undefined, remaining: undefined };
  const { lease: id } = await lease('a');
  await report('a', answer(id, bare));
  const two = await lease('a');
  expect(two.n).toBe(2);
  await report('a', answer(two.lease, bare), answer(two.lease, bare));
  expect((await lease('a')).n).toBe(3);
});

test('one key, which expires, with numbers and random names in it', async () => {
  const { key, use } = route();
  await use(20, 50);
  expect(await redis.keys(`*${key.slice(-37)}*`)).toEqual([key]);
  const ttl = await redis.pttl(key);
  expect(ttl).toBeGreaterThan(1000);
  expect(ttl).toBeLessThan(5 * 60_000);
  expect(await redis.strlen(key)).toBeLessThan(20_000);
});
