/** Workers whose snapshots are on local disks: real processes on a real Redis. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { ownRedis, type TestRedis } from '../support/redis.ts';
import { until } from '../support/commands/worker-processes.ts';
import { twoMachines } from '../support/worker/two-machines.ts';

let redis: TestRedis;
beforeAll(async () => void (redis = await ownRedis()));
beforeEach(async () => redis.flush());
afterAll(async () => redis.close());

test('a mirror stays with the machine of its disk, and is served again when that returns', async () => {
  const mirrors = ['m0', 'm1', 'm2', 'm3'];
  const staged = await twoMachines({ redis: redis.url, mirrors });
  const { start, fleet, homeOf, stateOf, worlds } = staged;
  const one = await start('one');
  for (const mirror of mirrors) await until(async () => (await homeOf(mirror)) === one.node);
  for (const [mirror, { shown }] of worlds) {
    await until(() => shown(`ann@${mirror}.example`)?.['ch_news'] === 'opt_in');
  }
  const two = await start('two');
  await two.said('2 workers for 4 mirrors');
  one.kill('SIGKILL');
  await two.said('nobody can serve 4 mirrors on a disk of');
  const { stdout } = await fleet('status');
  expect(stdout).toContain('4 mirrors without a home: m0, m1, m2, m3');
  expect(stdout).toContain('no living worker has: m0, m1, m2, m3 → start the worker of');
  const told = JSON.parse((await fleet('status', '--json')).stdout);
  expect(told.withoutDisk.map(({ mirror }: { mirror: string }) => mirror)).toEqual(mirrors);
  expect(mirrors.filter((name) => existsSync(join(stateOf('two'), `${name}.sqlite`)))).toEqual([]);
  const again = await start('one');
  for (const mirror of mirrors) await until(async () => (await homeOf(mirror)) === again.node);
  expect(two.heard()).not.toContain('worker serves');
});
