/** Parts of a move that somebody has kept, and stores in Redis once more. */
import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { loadConfig } from '../../src/config/load-config.ts';
import { systemClock } from '../../src/http/system-clock.ts';
import { sealIn } from '../../src/compose/queues/payload-encryption.ts';
import { fleetKeys } from '../../src/compose/queues/fleet-keys.ts';
import { connectQuickly } from '../../src/compose/queues/redis-connections.ts';
import { partUse, receiveMirror } from '../../src/worker/moves/transfer-mirror.ts';
import { moveStore } from '../../src/compose/placement/move-store.ts';
import { mirrored } from '../support/commands/mirrored-contacts.ts';
import { ownRedis } from '../support/redis.ts';

test.each([
  ['refused by a target that made up another number', 'new', 'was damaged on its way'],
  ['read by the one that they were sealed for', 'old', 'the copy of world'],
])('are %s', async (_, nonce, why) => {
  const redis = await ownRedis();
  const client = new Redis(redis.url);
  const quick = connectQuickly(redis.url);
  onTestFinished(async () => {
    client.disconnect();
    quick.close();
    await redis.close();
  });
  const world = await mirrored();
  await world.call('sync');
  const known = loadConfig(world.file, {});
  const config = {
    ...known,
    snapshot: `${known.snapshot}-2`,
    memory: { ...known.memory, path: `${known.memory.path}-2` },
  };
  const move = { id: 'm1', from: 'a', to: 'b', disk: 'd@b', state: 'sending', proof: '' } as const;
  await client.hset(fleetKeys.moves, 'world', JSON.stringify(move));
  const store = moveStore(quick, 'world', 'm1');
  const manifest = Buffer.from(JSON.stringify({ people: 0, entries: 0, files: [] }));
  const sealed = sealIn(known, randomBytes)?.closeBytes(manifest, partUse(move, 'old', 0));
  await store.put(0, sealed ?? Buffer.alloc(0), { is: 'going', sent: 0, total: 0 });
  const clock = systemClock;
  const { signal: stop } = new AbortController();
  const randomHex = () => '';
  const side = { config, move, store, clock, stop, randomHex, nonce, note: () => undefined };
  await expect(receiveMirror(side)).rejects.toThrow(why);
  expect(readdirSync(dirname(config.snapshot))).not.toContain('snapshot.sqlite-2');
});
