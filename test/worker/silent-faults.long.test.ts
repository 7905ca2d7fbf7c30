/** What a worker tells by its own timer: ticks come from Redis, and results from the snapshot. */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { describe, expect, onTestFinished, test } from 'vitest';
import { main } from '../../src/cli.ts';
import { formIn } from '../../src/commands/table.ts';
import { redisAway } from '../../src/views/status/attention.ts';
import { takeLease } from '../../src/store/database/writer-lease.ts';
import { consoleMirror } from '../../src/console/view/console-mirror.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { shareConnections } from '../../src/compose/queues/shared-connections.ts';
import { dueIn } from '../../src/config/schema/cron-pattern.ts';
import { serve } from '../../src/worker/mirror-service.ts';
import { openServer } from '../../src/worker/worker-server.ts';
import { freePort, untilHolds } from '../support/waiting.ts';
import { mirrored, type Mirrored, silentShell } from '../support/commands/mirrored-contacts.ts';
import { receiver, reporting } from '../support/commands/notice-receivers.ts';
import { systemClock } from '../../src/http/system-clock.ts';
import { ownRedis } from '../support/redis.ts';

/** A clock whose minutes pass when a test says so. */
function handClock() {
  let ahead = 0;
  const waiting = new Set<() => void>();
  return {
    now: () => Date.now() + ahead,
    monotonic: () => performance.now() + ahead,
    async sleep(ms: number, signal?: AbortSignal) {
      if (ms < 60_000) return systemClock.sleep(Math.min(ms, 20), signal);
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      waiting.add(resolve);
      signal?.addEventListener('abort', () => reject(new Error('over')));
      return promise;
    },
    minutesPass(count: number) {
      ahead += count * 60_000;
      for (const wake of waiting) wake();
      waiting.clear();
    },
  };
}

/** A worker in this process, whose minutes pass at once, and what its receiver hears. */
async function working(more: Record<string, unknown> = {}) {
  const redis = await ownRedis();
  onTestFinished(async () => redis.close());
  const { heard, url } = await receiver();
  const world = await mirrored();
  const port = await freePort();
  const notices = { to: [{ slack: { url } }] };
  const lines = { redis: redis.url, schedule: { full: '0 3 1 1 *' }, notices, server: { port } };
  const config = loadConfig(world.config({ ...lines, ...more }), {});
  expect((await world.call('sync')).code).toBe(0);
  const stop = new AbortController();
  const notes: string[] = [];
  const shell = {
    env: {},
    print: () => undefined,
    note: (line: string) => void notes.push(line),
    progress: () => undefined,
    terminal: false,
    interactive: false,
    stop: stop.signal,
    abort: stop.signal,
  };
  const clock = handClock();
  const { schedule } = config;
  if (!schedule || dueIn(schedule).length === 0) throw new Error('the worker has a schedule');
  const workable = { ...config, redis: redis.url, schedule };
  const shared = shareConnections('test', systemClock);
  onTestFinished(() => shared.close());
  const connections = shared.to(redis.url);
  const load = () => config;
  const options = { acceptLost: false, load, ended: () => undefined, clock, connections };
  const served = serve(workable, shell, options);
  const server = openServer(config, { served: [served] }, shell);
  await server?.listen();
  const close = async (): Promise<void> => {
    stop.abort(new Error('the test is over'));
    await Promise.all([server?.close(), served.close()]);
  };
  onTestFinished(close);
  await untilHolds(() => expect(notes.join('\n')).toContain('worker serves'));
  const told = () =>
    heard.map(({ body }) => {
      const { text } = JSON.parse(body);
      return String(text);
    });
  const overview = async () => (await fetch(`http://127.0.0.1:${port}/m/world`)).text();
  /** Minutes pass, one by one, and what is sent by then has arrived. */
  const minutes = async (count: number): Promise<void> => {
    for (let nth = 0; nth < count; nth += 1) {
      clock.minutesPass(1);
      await pause(100);
    }
  };
  const ready = async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).json();
  return { world, redis, told, notes, overview, ready, minutes, served };
}

