/** Who was erased in HubSpot for privacy is forgotten: real worker, real Redis, real HTTP. */
import { expect, test } from 'vitest';
import { sharedRedis } from '../support/redis.ts';
import { hubspotMirror, secret, tell, storedBytes } from '../support/commands/mirrored-contacts.ts';
import { start, until } from '../support/worker/fleet.ts';

const ann = 'ann@example.com';
const bob = 'bob@example.com';
const erased = 'contact.privacyDeletion';

const redis = await sharedRedis();

async function account() {
  const lines = {
    redis: redis.url,
    server: { port: 0, token: 'a-token-of-the-tests' },
    policy: { deletes: 'off', absent: 'keep' },
  };
  const world = await hubspotMirror(lines, { webhook: { format: 'hubspot', secret } });
  /** What needs attention besides the worker, which a test may have ended. */
  const status = async () => {
    const { json } = await world.call('status', '--json');
    const attention: { code: string }[] = json.attention;
    return { ...json, attention: attention.filter(({ code }) => code !== 'worker_dead') };
  };
  return { ...world, status, work: async () => work(world.file) };
}

async function work(file: string) {
  const worker = start(file);
  return { ...worker, url: await worker.url() };
}

test('a privacy deletion removes the person from platform and snapshot for good', async () => {
  const world = await account();
  const { hubspot, call, shown, work: begin, status } = world;
  expect((await call('sync')).code).toBe(0);
  expect(shown(ann)).toEqual({ ch_news: 'opt_in' });
  hubspot.erase(1);
  const worker = await begin();
  hubspot.asked.length = 0;
  const happened: [string, number][] = [
    ['contact.deletion', 1],
    [erased, 1],
    // These two say nothing that is true, or of nobody.
    [erased, 2],
    [erased, 77],
  ];
  expect(await tell(worker.url, happened)).toBe(202);
  await worker.said('erased in the CRM: forgotten');
  expect(shown(ann)).toBeUndefined();
  expect(shown(bob)).toEqual({ ch_news: 'opt_in' });
  // The CRM was asked for them by their ids, and not read.
  await until(() => ['1', '2', '77'].every((id) => hubspot.asked.includes(id)));
  expect(hubspot.asked.filter((name) => !/^(properties\/contacts|1|2|77)$/.test(name))).toEqual([]);
  expect(await worker.ends()).toBe(143);
  expect(worker.heard()).not.toContain('@example');
  expect(storedBytes(world)).not.toContain(ann);
  expect((await status()).attention).toEqual([]);

  // The address is given to a new record.
  hubspot.put(9, ann);
  const { said } = await call('sync');
  expect(said).toContain('erase');
  expect(shown(ann)).toBeUndefined();
});
