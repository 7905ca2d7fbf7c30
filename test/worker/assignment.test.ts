/**
 * Which worker is the home of a mirror: the table of src/compose/queues/assignment-store.ts, on a
 * real Redis.
 */
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/http/system-clock.ts';
import { openSnapshot } from '../../src/store/snapshot.ts';
import { assignmentIn } from '../../src/worker/mirror-assignment.ts';
import {
  type AssignmentStore,
  homeRecord,
  type Candidate,
} from '../../src/compose/queues/assignment-store.ts';
import { createNodeHeartbeat } from '../../src/compose/queues/node-heartbeat.ts';
import { connectQuickly, type Quick } from '../../src/compose/queues/redis-connections.ts';
import { untilHolds } from '../support/waiting.ts';
import { ownRedis, type TestRedis } from '../support/redis.ts';
import { scratch } from '../support/sources/source-reading.ts';

let redis: TestRedis;
let quick: Quick;
beforeAll(async () => {
  redis = await ownRedis();
  quick = connectQuickly(redis.url);
});
beforeEach(async () => redis.flush());
afterAll(async () => {
  quick.close();
  await redis.close();
});

const worker = (name: string) => homeRecord(quick, { mirror: 'acme', worker: name });
const nodeKey = (name: string): string => `crm-mirror:node:node-${name}`;
/** A worker that shows its life by the key of its process. */
const inProcess = (name: string): AssignmentStore => {
  const store = homeRecord(quick, { mirror: 'acme', worker: name, node: `node-${name}` });
  return {
    ...store,
    async claim(candidate) {
      await quick.redis.set(nodeKey(name), 1);
      return store.claim(candidate);
    },
  };
};
const kinds = [worker, inProcess];
const first: Candidate = {
  snapshot: 's',
  generation: 5,
  file: '11',
  restored: false,
  acceptLost: false,
  stoodBy: false,
  disk: 'd1@web1',
};

describe.each([
  ['the same snapshot, opened since', { generation: 6 }, 'home', 'home'],
  ['the same snapshot, of the same generation', {}, 'taken', 'older'],
  ['a copy of its file, opened since', { generation: 6, file: '12' }, 'taken', 'home'],
  ['an older copy of it', { generation: 3, file: '12' }, 'taken', 'older'],
  ['a backup of it, put back', { generation: 3, restored: true }, 'taken', 'home'],
  ['its last backup, put back', { generation: 6, restored: true }, 'taken', 'home'],
  ['another snapshot', { snapshot: 't', generation: 9 }, 'taken', 'older'],
  ['another one, put back', { snapshot: 't', generation: 9, restored: true }, 'taken', 'older'],
  ['another one, aloud', { snapshot: 't', generation: 9, acceptLost: true }, 'taken', 'home'],
] as const)('a mirror claimed beside a worker: %s', (_, change, alive, gone) => {
  test.each(kinds.flatMap((one) => kinds.map((two) => [one, two] as const)))(
    'is granted or refused as expected while that one is alive, and after it has ended',
    async (before, after) => {
      await before('one').claim(first);
      const two = after('two');
      // The worker of a folder may have closed the mirror, so its free lease proves nothing.
      const isResting = before === inProcess;
      expect(await two.isResting()).toBe(isResting);
      expect((await two.claim({ ...first, ...change })).is).toBe(isResting ? 'taken' : alive);
      await before('one').leave();
      await redis.flush();
      await before('one').claim(first);
      await before('one').leave();
      expect((await two.claim({ ...first, ...change })).is).toBe(gone);
    },
  );

  test('is granted or refused as expected after the process of that one has died', async () => {
    await inProcess('one').claim(first);
    await quick.redis.del(nodeKey('one'));
    expect(await worker('two').isServed()).toBe(false);
    expect((await worker('two').claim({ ...first, ...change })).is).toBe(gone);
  });
});

test('a restored snapshot outranks the one it replaces', async () => {
  await worker('one').claim(first);
  await worker('one').leave();
  const claim = await worker('two').claim({ ...first, generation: 3, restored: true });
  expect(claim).toEqual({ is: 'home', generation: 6 });
  await worker('two').leave();
  // The machine that was lost comes back, and opens its own once more.
  expect(await worker('one').claim({ ...first, generation: 6 })).toMatchObject({ is: 'older' });
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
    expect(await claim({ generation: 6, restored: true })).toEqual({ is: 'forged' });
    const home = { is: 'home', generation: 7 };
    expect(await claim({ generation: 7, acceptLost: true })).toEqual(home);
    expect(await claim({ generation: 8 })).toEqual({ ...home, generation: 8 });
    expect(await claim({ generation: 9 })).toEqual({ ...home, generation: 9 });
  },
);

