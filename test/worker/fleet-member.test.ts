/** A worker in its fleet, with a real Redis. */
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/http/system-clock.ts';
import { createFleetMember } from '../../src/compose/fleet/fleet-member.ts';
import { readFleet } from '../../src/compose/fleet/fleet.ts';
import { shareConnections } from '../../src/compose/queues/shared-connections.ts';
import { sharedRedis } from '../support/redis.ts';
import { scratch } from '../support/sources/source-reading.ts';
import { untilHolds } from '../support/waiting.ts';

const redis = await sharedRedis();

const names = async (quick: Parameters<typeof readFleet>[0]) =>
  (await readFleet(quick)).nodes.map(({ name }) => name);

test('a worker that quits while it asks Redis stays away, and leaves no lock', async () => {
  const folder = await scratch();
  writeFileSync(join(folder, 'acme.db'), '');
  const shared = shareConnections('node-a', systemClock);
  onTestFinished(() => shared.close());
  const { quick, node } = shared.to(redis.url);
  const own = quick();
  const gate = Promise.withResolvers<void>();
  let asked = 0;
  const member = createFleetMember({
    node,
    quick: {
      ...own,
      async ask(command, fix) {
        const reply = await own.ask(command, fix);
        asked += 1;
        await gate.promise;
        return reply;
      },
    },
    clock: systemClock,
    host: 'here',
    note: () => undefined,
    moved: () => undefined,
  });
  member.join([{ mirror: 'acme', snapshot: join(folder, 'acme.db') }]);
  const locks = () => readdirSync(folder).filter((name) => name.startsWith('.crm-mirror-node-a'));
  await untilHolds(async () => {
    expect(asked).toBeGreaterThanOrEqual(1);
    expect(await names(own)).toEqual(['node-a']);
  });
  expect(locks()).not.toEqual([]);
  await member.quit();
  gate.resolve();
  // What was asked is answered, and a beat would have come.
  await systemClock.sleep(300);
  expect(await names(own)).toEqual([]);
  expect(locks()).toEqual([]);
});
