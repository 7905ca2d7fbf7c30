/** The page of the workers that share the mirrors of a folder, in a real browser. */
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/http/system-clock.ts';
import { openLockStore } from '../../src/compose/queues/lock-store.ts';
import { createNodeHeartbeat, fleetKeys } from '../../src/compose/queues/node-heartbeat.ts';
import { connectQuickly } from '../../src/compose/queues/redis-connections.ts';
import { drainNode, readFleet } from '../../src/compose/fleet/fleet.ts';
import { mirrored } from '../support/commands/mirrored-contacts.ts';
import { faultsOf, look, startConsole } from '../support/console/running-console.ts';
import { sharedRedis } from '../support/redis.ts';

const redis = await sharedRedis();

/** Two workers of three mirrors, one of which nobody serves. */
async function twoWorkers() {
  const quick = connectQuickly(redis.url);
  onTestFinished(() => quick.close());
  for (const [node, mirror] of [
    ['web1-aaaa', 'acme'],
    ['web2-bbbb', 'beta'],
  ] as const) {
    const beat = createNodeHeartbeat(quick, node, systemClock);
    onTestFinished(() => beat.close());
    await beat.begun;
    const since = Date.UTC(2026, 0, 5, 10);
    const mirrors = ['acme', 'beta', 'gamma'];
    // Anybody who reaches Redis may have written this.
    const host = `${node.slice(0, 4)}\ncrm-mirror: all is well`;
    beat.join(JSON.stringify({ host, since, mirrors, unable: [] }), []);
    const lock = openLockStore(quick, mirror, node);
    await lock.keep({ snapshot: mirror, generation: 1 });
  }
  await expect.poll(async () => (await readFleet(quick)).nodes.length).toBe(2);
  return {
    quick,
    fleet: {
      node: 'web1-aaaa',
      read: async () => readFleet(quick),
      drain: async (node: string, isDraining: boolean) => drainNode(quick, node, isDraining),
    },
  };
}

test('an operator sees the workers and their mirrors, and drains one', async () => {
  const { fleet, quick } = await twoWorkers();
  // Anybody who reaches Redis may have written this.
  await quick.redis.hset(fleetKeys.records, 'web3-cccc', '{bad');
  const seen = await readFleet(quick);
  expect(seen.nodes.length).toBe(2);
  expect(seen.nodes[1]?.host).toBe('web2 crm-mirror: all is well');
  const running = await startConsole([(await mirrored()).file], {}, [fleet]);
  const { page, complaints } = await look(running, { width: 390 });
  await page.getByRole('link', { name: 'The workers that serve them' }).click();
  expect(await page.locator('h1').innerText()).toBe('2 workers');
  expect(await page.getByText('Nobody serves 1 mirror: gamma').count()).toBe(1);
  const rows = page.locator('tbody tr');
  expect(await rows.nth(0).innerText()).toContain('this one');
  expect(await rows.nth(1).innerText()).toMatch(
    /web2-bbbb\s+web2 crm-mirror: all is well\s+.*\s1\s/s,
  );
  await page.getByText('Mirrors of web2-bbbb').click();
  expect(await page.getByRole('link', { name: 'beta' }).isVisible()).toBe(true);
  expect(await faultsOf(page)).toEqual([]);
  await rows.nth(1).getByRole('button', { name: 'Drain' }).click();
  expect(await page.getByRole('status').innerText()).toBe('web2-bbbb gives its mirrors away.');
  expect(await rows.nth(1).innerText()).toContain('Gives its mirrors away');
  // The last one keeps what it has.
  expect(await rows.nth(0).getByRole('button').count()).toBe(0);
  const { nodes } = await readFleet(quick);
  expect(nodes.map(({ isDraining }) => isDraining)).toEqual([false, true]);
  await rows.nth(1).getByRole('button', { name: 'Let it have mirrors' }).click();
  expect((await readFleet(quick)).nodes.some(({ isDraining }) => isDraining)).toBe(false);
  expect(complaints).toEqual([]);
  expect(running.failures).toEqual([]);
});
