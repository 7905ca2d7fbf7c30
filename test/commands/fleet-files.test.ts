/** What `fleet status` says of a folder with files that it cannot use. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { fleetKeys } from '../../src/compose/queues/node-heartbeat.ts';
import { calling } from '../support/commands/mirrored-contacts.ts';
import { sharedRedis } from '../support/redis.ts';
import { scratch } from '../support/sources/source-reading.ts';

const redis = await sharedRedis();

test('a file that cannot be used is named with what is wrong, and is no success', async () => {
  const folder = await scratch();
  const write = (mirror: string, port: string) => {
    const lines = {
      mirror,
      redis: redis.url,
      snapshot: `${mirror}.sqlite`,
      platform: { url: 'http://127.0.0.1:1', apiKey: 'key_live_world' },
      schedule: { full: '0 3 * * *' },
      contacts: {
        source: { type: 'csv', path: 'people.csv' },
        id: 'id',
        email: 'email',
        channels: [{ id: 'ch_news', subscription: 'news' }],
      },
      server: { port },
    };
    writeFileSync(join(folder, `${mirror}.yaml`), JSON.stringify(lines));
  };
  const status = async (...flags: string[]) =>
    calling(['fleet', 'status', '--mirrors', folder, ...flags]);
  write('m0', '${PORT}');
  const none = await status();
  expect(none.code).toBe(2);
  expect(none.err).toMatch(/m0\.yaml:.*PORT.*\n.*no file can be used → correct the files/);
  expect(none.out).toBe('');
  write('m1', '8080');
  const some = await status();
  expect(some.code).toBe(1);
  expect(some.out).toContain('Nobody serves 1 mirror: m1\nNot known, see above: m0.yaml');
  expect((await status('--json')).json).toMatchObject({
    withoutHome: ['m1'],
    unusable: ['m0.yaml'],
    elsewhere: [],
  });
  // A mirror whose snapshot is on another machine has lost nothing, and needs no backfill here.
  const client = new Redis(redis.url);
  await client.hset(fleetKeys.holders, 'm1', '');
  await client.quit();
  const away = await status('--json');
  expect(away.json).toMatchObject({ mirrors: [], elsewhere: ['m1'], withoutHome: ['m1'] });
  expect((await status()).out).not.toContain('backfill');
});
