/**
 * Which worker has a mirror: the table of src/compose/queues/lock-store.ts, on a real Redis.
 */
import { randomBytes } from 'node:crypto';
import { createMirrorLock } from '../../src/worker/open-mirror.ts';
import { cpSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { Busy } from '../../src/domain/errors.ts';
import { systemClock } from '../../src/http/system-clock.ts';
import { openSnapshot } from '../../src/store/open-snapshot.ts';
import {
  type Candidate,
  type LockStore,
  openLockStore,
} from '../../src/compose/queues/lock-store.ts';
import {
  aliveMs,
  createNodeHeartbeat,
  fleetKeys,
} from '../../src/compose/queues/node-heartbeat.ts';
import { connectQuickly, type Quick } from '../../src/compose/queues/redis-connections.ts';
import { untilHolds, virtualClock } from '../support/waiting.ts';
import { ownRedis, type TestRedis } from '../support/redis.ts';
import { scratch } from '../support/sources/source-reading.ts';

let redis: TestRedis;
let quick: Quick;
beforeAll(async () => {
  redis = await ownRedis();
  quick = connectQuickly(redis.url);
  await quick.ask(() => quick.redis.ping());
});
beforeEach(async () => redis.flush());
afterAll(async () => {
  quick.close();
  await redis.close();
});

const alive = async (name: string) =>
  quick.redis.zadd(fleetKeys.nodes, Number((await quick.redis.time())[0]) * 1_000, name);
/** A worker that has shown that it is alive. */
const worker = (name: string): LockStore => {
  const store = openLockStore(quick, 'acme', name);
  return {
    ...store,
    async claim(candidate) {
      await alive(name);
      return store.claim(candidate);
    },
  };
};
/** What anybody sees of the mirror. */
const isServed = async () => openLockStore(quick, 'acme').isServed();
const first: Candidate = {
  snapshot: 's',
  generation: 5,
  restored: false,
  acceptLost: false,
  stoodBy: false,
};

describe.each([
  ['the same snapshot, opened since', { generation: 6 }, 'home'],
  ['the same snapshot, of the same generation', {}, 'older'],
  ['an older copy of it', { generation: 3 }, 'older'],
  ['a backup of it, put back', { generation: 3, restored: true }, 'home'],
  ['its last backup, put back', { generation: 6, restored: true }, 'home'],
  ['another snapshot', { snapshot: 't', generation: 9 }, 'older'],
  ['another one, put back', { snapshot: 't', generation: 9, restored: true }, 'older'],
  ['another one, aloud', { snapshot: 't', generation: 9, acceptLost: true }, 'home'],
] as const)('a mirror claimed beside a worker: %s', (_, change, gone) => {
  test('is refused while that one is alive', async () => {
    await worker('one').claim(first);
    // The other worker may have closed the mirror, so its free lease proves nothing.
    expect(await worker('two').isServed()).toBe(true);
    expect((await worker('two').claim({ ...first, ...change }))[0]).toBe('taken');
  });

  test('is granted or refused as expected after that one has ended, or died', async () => {
    await worker('one').claim(first);
    await worker('one').leave();
    expect((await worker('two').claim({ ...first, ...change }))[0]).toBe(gone);
    await redis.flush();
    await worker('one').claim(first);
    await quick.redis.zadd(fleetKeys.nodes, Date.now() - aliveMs - 1_000, 'one');
    expect(await isServed()).toBe(false);
    expect((await worker('two').claim({ ...first, ...change }))[0]).toBe(gone);
  });
});

test('a restored snapshot outranks the one it replaces', async () => {
  await worker('one').claim(first);
  await worker('one').leave();
  const claim = await worker('two').claim({ ...first, generation: 3, restored: true });
  expect(claim).toEqual(['home', 6]);
  await worker('two').leave();
  // The machine that was lost comes back, and opens its own once more.
  expect((await worker('one').claim({ ...first, generation: 6 }))[0]).toBe('older');
});

test.each(['9007199254740991', '2000000000', 'inf'])(
  'a generation of %s is refused as forged, and once it was accepted, it has no effect any more',
  async (forged) => {
    await worker('one').claim(first);
    await worker('one').leave();
    await quick.redis.hset('crm-mirror:acme:{home}', 'generation', forged);
    const claim = async (more: Partial<Candidate>) => {
      const told = await worker('two').claim({ ...first, ...more });
      await worker('two').leave();
      return told;
    };
    expect((await claim({ generation: 6, restored: true }))[0]).toBe('forged');
    expect(await claim({ generation: 7, acceptLost: true })).toEqual(['home', 7]);
    expect(await claim({ generation: 8 })).toEqual(['home', 8]);
    expect(await claim({ generation: 9 })).toEqual(['home', 9]);
  },
);

test('a generation that is no number counts as none', async () => {
  await worker('one').claim(first);
  await worker('one').leave();
  await quick.redis.hset('crm-mirror:acme:{home}', 'generation', 'x');
  expect(await worker('two').claim(first)).toEqual(['home', 5]);
});

test('a worker that loses the mirror learns it, and one that has it is known', async () => {
  const [one, two] = [worker('one'), worker('two')];
  expect(await isServed()).toBe(false);
  await one.claim(first);
  expect([await isServed(), await one.isServed()]).toEqual([true, false]);
  expect(await one.keep(first)).toBe(true);
  await quick.redis.zrem(fleetKeys.nodes, 'one');
  const later = { ...first, generation: 6 };
  await two.claim(later);
  expect([await one.keep(first), await two.keep(later)]).toEqual([false, true]);
  await one.leave();
  expect(await isServed()).toBe(true);
  // Another worker has had the mirror meanwhile.
  await two.leave();
  expect([await isServed(), await one.keep(first)]).toEqual([false, false]);
});

test('a worker claims its own mirror again', async () => {
  const one = worker('one');
  expect(await one.claim(first)).toEqual(['home', 5]);
  expect(await one.claim({ ...first, generation: 6 })).toEqual(['home', 6]);
});

/** A heartbeat whose beats come as fast as the test asks for the time. */
function beating(name: string) {
  const clock = {
    ...systemClock,
    sleep: async (ms: number, signal?: AbortSignal) =>
      systemClock.sleep(ms > 60_000 ? ms : 20, signal),
  };
  const node = createNodeHeartbeat(quick, name, clock);
  onTestFinished(() => node.close());
  return node;
}

test.each([
  ['Redis was emptied', async () => redis.flush()],
  ['it stood still', async () => void (await quick.redis.zadd(fleetKeys.nodes, 1, 'slow'))],
])('a process checks its locks when %s, and all that wait for it', async (_, happen) => {
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const node = beating('slow');
  await node.begun;
  const doubts = node.doubts();
  let told = 0;
  for (let nth = 0; nth < 2; nth += 1) {
    void node.doubted(doubts, stop.signal).then(() => (told += 1));
  }
  await pause(200);
  expect(told).toBe(0);
  await happen();
  await untilHolds(() => expect(told).toBe(2));
  // It is alive again, and who asks later does not wait for this doubt.
  await untilHolds(async () =>
    expect(Number(await quick.redis.zscore(fleetKeys.nodes, 'slow'))).toBeGreaterThan(1),
  );
  await node.doubted(doubts, stop.signal);
});

test('an emptied Redis receives the lock again', async () => {
  await worker('one').claim(first);
  await redis.flush();
  await alive('one');
  expect(await worker('one').keep(first)).toBe(true);
  expect((await worker('two').claim({ ...first, snapshot: 't' }))[0]).toBe('taken');
});

test('a worker on standby is not the first to claim in an emptied Redis', async () => {
  expect((await worker('two').claim({ ...first, stoodBy: true }))[0]).toBe('untold');
  expect((await worker('two').claim(first))[0]).toBe('home');
});

test('no worker claims anything without Redis', async () => {
  const store = openLockStore(quick, 'acme', 'one');
  await redis.kill();
  await expect(store.claim(first)).rejects.toThrow('Redis cannot be asked');
  await redis.start();
  await untilHolds(async () => expect(await store.isServed()).toBe(false));
  expect((await worker('one').claim(first))[0]).toBe('home');
});

test('a worker on a copy of the snapshot never displaces the worker that serves the mirror', async () => {
  const folder = await scratch();
  const open = (name: string) => {
    const opened = openSnapshot(join(folder, name));
    opened.fence();
    return opened;
  };
  const side = (name: string) =>
    createMirrorLock(worker(name), {
      mirror: 'acme',
      path: join(folder, 'used.sqlite'),
      acceptLost: false,
      clock: systemClock,
      random: randomBytes,
    });
  const [one, two] = [side('one'), side('two')];
  const used = open('used.sqlite');
  await one.claim(used);
  used.transaction(() => used.meta.set('any', 'thing'));
  cpSync(join(folder, 'used.sqlite'), join(folder, 'copy.sqlite'));
  cpSync(join(folder, 'used.sqlite-wal'), join(folder, 'copy.sqlite-wal'));

  // As a worker on standby does, again and again.
  for (let time = 0; time < 3; time += 1) {
    const copy = open('copy.sqlite');
    await expect(two.claim(copy)).rejects.toThrow('another worker serves acme');
    expect(copy.generation()).toBe(used.generation());
    copy.close();
  }
  expect(await one.keep()).toBe(true);
  used.close();
});

test('a worker on standby claims an emptied Redis after ten seconds, however often it tries', async () => {
  const folder = await scratch();
  const snapshot = openSnapshot(join(folder, 's.sqlite'));
  onTestFinished(() => snapshot.close());
  let isServed = true;
  const store: LockStore = {
    isServed: async () => isServed,
    claim: async ({ stoodBy }) => (stoodBy ? ['untold', 0] : ['home', 1]),
    keep: async () => true,
    leave: async () => undefined,
    isKnown: async () => true,
  };
  const clock = virtualClock();
  const path = join(folder, 's.sqlite');
  const of = {
    mirror: 'acme',
    path,
    acceptLost: false,
    clock,
    random: randomBytes,
  };
  const lock = createMirrorLock(store, of);
  await expect(lock.check()).rejects.toThrow('another worker serves acme');
  isServed = false;
  for (let second = 0; second < aliveMs / 1_000; second += 1) {
    await expect(lock.claim(snapshot)).rejects.toThrow('Redis was emptied');
    await clock.advance(1_000);
  }
  await lock.claim(snapshot);
});

test.each([
  ['serves', async () => void (await worker('one').claim(first))],
  [
    'has served',
    async () => {
      await worker('one').claim(first);
      await worker('one').leave();
    },
  ],
])(
  'no snapshot begins where another worker %s the mirror, also after Redis was emptied',
  async (_, happen) => {
    const folder = await scratch();
    const path = join(folder, 's.sqlite');
    const side = { mirror: 'acme', path, clock: systemClock, random: randomBytes };
    const lock = createMirrorLock(worker('two'), { ...side, acceptLost: false });
    await happen();
    await expect(lock.check()).rejects.toThrow(Busy);
    await redis.flush();
    await expect(lock.check()).rejects.toThrow(
      `${folder} has no snapshot of acme, and one was begun elsewhere`,
    );
    expect(existsSync(path)).toBe(false);
    await createMirrorLock(worker('two'), { ...side, acceptLost: true }).check();
    openSnapshot(path).close();
    await lock.check();
  },
);
