/** What a worker does by itself around its scheduled runs: repeats, the first load, the key. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { loadConfig } from '../../src/config/load-config.ts';
import { openSnapshot } from '../../src/store/open-snapshot.ts';
import { createRunRetries } from '../../src/worker/mirror-schedule.ts';
import type { Tick } from '../../src/config/schema/cron-pattern.ts';
import { virtualClock, untilHolds } from '../support/waiting.ts';
import { hostOf } from '../support/worker/mirror-host.ts';
import { createWorld } from '../support/engine/engine-world.ts';

const minuteMs = 60_000;
const ann = 'ann@example.com';

/** A mirror that a worker has, whose minutes pass when a test says so. */
async function stage() {
  const world = await createWorld({ kinds: ['contact'] });
  world.people([{ email: ann, news: 'yes' }]);
  const keyFile = join(world.folder, 'key');
  writeFileSync(keyFile, 'key_live_world');
  const schedule = { full: '0 3 * * *', fast: '*/5 * * * *' };
  const file = world.config({ schedule, redis: 'redis://127.0.0.1:1' });
  const text = readFileSync(file, 'utf8');
  expect(text).toContain('key_live_world');
  writeFileSync(
    file,
    text.replace(/"?apiKey"?:\s*"?key_live_world"?/, `"apiKeyFile": "${keyFile}"`),
  );
  const { snapshot: path } = loadConfig(file, {});
  const stop = new AbortController();
  const clock = virtualClock();
  const serve = () => {
    const home = hostOf(file, { clock, stop });
    onTestFinished(async () => {
      stop.abort();
      await home.close();
    });
    return home;
  };
  const runs = () => {
    const snapshot = openSnapshot(path);
    const found = snapshot.runs.newest(100).map(({ mode, status }) => `${mode} ${status}`);
    snapshot.close();
    return found;
  };
  return { world, keyFile, serve, runs, clock };
}

test('a run is repeated after 1, 2, 5, and then every 15 minutes, until it goes well', async () => {
  const clock = virtualClock(0);
  const at: number[] = [];
  const retries = createRunRetries(clock, async (tick) => {
    at.push(clock.now() / minuteMs);
    if (at.length === 5) retries.wentWell(tick);
    else retries.failed(tick);
    return 'over';
  });
  retries.failed('full');
  await clock.advance(120 * minuteMs);
  expect(at).toEqual([1, 3, 8, 23, 38]);
  retries.failed('full');
  await clock.advance(minuteMs);
  expect(at.at(-1)).toBe(121);
});

test('a run of the schedule takes the place of a repeat that waits', async () => {
  const clock = virtualClock(0);
  const repeated: Tick[] = [];
  const retries = createRunRetries(clock, async (tick) => {
    repeated.push(tick);
    return 'over';
  });
  retries.failed('full');
  retries.failed('fast');
  retries.wentWell('full');
  retries.failed('fast');
  await clock.advance(minuteMs);
  expect(repeated).toEqual([]);
  await clock.advance(minuteMs);
  expect(repeated).toEqual(['fast']);
});

test('a repeat that could not begin is tried again a minute later, and none after the end', async () => {
  const clock = virtualClock(0);
  let count = 0;
  const retries = createRunRetries(clock, async () => {
    count += 1;
    return 'elsewhere';
  });
  retries.failed('full');
  await clock.advance(3 * minuteMs);
  expect(count).toBe(3);
  retries.close();
  await clock.advance(10 * minuteMs);
  expect(count).toBe(3);
});

describe('a worker', () => {
  test('repeats a full run that failed, also after a restart, and does not wait for the next', async () => {
    const { world, serve, runs, clock } = await stage();
    rmSync(join(world.folder, 'people.csv'));
    const home = serve();
    await home.claim();
    await home.run('full', 0);
    expect(runs()).toEqual(['full failed']);
    await clock.advance(minuteMs);
    await untilHolds(() => expect(runs()).toEqual(['full failed', 'full failed']));
    await home.close();
    world.people([{ email: ann, news: 'yes' }]);
    const next = serve();
    await next.claim();
    await clock.advance(minuteMs);
    await untilHolds(() => expect(runs()[0]).toBe('full done'));
    await clock.advance(60 * minuteMs);
    expect(runs()).toHaveLength(3);
  });

  test.each(['fast', 'templates', 'full'] as const)(
    'begins with a full run when %s is due first, and then goes on as usual',
    async (tick) => {
      const { serve, runs, world } = await stage();
      const home = serve();
      await home.claim();
      await home.run(tick, 0);
      expect(runs()).toEqual(['full done']);
      expect(world.shown(ann)).toMatchObject({ ch_news: 'opt_in' });
      await home.run('fast', 0);
      expect(runs()).toEqual(['fast done', 'full done']);
    },
  );

  test('begins with a full run when an event comes first, and with one only', async () => {
    const { serve, runs, clock } = await stage();
    const home = serve();
    await home.claim();
    await Promise.all(['1', '2', '3'].map((id) => home.record(id, 'changed', '')));
    await clock.advance(1);
    await untilHolds(() => expect(runs()).toContain('full done'));
    await home.run('fast', 0);
    await home.record('1', 'changed', '');
    expect(runs().filter((run) => !run.startsWith('single'))).toEqual(['fast done', 'full done']);
  });

  test('reads a key file that has changed before the next run', async () => {
    const { serve, runs, keyFile } = await stage();
    const home = serve();
    await home.claim();
    await home.run('full', 0);
    writeFileSync(keyFile, '');
    await home.run('full', 0);
    expect(runs()).toEqual(['full done', 'full done']);
    writeFileSync(keyFile, 'key_of_nobody\n');
    await home.run('full', 0);
    expect(runs()[0]).toBe('full failed');
    writeFileSync(keyFile, 'key_live_world\n');
    await home.run('full', 0);
    expect(runs()[0]).toBe('full done');
  });
});
