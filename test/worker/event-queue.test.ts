/** Events in a real Redis: what is folded, what is kept, what is tried again. */
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/http/system-clock.ts';
import { Unavailable } from '../../src/domain/errors.ts';
import {
  openEventQueue,
  type EventQueue,
  type Heard,
  type Worked,
} from '../../src/compose/queues/event-queue.ts';
import { ownRedis, type TestRedis } from '../support/redis.ts';
import { untilHolds } from '../support/waiting.ts';
import { connectTo } from '../support/worker/connections.ts';
import { playsAll } from '../support/extent.ts';

let redis: TestRedis;
const opened: EventQueue[] = [];
const held: PromiseWithResolvers<Worked>[] = [];
beforeAll(async () => void (redis = await ownRedis()));
afterEach(async () => {
  const closing = opened.splice(0).map(async (queue) => queue.close());
  for (const hold of held.splice(0)) hold.resolve('done');
  await Promise.all(closing);
  await redis.flush();
});
afterAll(async () => redis.close());

const until = async (holds: () => boolean | Promise<boolean>): Promise<void> =>
  untilHolds(async () => expect(await holds()).toBe(true));

function open(mirror = 'acme'): EventQueue {
  const sign = (id: string): string => `signed ${id}`;
  const connections = connectTo(redis.url);
  const queue = openEventQueue({ mirror, clock: systemClock, connections }, sign);
  opened.push(queue);
  return queue;
}

/** Every record that is worked on; each waits for `let(…)`, unless `answer` says how it ends. */
function serve(queue: EventQueue, answer?: (id: string) => Worked, options = {}) {
  const worked: string[] = [];
  const failures: unknown[] = [];
  const given = {
    concurrency: 4,
    failed: (error: unknown) => failures.push(error),
    ...options,
  };
  queue.serve(async (id) => {
    worked.push(id);
    if (answer) return answer(id);
    const hold = Promise.withResolvers<Worked>();
    held.push(hold);
    return hold.promise;
  }, given);
  return { worked, failures, let: (end: Worked) => held.shift()?.resolve(end) };
}

const nothing = { waiting: 0, active: 0, delayed: 0 };
const isEmpty = async (queue: EventQueue) =>
  until(async () => JSON.stringify(await queue.counts()) === JSON.stringify(nothing));

test('hundreds of events of one record are one job, on any number of machines', async () => {
  const [one, other] = [open(), open()];
  const began = performance.now();
  for (let n = 0; n < 10; n += 1) await one.add(Array.from({ length: 50 }, () => 'a:1'));
  await Promise.all(Array.from({ length: 100 }, async () => other.add(['a:1'])));
  const { worked } = serve(one, () => 'done');
  await isEmpty(one);
  // Those that came later than 300 ms after the first, when that was worked on, are another one.
  const most = Math.ceil((performance.now() - began) / 300);
  expect(worked.length).toBeLessThanOrEqual(most);
  expect(new Set(worked)).toEqual(new Set(['a:1']));
});

test('a job is due a moment after its first event, and no earlier', async () => {
  const queue = open();
  const times: number[] = [];
  const began = performance.now();
  await queue.add(['a']);
  await queue.add(['a']);
  serve(queue, () => {
    times.push(performance.now());
    return 'done';
  });
  await isEmpty(queue);
  expect(times).toHaveLength(1);
  expect(times[0]! - began).toBeGreaterThan(290);
});

test('events during the work are one more job, after it', async () => {
  const queue = open();
  const { worked, let: end } = serve(queue);
  await queue.add(['a']);
  await until(() => worked.length === 1);
  await Promise.all(Array.from({ length: 100 }, async () => queue.add(['a'])));
  expect(worked).toHaveLength(1);
  end('done');
  await until(() => worked.length === 2);
  await queue.add(['a']);
  end('done');
  await until(() => worked.length === 3);
  end('done');
  await isEmpty(queue);
  expect(worked).toEqual(['a', 'a', 'a']);
});

test('records are processed concurrently, whatever their ids look like', async () => {
  const queue = open();
  const ids = ['1', 'a:b:c', '*', ' ', 'é'.repeat(1000), '{x}', '1'];
  await queue.add(ids);
  const { worked, let: end } = serve(queue, undefined, { concurrency: 10 });
  await until(() => worked.length === 6);
  expect(worked.toSorted()).toEqual([...new Set(ids)].toSorted());
  ids.forEach(() => end('done'));
  await isEmpty(queue);
});

test.runIf(playsAll)('tens of thousands of events fit into one call', async () => {
  const queue = open();
  await queue.add(Array.from({ length: 20_000 }, (_, n) => String(n)));
  expect(await queue.counts()).toEqual({ ...nothing, delayed: 20_000 });
  expect(await queue.lagMs()).toBeGreaterThan(0);
});

test('only the id is stored', async () => {
  const queue = open();
  await queue.add(['4711']);
  await queue.remember('msg_1');
  const client = new Redis(redis.url);
  expect(await client.hget('crm-mirror:events-acme:1', 'data')).toBe('{"id":"4711"}');
  const [key] = await client.keys('crm-mirror:acme:delivery:*');
  expect(key).not.toContain('msg_1');
  const leftMs = await client.pttl(key!);
  client.disconnect();
  expect([leftMs > 10 * 60_000, leftMs <= 11 * 60_000]).toEqual([true, true]);
});

