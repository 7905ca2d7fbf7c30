/** The queues of many mirrors on three connections and one blocking read, with a real Redis. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { Clock } from '../../src/domain/clock.ts';
import { systemClock } from '../../src/http/system-clock.ts';
import {
  type EventQueue,
  openEventQueue,
  type Worked,
} from '../../src/compose/queues/event-queue.ts';
import { openRunQueue } from '../../src/compose/queues/run-queue.ts';
import {
  type SharedConnections,
  shareConnections,
} from '../../src/compose/queues/shared-connections.ts';
import { ownRedis, type TestRedis } from '../support/redis.ts';
import { untilHolds } from '../support/waiting.ts';
import { connectTo } from '../support/worker/connections.ts';

let redis: TestRedis;
const closing: (() => Promise<void>)[] = [];
beforeAll(async () => void (redis = await ownRedis()));
afterEach(async () => {
  await Promise.all(closing.splice(0).map(async (close) => close()));
  await redis.flush();
});
afterAll(async () => redis.close());

const clock = systemClock;
const isTrue = async (holds: () => boolean | Promise<boolean>): Promise<void> =>
  untilHolds(async () => expect(await holds()).toBe(true));

function share(by = systemClock): SharedConnections {
  const shared = shareConnections('test', by);
  // After the queues.
  closing.push(async () => pause(50).then(() => shared.close()));
  return shared;
}

/** Opens the events of a mirror on shared connections, and notes which are processed. */
function served(
  shared: SharedConnections,
  mirror: string,
  work: (id: string) => Promise<Worked> | Worked = () => 'done',
  by: Clock = systemClock,
) {
  const connections = shared.to(redis.url);
  const queue = openEventQueue({ mirror, clock: by, connections });
  const worked: string[] = [];
  const serveOptions = { concurrency: 2, failed: () => undefined };
  queue.serve(async (id) => {
    worked.push(id);
    return work(id);
  }, serveOptions);
  closing.push(async () => queue.close());
  return { queue, worked };
}

/** Asks Redis on a connection that does not count. */
async function asked<T>(ask: (own: Redis) => Promise<T>): Promise<T> {
  const own = new Redis(redis.url);
  try {
    return await ask(own);
  } finally {
    own.disconnect();
  }
}
const connectionsNow = async (): Promise<number> =>
  asked(
    async (own) =>
      String(await own.client('LIST'))
        .trim()
        .split('\n').length - 1,
  );
const callsNow = async (): Promise<number> =>
  asked(async (own) => {
    const stats = [...(await own.info('commandstats')).matchAll(/cmdstat_([^:]+):calls=(\d+)/g)];
    const counted = stats.filter(([, name = '']) => !/^(info|client|hello)/.test(name));
    return counted.reduce((sum, [, , n]) => sum + Number(n), 0);
  });

test('processes the events and runs of forty mirrors on three connections', async () => {
  const shared = share();
  const mirrors = Array.from({ length: 40 }, (_, at) => served(shared, `m${at}`));
  const ran = new Set<string>();
  for (const at of mirrors.keys()) {
    const connections = shared.to(redis.url);
    const runs = openRunQueue({ mirror: `m${at}`, clock, connections });
    const patterns = { full: '* * * * * *', fast: undefined, templates: undefined };
    await runs.follow({ patterns: { ...patterns, sentinel: undefined }, timezone: 'UTC' });
    runs.serve(async () => {
      ran.add(`m${at}`);
      return 'over';
    });
    closing.push(async () => runs.close());
  }
  await Promise.all(mirrors.map(async ({ queue }) => queue.add(['a', 'b', 'c'])));
  for (const { worked } of mirrors) {
    await isTrue(() => worked.toSorted().join('') === 'abc');
  }
  await isTrue(() => ran.size === 40);
  expect(await connectionsNow()).toBe(3);
});

test('asks Redis nothing for an idle queue', async () => {
  // The checks for jobs of dead workers come soon after one another, and end as soon.
  const quick: Clock = {
    ...systemClock,
    sleep: async (ms, stop) => systemClock.sleep(ms < 3_000 ? ms / 20 : ms, stop),
  };
  const shared = share(quick);
  const mirrors = Array.from({ length: 40 }, (_, at) => served(shared, `m${at}`, undefined, quick));
  await mirrors[0]?.queue.add(['a']);
  await isTrue(() => mirrors[0]?.worked.length === 1);
  await isTrue(async () => {
    const before = await callsNow();
    await pause(300);
    return (await callsNow()) - before < 5;
  });
  await isTrue(async () => {
    const before = await callsNow();
    await pause(5_000);
    return (await callsNow()) - before < 10;
  });
  await mirrors[39]?.queue.add(['b']);
  await isTrue(() => mirrors[39]?.worked.join() === 'b');
});