test('a generation that is no number counts as none', async () => {
  await worker('one').claim(first);
  await worker('one').leave();
  await quick.redis.hset('crm-mirror:acme:{home}', 'generation', 'x');
  expect(await worker('two').claim(first)).toEqual({ is: 'home', generation: 5 });
});

test('a worker that loses the mirror learns it, and one that has it is known', async () => {
  const [one, two] = [worker('one'), worker('two')];
  expect(await one.isServed()).toBe(false);
  await one.claim(first);
  expect(await one.isServed()).toBe(true);
  expect(await one.keep(first)).toBe(true);
  await two.claim({ ...first, generation: 6 });
  expect(await one.keep(first)).toBe(false);
  await one.leave();
  expect(await two.isServed()).toBe(true);
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

test('a process claims its own mirror again, and is told of an emptied Redis', async () => {
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const node = beating('many');
  await node.begun;
  const one = homeRecord(quick, { mirror: 'acme', worker: 'one', node: 'many' });
  expect((await one.claim(first)).is).toBe('home');
  expect((await one.claim({ ...first, generation: 6 })).is).toBe('home');
  // It serves the mirror anew, and could not say before that it had left it.
  const again = homeRecord(quick, { mirror: 'acme', worker: 'two', node: 'many' });
  expect(await again.isResting()).toBe(false);
  expect((await again.claim({ ...first, generation: 7 })).is).toBe('home');
  expect(await one.keep(first)).toBe(false);
  const told: string[] = [];
  const wait = async (mirror: string) =>
    node.due(mirror, stop.signal).then(() => told.push(mirror));
  void wait('acme');
  void wait('beta');
  await pause(200);
  expect(told).toEqual([]);
  await redis.flush();
  await untilHolds(() => expect(told.toSorted()).toEqual(['acme', 'beta']));
});

test('a process that stood still finds its key gone, and checks its mirrors', async () => {
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const node = beating('slow');
  await node.begun;
  const due = node.due('acme', stop.signal);
  await quick.redis.del('crm-mirror:node:slow');
  await due;
  expect(await quick.redis.exists('crm-mirror:node:slow')).toBe(1);
});

describe('a mirror whose snapshot is on another disk', () => {
  const other = { ...first, generation: 6, disk: 'd2@web2' };

  test('is refused to a worker of a folder, which is placed, even with a later generation', async () => {
    await inProcess('one').claim(first);
    await inProcess('one').leave();
    expect(await inProcess('two').claim(other)).toEqual({ is: 'apart' });
    expect((await inProcess('two').claim({ ...other, disk: 'd1@web3' })).is).toBe('home');
  });

  test.each([
    ['a worker of one mirror, where the files were moved to', worker, {}],
    ['a worker that is told that the snapshot is lost', inProcess, { acceptLost: true }],
  ])('is given to %s, and with it the disk', async (_, kind, change) => {
    await inProcess('one').claim(first);
    await inProcess('one').leave();
    expect((await kind('two').claim({ ...other, ...change })).is).toBe('home');
    await kind('two').leave();
    expect(await inProcess('one').claim({ ...first, generation: 9 })).toEqual({ is: 'apart' });
  });

  test('is known again after Redis was emptied', async () => {
    await inProcess('one').claim(first);
    await redis.flush();
    await inProcess('one').keep(first);
    await inProcess('one').leave();
    expect(await inProcess('two').claim(other)).toEqual({ is: 'apart' });
  });
});

test('an emptied Redis receives the assignment again', async () => {
  await worker('one').claim(first);
  await redis.flush();
  expect(await worker('one').keep(first)).toBe(true);
  expect(await worker('two').claim({ ...first, snapshot: 't' })).toEqual({ is: 'taken' });
});

test('a worker on standby is not the first to claim in an emptied Redis', async () => {
  expect((await worker('two').claim({ ...first, stoodBy: true })).is).toBe('untold');
  expect((await worker('two').claim(first)).is).toBe('home');
});

test('no worker claims anything without Redis', async () => {
  await redis.kill();
  await expect(worker('one').claim(first)).rejects.toThrow('Redis cannot be asked');
  await redis.start();
  for (;;) {
    if (
      await worker('one')
        .isServed()
        .catch(() => true)
    )
      await pause(20);
    else break;
  }
  expect((await worker('one').claim(first)).is).toBe('home');
});

test('a worker on a copy of the snapshot never displaces the worker that serves the mirror', async () => {
  const folder = await scratch();
  const open = (name: string) => {
    const opened = openSnapshot(join(folder, name));
    opened.fence();
    return opened;
  };
  const side = (name: string) =>
    assignmentIn(worker(name), {
      mirror: 'acme',
      path: join(folder, 'used.sqlite'),
      acceptLost: false,
      clock: systemClock,
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