test('an erasure is a job of its own, one for any number of events', async () => {
  const queue = open();
  await queue.add(['4711', 'b']);
  await queue.add(['4711', '4711'], 'erased');
  await queue.add(['4711'], 'erased');
  expect(await queue.counts()).toEqual({ ...nothing, delayed: 3 });
  const client = new Redis(redis.url);
  expect(await client.hget('crm-mirror:events-acme:3', 'data')).toBe(
    '{"id":"4711","erased":"signed 4711"}',
  );
  client.disconnect();
  const worked: string[] = [];
  let isAway = true;
  const work = async (id: string, heard: Heard, signature: string): Promise<Worked> => {
    worked.push(`${id} ${heard} ${signature}`.trim());
    if (heard === 'changed' || !isAway) return 'done';
    isAway = false;
    return 'again';
  };
  queue.serve(work, { concurrency: 4, failed: (error) => expect.unreachable(String(error)) });
  await isEmpty(queue);
  expect(worked.toSorted()).toEqual([
    '4711 changed',
    '4711 erased signed 4711',
    '4711 erased signed 4711',
    'b changed',
  ]);
});

test.runIf(playsAll)(
  'a job that cannot be done now is retried less and less often, with later events',
  async () => {
    const queue = open();
    const times: number[] = [];
    let isBack = false;
    const { worked, failures } = serve(queue, () => {
      times.push(performance.now());
      if (times.length === 2) throw new Error('ann@example.com');
      return isBack ? 'done' : 'again';
    });
    await queue.add(['a']);
    await until(() => times.length === 2);
    await queue.add(['a', 'a']);
    await until(() => times.length === 3);
    isBack = true;
    const client = new Redis(redis.url);
    const told = JSON.stringify(await client.hgetall('crm-mirror:events-acme:1'));
    client.disconnect();
    expect(told).not.toContain('example.com');
    await isEmpty(queue);
    expect(worked).toEqual(['a', 'a', 'a', 'a']);
    expect(failures).toEqual([new Error('ann@example.com')]);
    const waits = times.slice(1).map((time, n) => time - times[n]!);
    const short = waits.filter((wait, n) => wait < 1000 * 2 ** n - 50);
    expect([waits.length, short]).toEqual([3, []]);
  },
);

test('the age of the oldest counts waiting, active and retried jobs', async () => {
  const queue = open();
  expect(await queue.lagMs()).toBeUndefined();
  const began = Date.now();
  await queue.add(['a']);
  const added = Date.now();
  const { worked, let: end } = serve(queue, undefined, { concurrency: 1 });
  await until(() => worked.length === 1);
  await queue.add(['b']);
  const { waiting, active, delayed } = await queue.counts();
  expect({ active, others: waiting + delayed }).toEqual({ active: 1, others: 1 });
  const expectLag = async () => {
    const least = Date.now() - added;
    const lag = await queue.lagMs();
    expect(lag).toBeGreaterThanOrEqual(least - 5);
    expect(lag).toBeLessThanOrEqual(Date.now() - began + 5);
  };
  await expectLag();
  end('again');
  await until(() => worked.length === 2);
  await expectLag();
});

test('a remembered delivery is known to every process, in its own mirror', async () => {
  const [one, other, elsewhere] = [open(), open(), open('globex')];
  expect(await one.knows('msg_1')).toBe(false);
  await one.remember('msg_1');
  await one.remember('msg_1');
  expect(await other.knows('msg_1')).toBe(true);
  expect(await other.knows('msg_2')).toBe(false);
  expect(await elsewhere.knows('msg_1')).toBe(false);
});

test('closing waits for active jobs', async () => {
  const queue = open();
  const { worked, let: end } = serve(queue);
  await queue.add(['a']);
  await until(() => worked.length === 1);
  let isClosed = false;
  const closing = queue.close().then(() => (isClosed = true));
  const other = open();
  await other.add(['b']);
  expect(isClosed).toBe(false);
  end('done');
  await closing;
  expect(await other.counts()).toEqual({ ...nothing, delayed: 1 });
});

test('without Redis events are refused at once, and accepted when it is back', async () => {
  await redis.kill();
  const queue = open();
  // It answers while Redis is away: nobody waits for it to come back.
  const expectRefused = async () => {
    const asked = [queue.add(['a']), queue.remember('m'), queue.knows('m'), queue.lagMs()];
    for (const one of await Promise.allSettled([...asked, queue.counts()])) {
      expect(one.status === 'rejected' && one.reason).toBeInstanceOf(Unavailable);
    }
  };
  await expectRefused();
  const { worked } = serve(queue, () => 'done');
  await redis.start();
  await untilHolds(async () => queue.add(['a']));
  await until(() => worked.length === 1);
  // Redis hangs: the answer is unknown, and nobody is kept waiting.
  redis.pause();
  await expectRefused();
  redis.resume();
  await until(async () =>
    queue.add(['b']).then(
      () => true,
      () => false,
    ),
  );
  await until(() => worked.includes('b'));
  await redis.kill();
  await expectRefused();
  await queue.close();
  await redis.start();
});