test('one busy mirror keeps no other waiting, and takes its own next event when it is free', async () => {
  const shared = share();
  const busy: PromiseWithResolvers<Worked>[] = [];
  const first = served(shared, 'first', async () => {
    const one = Promise.withResolvers<Worked>();
    busy.push(one);
    return one.promise;
  });
  const second = served(shared, 'second');
  await first.queue.add(['a', 'b', 'c']);
  await isTrue(() => busy.length === 2);
  await second.queue.add(['x']);
  await isTrue(() => second.worked.join() === 'x');
  expect(first.worked).toHaveLength(2);
  for (const at of [0, 1, 2]) {
    await isTrue(() => busy.length > at);
    busy[at]?.resolve('done');
  }
  await isTrue(async () => (await first.queue.counts()).active === 0);
  expect(first.worked.toSorted()).toEqual(['a', 'b', 'c']);
});

test('goes on after Redis was gone with its data, and after it stood still', async () => {
  const shared = share();
  const { queue, worked } = served(shared, 'acme');
  const add = async (id: string) => untilHolds(async () => queue.add([id]));
  await add('a');
  await isTrue(() => worked.includes('a'));
  await redis.kill();
  await pause(500);
  await redis.start();
  await add('b');
  await isTrue(() => worked.includes('b'));
  redis.pause();
  await pause(2_000);
  redis.resume();
  await add('c');
  await isTrue(() => worked.includes('c'));
});

test('says once that Redis is lost and back, however many mirrors hear of it', async () => {
  const notes: string[] = [];
  const shared = shareConnections('test', clock, (line) => void notes.push(line));
  closing.push(async () => shared.close());
  const connections = shared.to(redis.url);
  const heard: (string | undefined)[] = [];
  const hears = (): void => void heard.push(connections.away());
  for (const _ of ['acme', 'beta']) connections.listen(hears.bind(undefined));
  connections.listen(() => expect.unreachable())();
  await isTrue(() => connections.away() === undefined);
  await redis.kill();
  await isTrue(() => heard.length === 2);
  await redis.start();
  await isTrue(() => heard.length === 4);
  const lost = expect.stringMatching(/^Redis is away \(.+\)$/);
  expect(heard).toEqual([lost, lost, undefined, undefined]);
  const { host } = new URL(redis.url);
  const away = heard[0]?.replace('Redis', `Redis at ${host}`);
  expect(notes).toEqual([
    `crm-mirror: ${away}; the schedule waits for it`,
    `crm-mirror: Redis at ${host} is there again, the schedule goes on`,
  ]);
});

test('retries what has to be retried, and what another process has to do', async () => {
  const shared = share();
  const answers: Worked[] = ['elsewhere', 'again', 'done'];
  const { queue, worked } = served(shared, 'acme', () => answers.shift() ?? 'done');
  await queue.add(['a']);
  await isTrue(() => worked.length === 3);
  await isTrue(async () => {
    const { waiting, active, delayed } = await queue.counts();
    return waiting + active + delayed === 0;
  });
});

test('takes over the job of a process that was killed', async () => {
  const taker = fileURLToPath(new URL('../support/worker/job-taker.ts', import.meta.url));
  const other = spawn(process.execPath, [taker, redis.url, 'acme'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void other.kill('SIGKILL'));
  const connections = connectTo(redis.url);
  const own: EventQueue = openEventQueue({ mirror: 'acme', clock, connections });
  closing.push(async () => own.close());
  await own.add(['never']);
  await once(other.stdout, 'data');
  other.kill('SIGKILL');
  const { worked } = served(share(), 'acme');
  await isTrue(() => worked.join() === 'never');
});

test('a mirror that leaves takes no more jobs, and gets them when it is back', async () => {
  const shared = share();
  const first = served(shared, 'acme');
  const other = served(shared, 'other');
  await first.queue.add(['a']);
  await isTrue(() => first.worked.join() === 'a');
  await first.queue.close();
  const adding = openEventQueue({ mirror: 'acme', clock, connections: connectTo(redis.url) });
  closing.push(async () => adding.close());
  await adding.add(['b']);
  await other.queue.add(['x']);
  await isTrue(() => other.worked.join() === 'x');
  const again = served(shared, 'acme');
  await isTrue(() => again.worked.join() === 'b');
  expect(first.worked).toEqual(['a']);
});