describe('while Redis is away', () => {
  test('its receivers hear of it once, also that it is back, and the console says so', async () => {
    const { redis, told, overview, minutes, ready, served } = await working();
    await minutes(2);
    expect(await overview()).toContain('In sync');
    await redis.kill();
    await untilHolds(() => expect(served.away()).toContain('Redis is away'));
    await minutes(2);
    await untilHolds(() => expect(told()).toHaveLength(1));
    expect(told()[0]).toMatch(/Redis is away \(.*\): no run of the schedule starts/);
    const page = await overview();
    expect(page).toContain('Needs attention');
    expect(page).toContain('no run of the schedule starts');
    await minutes(5);
    expect(told()).toHaveLength(1);
    const failing = [{ mirror: 'world', code: 'redis_away', since: expect.any(String) }];
    expect(await ready()).toMatchObject({ failing });
    await redis.start();
    await untilHolds(() => expect(served.away()).toBeUndefined());
    await minutes(1);
    await untilHolds(() => expect(told()).toHaveLength(2));
    expect(told()[1]).toContain('no longer: Redis is away');
    await untilHolds(async () => expect(await overview()).toContain('In sync'));
  });

  test('a proof that grows too old is reported although no tick comes', async () => {
    const { redis, told, minutes } = await working({ alerts: { proofAge: '1s' } });
    await redis.kill();
    await pause(1_500);
    await minutes(1);
    await untilHolds(() =>
      expect(told().join('\n')).toContain('the last full run that ended well began'),
    );
  });
});

/** What somebody who can write Redis does to keep the runs of the schedule. */
const kept = {
  'the queue is paused': (redis: Redis, queue: string) =>
    redis.hset(`${queue}:meta`, 'paused', '1'),
  'a job that nobody has fills the queue': async (redis: Redis, queue: string) => {
    await redis.hset(`${queue}:ghost`, { name: 'full', data: '{}', opts: '{}', timestamp: 1 });
    await redis.set(`${queue}:ghost:lock`, 'nobody');
    await redis.lpush(`${queue}:active`, 'ghost');
  },
  'the runs are put off': async (redis: Redis, queue: string) => {
    const delayed = `${queue}:delayed`;
    await untilHolds(async () => {
      const [id = ''] = await redis.zrange(delayed, '0', '-1');
      expect(await redis.zadd(delayed, 'XX', 'CH', '8e15', id)).toBe(1);
    });
  },
};

describe.each([
  ['runs', 'fast'],
  ['sentinel', 'unsubscribe check'],
])('a worker to which Redis gives nothing of %s', (name, words) => {
  test.each(Object.entries(kept))('says so everywhere when %s', async (_, keep) => {
    const schedule = { full: '0 3 1 1 *', fast: '* * * * * *', sentinel: '* * * * * *' };
    const { redis, world, served, told, minutes, overview, ready } = await working({ schedule });
    await minutes(1);
    expect(served.faults()).toEqual([]);
    const queue = `crm-mirror:${name}-world`;
    const own = new Redis(redis.url);
    onTestFinished(() => own.disconnect());
    await keep(own, queue);
    await untilHolds(async () => {
      await minutes(1);
      expect(served.faults()).toMatchObject([{ code: 'stale' }]);
    });
    const text = expect.stringMatching(`${words} was due at `);
    expect(served.faults()).toMatchObject([{ text }]);
    const { json } = await world.call('status', '--json');
    expect(json.attention).toMatchObject([{ code: 'stale', text }]);
    expect(await overview()).toContain('runs are overdue');
    expect(await ready()).toMatchObject({ failing: [{ code: 'stale' }] });
    await untilHolds(() => expect(told()).toEqual([text]));
    await redis.remove(`${queue}:*`);
    await untilHolds(() => expect(served.faults()).toEqual([]));
    await untilHolds(() =>
      expect(told()).toEqual([text, expect.stringContaining('no longer: runs are')]),
    );
  });
});

