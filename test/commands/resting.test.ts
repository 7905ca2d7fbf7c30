/** A mirror of a folder's worker is open only while something is done in it, on a real Redis. */
import { randomBytes } from 'node:crypto';
import { createMirrorLock } from '../../src/worker/open-mirror.ts';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, onTestFinished, test } from 'vitest';
import { loadConfig } from '../../src/config/load-config.ts';
import { systemClock } from '../../src/http/system-clock.ts';
import { isLeased, takeLease } from '../../src/store/database/writer-lease.ts';
import { openSnapshot } from '../../src/store/open-snapshot.ts';
import { openLockStore } from '../../src/compose/queues/lock-store.ts';
import { createNodeHeartbeat, fleetKeys } from '../../src/compose/queues/node-heartbeat.ts';
import { connectQuickly } from '../../src/compose/queues/redis-connections.ts';
import { createCapacity, idleMs } from '../../src/worker/worker-capacity.ts';
import { virtualClock, untilHolds } from '../support/waiting.ts';
import { hostOf } from '../support/worker/mirror-host.ts';
import { createWorld, launch } from '../support/engine/engine-world.ts';
import { sharedRedis } from '../support/redis.ts';

const redis = await sharedRedis();

/** A world whose mirror a worker of a folder can have. Virtual is only the time without work. */
async function stage() {
  const world = await createWorld({ kinds: ['contact'] });
  world.people([{ email: 'ann@example.com', news: 'yes' }]);
  const file = world.config();
  const config = loadConfig(file, {});
  const said: string[] = [];
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const clock = virtualClock();
  const start = (name: string) => {
    const quick = connectQuickly(redis.url);
    const node = createNodeHeartbeat(quick, name, systemClock);
    const own = openLockStore(quick, config.mirror, name);
    const place = {
      mirror: config.mirror,
      path: config.snapshot,
      acceptLost: false,
      mayMove: false,
      random: randomBytes,
      clock: systemClock,
    };
    const home = hostOf(file, {
      note: (line) => void said.push(line),
      stop,
      lock: createMirrorLock(own, place),
      capacity: createCapacity(clock, () => () => true),
      node,
    });
    onTestFinished(async () => {
      stop.abort();
      await home.close();
      node.close();
      quick.close();
    });
    const isServed = async () => openLockStore(quick, config.mirror).isServed();
    return { home, isServed, quick, node };
  };
  const isOpen = () => isLeased(config.snapshot);
  const rests = async () => {
    await clock.advance(idleMs);
    await untilHolds(() => expect(isOpen()).toBe(false));
  };
  const generation = () => {
    const snapshot = openSnapshot(config.snapshot);
    const found = snapshot.generation();
    snapshot.close();
    return found;
  };
  return { world, file, config, start, isOpen, rests, generation, clock, said, stop };
}

test('is closed when nothing has been done for a while, and opened for the next work', async () => {
  const { world, start, isOpen, rests, clock } = await stage();
  const { home, isServed } = start('one');
  await home.claim();
  expect([home.isHere(), isOpen()]).toEqual([true, true]);
  await rests();
  expect([home.isHere(), await isServed()]).toEqual([true, true]);
  expect(await home.run('full', 0)).toBe('over');
  expect(world.shown('ann@example.com')).toMatchObject({ ch_news: 'opt_in' });
  const limits = home.limits();
  expect(limits).not.toEqual({});
  await rests();
  expect(home.limits()).toEqual(limits);
  // While something is done, it stays open.
  const go = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const held = home.hold('beside', async () => {
    begun.resolve();
    return go.promise;
  });
  await begun.promise;
  await clock.advance(10 * idleMs);
  expect(isOpen()).toBe(true);
  go.resolve();
  await held;
  await rests();
});

test('keeps nothing of a closed mirror in memory', async () => {
  const { start, rests } = await stage();
  const { home } = start('one');
  await home.claim();
  const snapshot = await home.hold('alone', async ({ mirror }) => new WeakRef(mirror.snapshot));
  await rests();
  setFlagsFromString('--expose-gc');
  await untilHolds(() => {
    runInNewContext('gc')();
    expect(snapshot.deref() === undefined).toBe(true);
  });
  expect(home.isHere()).toBe(true);
});

test('works that come at once share one opening, also while it is being closed', async () => {
  const { start, rests, clock, generation } = await stage();
  const { home } = start('one');
  await home.claim();
  await rests();
  const before = generation();
  const work = async () => home.hold('beside', async ({ mirror }) => mirror.snapshot.generation());
  expect(await Promise.all([work(), work(), work()])).toEqual(Array(3).fill(before + 1));
  await clock.advance(idleMs);
  expect(await Promise.all([work(), work()])).toEqual(Array(2).fill(before + 2));
});

test('lets a command have the snapshot that it has closed, and has no part in it meanwhile', async () => {
  const { world, file, config, start, rests, generation } = await stage();
  const { home, isServed } = start('one');
  await home.claim();
  await rests();
  // The command knows of no Redis.
  expect((await launch(['sync', '-c', file]).ended).code).toBe(0);
  expect(world.shown('ann@example.com')).toMatchObject({ ch_news: 'opt_in' });
  const lease = takeLease(config.snapshot);
  expect(await home.run('full', 0)).toBe('elsewhere');
  await expect(home.hold('beside', async () => undefined)).rejects.toThrow('another run holds');
  expect(await home.record('1', 'changed', '')).toBe('elsewhere');
  expect([home.isHere(), await isServed()]).toEqual([true, true]);
  lease.release();
  const before = generation();
  expect(await home.run('full', 0)).toBe('over');
  expect(generation()).toBe(before + 1);
});

test('stays assigned while it is closed: no worker takes it until its process has died', async () => {
  const { start, rests, generation, said } = await stage();
  const { home: one, node } = start('one');
  await one.claim();
  await rests();
  const { home: two, quick } = start('two');
  const before = generation();
  expect(await two.run('full', 0)).toBe('elsewhere');
  expect(said.join('\n')).toContain('another worker serves');
  // It did not open the snapshot for that.
  expect(generation()).toBe(before);
  node.close();
  await quick.redis.zrem(fleetKeys.nodes, 'one');
  expect(await two.run('full', 0)).toBe('over');
  expect([two.isHere(), one.isHere()]).toEqual([true, true]);
  // The first one lives after all, and learns it when it wants to go on.
  await rests();
  expect(await one.run('full', 0)).toBe('elsewhere');
  expect(one.isHere()).toBe(false);
});

test('is opened while it is paused, for commands only', async () => {
  const { world, file, start, rests } = await stage();
  const { home } = start('one');
  await home.claim();
  await rests();
  expect((await launch(['pause', '-c', file]).ended).code).toBe(0);
  expect(await home.run('full', 0)).toBe('over');
  expect(await home.record('1', 'changed', '')).toBe('again');
  expect(world.shown('ann@example.com')).toBeUndefined();
  expect(await home.hold('beside', async () => 'done')).toBe('done');
});

test('begins no run that waits for a slot when it leaves', async () => {
  const { start, said } = await stage();
  const { home } = start('one');
  await home.claim();
  home.rest();
  expect(await home.run('full', 0)).toBe('elsewhere');
  expect(await home.hold('beside', async () => 'done')).toBe('done');
  expect(said).toEqual([]);
});
