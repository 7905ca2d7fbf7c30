/** Who was erased in HubSpot for privacy is forgotten: real worker, real Redis, real HTTP. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { ownRedis, type TestRedis } from '../support/redis.ts';
import { hubspotMirror, secret, tell } from '../support/commands/mirrored-contacts.ts';
import { start, until } from '../support/worker/fleet.ts';

const ann = 'ann@example.com';
const bob = 'bob@example.com';
const erased = 'contact.privacyDeletion';

let redis: TestRedis;
beforeAll(async () => void (redis = await ownRedis()));
beforeEach(async () => redis.flush());
afterAll(async () => redis.close());

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

const bytesOf = (folder: string): string =>
  readdirSync(join(folder, 'cli'))
    .map((name) => readFileSync(join(folder, 'cli', name), 'latin1'))
    .join('\n');

test('a privacy deletion removes the person from platform and snapshot for good', async () => {
  const { hubspot, call, shown, folder, work: begin, status } = await account();
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
  expect(bytesOf(folder)).not.toContain(ann);
  expect((await status()).attention).toEqual([]);

  // The address is given to a new record.
  hubspot.put(9, ann);
  const { said } = await call('sync');
  expect(said).toContain('erase');
  expect(shown(ann)).toBeUndefined();
});

test('more deletions than the guard allows are held, and reported', async () => {
  const { hubspot, call, seen, shown, work: begin, status } = await account();
  const ids = Array.from({ length: 12 }, (_, at) => 100 + at);
  for (const id of ids) hubspot.put(id, `p${id}@example.com`);
  await call('sync');
  for (const id of ids) hubspot.erase(id);
  const left = () => ids.filter((id) => shown(`p${id}@example.com`));
  const worker = await begin();
  const first = ids.slice(0, 6).map((id): [string, number] => [erased, id]);
  expect(await tell(worker.url, first)).toBe(202);
  await until(() => left().length === 6);
  expect(await worker.ends()).toBe(143);

  // What another one has let pass counts.
  const next = await begin();
  const rest = ids.slice(6).map((id): [string, number] => [erased, id]);
  expect(await tell(next.url, rest)).toBe(202);
  await until(async () => (await status()).erasuresUnfinished.held === 2);
  await until(() => left().length === 2);
  expect(await next.ends()).toBe(143);
  const { attention, erasuresUnfinished } = await status();
  expect(attention).toMatchObject([
    { code: 'erasure_unfinished', text: expect.stringContaining('2 awaiting approval') },
  ]);
  const fast = await call('sync', '--fast');
  expect([fast.code, left().length]).toEqual([4, 2]);
  expect(fast.said).toMatch(/`crm-mirror forget[^`]*` does it: /);
  for (const hash of erasuresUnfinished.people)
    expect((await seen('forget', hash, '--yes')).code).toBe(0);
  expect(left()).toEqual([]);
  expect((await status()).attention).toEqual([]);
});
