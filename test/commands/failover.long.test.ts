/** A mirror moves to another machine: real processes, one Redis, a snapshot each. */
import { copyFileSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { sharedRedis } from '../support/redis.ts';
import { createWorld, launch } from '../support/engine/engine-world.ts';
import { start } from '../support/worker/fleet.ts';

const redis = await sharedRedis();

test('an outdated snapshot is not served; a backup of the newest one is', async () => {
  const world = await createWorld({ kinds: ['contact'] });
  world.people([{ email: 'ann@example.com', news: 'yes' }]);
  const lines = { redis: redis.url, schedule: { full: '* * * * * *' }, timeoutMs: 5_000 };
  const file = world.config(lines);
  const one = start(file);
  await one.said('run done');
  const backup = join(world.folder, 'backup.sqlite');
  expect((await launch(['backup', backup, '-c', file]).ended).code).toBe(0);
  expect(await one.ends()).toBe(143);

  // The other machine has none, and would begin anew.
  const snapshot = 'other/snapshot.sqlite';
  const other = world.config({ ...lines, snapshot });
  const two = start(other);
  await two.said('has no snapshot of world, and one was begun elsewhere; none is begun here');
  expect(await two.ends()).toBe(143);
  const begun = await launch(['sync', '-c', other]).ended;
  expect(begun).toMatchObject({ code: 2, stderr: expect.stringContaining('Redis knows one') });

  const place = join(world.folder, snapshot);
  mkdirSync(dirname(place), { recursive: true });
  copyFileSync(backup, place);
  for (const part of ['memory', 'memory-key']) {
    copyFileSync(join(world.folder, `cli/snapshot.sqlite-${part}`), `${place}-${part}`);
  }
  const three = start(other);
  await three.said('worker serves full');
  await three.said('run done');
  expect(await three.ends()).toBe(143);

  // The first machine is back: what it has is older by now.
  const four = start(world.config(lines));
  await four.said('this is not the newest snapshot of world');
  expect(await four.ends()).toBe(143);
  const five = start(file, '--accept-lost-snapshot');
  await five.said('worker serves full');
  expect(await five.ends()).toBe(143);
});