describe('of a Redis that loses data', () => {
  test('the schedule is stored again, and a line says so', async () => {
    const { redis, notes, minutes } = await working();
    await redis.remove('crm-mirror:runs-world:repeat:full');
    const lost = 'world: Redis had lost a part of the schedule (full) → it is stored again';
    await untilHolds(async () => {
      await minutes(1);
      expect(notes.join('\n')).toContain(lost);
    });
    await pause(200);
    expect(notes.filter((line) => line.includes(lost))).toHaveLength(1);
  });

  test('its policy needs attention until it is noeviction', async () => {
    const { redis, served, told, overview, minutes } = await working();
    expect(served.faults()).toEqual([]);
    await redis.evictBy('allkeys-lru');
    await untilHolds(async () => {
      await minutes(1);
      expect(served.faults()).toMatchObject([{ code: 'redis_evicts' }]);
    });
    expect(await overview()).toContain('(maxmemory-policy allkeys-lru)');
    await minutes(2);
    await untilHolds(() => expect(told().join()).toContain('maxmemory-policy allkeys-lru'));
    await redis.evictBy('noeviction');
    await untilHolds(() => expect(served.faults()).toEqual([]));
  });

  test('a Redis that refuses the schedule is reported as away, and once', async () => {
    const { redis, served, notes, minutes } = await working();
    await redis.remove('crm-mirror:runs-world:repeat');
    await redis.fill();
    await untilHolds(async () => {
      await minutes(1);
      expect(served.away()).toContain('Redis refuses the schedule (OOM');
    });
    await minutes(2);
    // A busy Redis may also have timed out in between: each change is said, and nothing twice.
    const said = notes.filter((line) => line.includes('the schedule waits for it'));
    expect(said.filter((line, at) => line === said[at + 1])).toEqual([]);
    expect(new Set(said.filter((line) => line.includes('OOM'))).size).toBe(1);
    await redis.empty();
    await untilHolds(() => expect(served.away()).toBeUndefined());
  });
});

describe('while the snapshot cannot be read', () => {
  const spoil = ({ path }: Mirrored): (() => void) => {
    const whole = readFileSync(path);
    for (const end of ['-wal', '-shm']) if (existsSync(path + end)) rmSync(path + end);
    rmSync(path);
    writeFileSync(path, 'this is no database, but long enough to be read as one '.repeat(40));
    return () => writeFileSync(path, whole);
  };

  test('its receivers hear of it once, and the console says so instead of failing', async () => {
    const { world, told, notes, overview, minutes } = await working();
    spoil(world);
    await minutes(1);
    await untilHolds(() => expect(told()).toHaveLength(1));
    expect(told()[0]).toContain('the snapshot cannot be read, so nothing is known of this mirror');
    expect(told()[0]).toContain('this snapshot is damaged');
    await minutes(3);
    expect(told()).toHaveLength(1);
    expect(notes.filter((line) => line.includes('"why"')).length).toBeLessThanOrEqual(1);
    const page = await overview();
    expect(page).toContain('Needs attention');
    expect(page).toContain('the snapshot cannot be read');
    expect(page).not.toContain('No full run has ended well yet');
  });

  test('`sync --notify` from cron says so, too, and that of the next process as well', async () => {
    const { heard, url } = await receiver();
    const { world, begin } = await reporting({ to: [{ slack: { url } }] });
    await world.call('sync');
    spoil(world);
    const notifier = begin();
    notifier.ran();
    await notifier.close();
    expect(heard.map(({ body }) => body).join()).toContain('the snapshot cannot be read');
  });
});

describe('a command of the console of a worker', () => {
  const olga = { name: 'olga', role: 'operator', seesAddresses: true } as const;
  const silent = {
    ...silentShell,
    stop: new AbortController().signal,
    abort: new AbortController().signal,
    call: main,
    formOf: formIn,
  };

  test('says that Redis is away, not that another run holds the mirror', async () => {
    const world = await mirrored();
    await world.call('sync');
    const lease = takeLease(world.path);
    onTestFinished(() => lease.release());
    const faults = () => [redisAway('Redis is away (it closed the connection)', null)];
    const config = loadConfig(world.file, {});
    const shown = consoleMirror(config, silent, { clock: systemClock, faults });
    const { code, lines } = await shown.run(olga, ['sync']);
    expect({ code, lines }).toEqual({
      code: 75,
      lines: [expect.stringContaining('Redis is away')],
    });
    expect(lines.join()).not.toContain('another run');
    expect((await shown.run(olga, ['pause', '--reason=to look'])).code).toBe(0);
    lease.release();
    expect((await shown.run(olga, ['sync'])).lines.join()).toContain('paused since');
  });
});
