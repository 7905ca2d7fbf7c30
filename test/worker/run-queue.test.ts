/** What becomes of runs that came due while nobody took them, on a real Redis. */
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/http/system-clock.ts';
import { viewQueues, openRunQueue } from '../../src/compose/queues/run-queue.ts';
import { type Schedule } from '../../src/config/schema/cron-pattern.ts';
import { ownRedis, type TestRedis } from '../support/redis.ts';
import { untilHolds } from '../support/waiting.ts';
import { connectTo } from '../support/worker/connections.ts';

let redis: TestRedis;
beforeAll(async () => void (redis = await ownRedis()));
afterAll(async () => redis.close());

const opened = (mirror: string, now = systemClock.now) => {
  const queue = openRunQueue({
    connections: connectTo(redis.url),
    mirror,
    clock: { ...systemClock, now },
  });
  onTestFinished(async () => queue.close());
  return queue;
};
const viewed = (mirror: string) => {
  const view = viewQueues(mirror, { url: redis.url });
  onTestFinished(view.close);
  return view;
};
const scheduled = (full: string, timezone = 'UTC'): Schedule => ({
  patterns: { full, fast: undefined, templates: undefined, sentinel: undefined },
  timezone,
});

/** A pattern that is due once a minute, in two seconds. */
function soon(): string {
  return `${(new Date().getUTCSeconds() + 2) % 60} * * * * *`;
}

test('a run that came due while nobody served the mirror is made up for, once', async () => {
  const schedule = scheduled(soon());
  await opened('acme').follow(schedule);
  await pause(3_000);
  const next = opened('acme');
  await next.follow(schedule);
  const taken: string[] = [];
  next.serve(async (tick) => {
    taken.push(tick);
    return 'over';
  });
  await untilHolds(() => expect(taken).toEqual(['full']));
  await pause(1_000);
  expect(taken).toEqual(['full']);
});

test('another pattern replaces the one before', async () => {
  const queue = opened('beta');
  await queue.follow(scheduled('0 0 1 1 *'));
  await queue.follow(scheduled(soon()));
  const taken: string[] = [];
  queue.serve(async (tick) => {
    taken.push(tick);
    return 'over';
  });
  await untilHolds(() => expect(taken).toEqual(['full']));
});

test.each([
  ['Africa/Cairo', '0 0 * * *', '2027-04-29T22:00:00Z'],
  ['America/Santiago', '0 0 * * *', '2027-09-05T04:00:00Z'],
  ['Australia/Lord_Howe', '15 2 * * *', '2027-10-02T15:30:00Z'],
])('in %s Redis has a run on the day on which %s does not exist', async (zone, pattern, at) => {
  const due = Date.parse(at);
  const before = opened(`after ${zone}`, () => due - 3_600_000);
  await before.follow(scheduled(pattern, zone));
  expect(await viewed(`after ${zone}`).due()).toEqual([{ tick: 'full', at: due }]);
  const queue = opened(zone, () => due - 36 * 3_600_000);
  await queue.follow(scheduled(pattern, zone));
  const view = viewed(zone);
  expect(await view.due()).toMatchObject([{ tick: 'full' }]);
  const [job] = (await view.queues[0]?.getDelayed()) ?? [];
  await job?.promote();
  queue.serve(async () => 'over');
  await untilHolds(async () => expect(await view.due()).toEqual([{ tick: 'full', at: due }]));
});

describe('a schedule of which Redis has lost a part', () => {
  const parts = [
    ['the delayed jobs', ':delayed'],
    ['the jobs themselves', ':repeat:full:*'],
    ['the list of entries', ':repeat'],
    ['one entry', ':repeat:full'],
    ['everything', '*'],
  ] as const;

  test.each(parts)('is whole again after the loss of %s', async (what, key) => {
    const queue = opened(what);
    const schedule = scheduled('0 0 1 1 *');
    expect(await queue.follow(schedule)).toEqual(['full']);
    expect(await queue.follow(schedule)).toEqual([]);
    await redis.remove(`crm-mirror:runs-${what}${key}`);
    expect(await viewed(what).due()).toEqual([]);
    expect(await queue.follow(schedule)).toEqual(['full']);
    expect(await queue.follow(schedule)).toEqual([]);
  });

  test('is whole again if several store it at once, as after a restart of Redis', async () => {
    const queues = [opened('several'), opened('several')];
    const schedule = scheduled('0 0 1 1 *');
    for (const [, key] of parts.flatMap((part) => [part, part, part])) {
      await Promise.all([...queues, ...queues].map(async (queue) => queue.follow(schedule)));
      expect(await queues[0]?.follow(schedule)).toEqual([]);
      await redis.remove(`crm-mirror:runs-several${key}`);
    }
  });

  test('makes its runs again, whatever was lost, whenever that happens', async () => {
    const lost = [...parts, ['the waiting jobs', ':wait'], ['the running jobs', ':active']];
    await Promise.all(lost.map(async ([what = '', key = '']) => losing(what, key)));
  });

  async function losing(what: string, key: string): Promise<void> {
    const mirror = `running ${what}`;
    const queue = opened(mirror);
    const schedule = scheduled('* * * * * *');
    await queue.follow(schedule);
    let taken = 0;
    queue.serve(async () => {
      taken += 1;
      await pause(200);
      return 'over';
    });
    await untilHolds(() => expect({ what, ran: taken > 0 }).toEqual({ what, ran: true }));
    for (const momentMs of [100, 850]) {
      await pause(1_000 - (Date.now() % 1_000) + momentMs);
      await redis.remove(`crm-mirror:runs-${mirror}${key}`);
      await queue.follow(schedule);
      const before = taken;
      await untilHolds(() => expect({ what, ran: taken > before }).toEqual({ what, ran: true }));
    }
  }
});
