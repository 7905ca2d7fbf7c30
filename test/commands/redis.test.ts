import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { organizationOf } from '../../src/http/rate-limit/shared/shared-budget.ts';
import { sharedRedis } from '../support/redis.ts';
import { mirrored, type Mirrored } from '../support/commands/mirrored-contacts.ts';

const redis = await sharedRedis();

async function sharing(url: string): Promise<Mirrored> {
  const mirror = await mirrored();
  const config: object = JSON.parse(readFileSync(mirror.file, 'utf8'));
  writeFileSync(mirror.file, JSON.stringify({ ...config, redis: url }));
  return mirror;
}

test('every command that talks to the platform asks Redis first', async () => {
  const mirror = await sharing(redis.url);
  let before = await redis.scripts();
  for (const words of [['check'], ['plan'], ['sync'], ['sync', '--person', 'ann@example.com']]) {
    const { code, err } = await mirror.call(...words);
    const after = await redis.scripts();
    expect({ words, code, err, asked: after > before }).toMatchObject({ code: 0, asked: true });
    expect(err).not.toMatch(/Redis/);
    before = after;
  }
  const client = new Redis(redis.url);
  const keys = await client.keys('*');
  const logs = await Promise.all(keys.map((key) => client.xrange(key, '-', '+')));
  client.disconnect();
  expect(keys).toContainEqual(
    expect.stringMatching(/^crm-mirror:limit:5:\{[0-9a-f]{32}:contacts\.list\}$/),
  );
  expect(JSON.stringify([keys, logs])).not.toMatch(/example|ann@|key/);
});

test('a command begins no empty snapshot of a mirror that has one elsewhere', async () => {
  const mirror = await sharing(redis.url);
  const client = new Redis(redis.url);
  const { mirror: mirrorName } = JSON.parse(readFileSync(mirror.file, 'utf8'));
  const home = `crm-mirror:${mirrorName}:{home}`;
  await client.hset(home, { snapshot: '7f', generation: 3 });
  // A worker that has died, or that somebody has written there.
  await client.hset('crm-mirror:fleet:holders', mirrorName, 'nobody');
  const list = `${mirror.file}.txt`;
  writeFileSync(list, 'ann@example.com\n');
  const before = readdirSync(mirror.folder, { recursive: true });
  for (const words of [
    ['sync'],
    ['sync', '--people', list],
    ['sync', '--person', 'ann@example.com'],
    ['forget', 'ann@example.com', '--yes'],
    ['retry'],
  ]) {
    const { code, err } = await mirror.call(...words);
    expect({ words, code, err }).toEqual({
      words,
      code: 2,
      err: expect.stringMatching(/^crm-mirror: \S+: there is no snapshot here, and Redis .+ → .+$/),
    });
  }
  expect(readdirSync(mirror.folder, { recursive: true })).toEqual(before);
  await client.del(home);
  client.disconnect();
  expect((await mirror.call('sync')).code).toBe(0);
});

test('without Redis a command prints one line and does its work', async () => {
  const mirror = await sharing('redis://ann:secret@127.0.0.1:1');
  const { code, err } = await mirror.call('sync');
  expect(code).toBe(0);
  const lines = err.split('\n').filter((line) => /Redis/.test(line));
  expect(lines).toEqual([
    'crm-mirror: Redis is away (connect ECONNREFUSED 127.0.0.1:1): ' +
      'this process keeps to the limits by itself',
  ]);
});

describe('check', () => {
  const lineOf = async (url: string) => {
    const { code, out } = await (await sharing(url)).call('check');
    return { code, line: out.split('\n').find((line) => line.includes(' Redis: ')) };
  };
  const set = async (name: string, value: string) => {
    const client = new Redis(redis.url);
    await client.config('SET', name, value);
    client.disconnect();
  };

  test('names the server that answers, and an unsuitable eviction policy', async () => {
    const found = await lineOf(redis.url);
    expect(found).toEqual({
      code: 0,
      line: expect.stringMatching(/^ok {3}Redis: (Redis|Valkey) \d\S+ answers$/),
    });
    await set('maxmemory-policy', 'allkeys-lru');
    const { code, line } = await lineOf(redis.url);
    await set('maxmemory-policy', 'noeviction');
    expect(code).toBe(0);
    expect(line).toMatch(/^NOTE Redis: .*allkeys-lru.* → set maxmemory-policy noeviction$/);
  });

  test.each([
    ['away', 'redis://ann:secret@127.0.0.1:1', /ECONNREFUSED 127\.0\.0\.1:1/],
    ['a wrong password', undefined, /WRONGPASS/],
  ])('%s', async (_, url, why) => {
    const { code, line } = await lineOf(url ?? redis.url.replace('//', '//ann:secret@'));
    expect(code).toBe(1);
    expect(line).toMatch(/^FAIL Redis: /);
    expect(line).toMatch(why);
    expect(line).not.toContain('secret');
  });
});

test('an organization has one name in Redis, which reveals nothing', () => {
  const [url, apiKey] = ['https://platform.example', 'key_live_1234567890'];
  const name = organizationOf({ url, apiKey });
  expect(name).toMatch(/^[0-9a-f]{32}$/);
  expect(organizationOf({ url, apiKey })).toBe(name);
  expect(organizationOf({ url, apiKey: 'key_live_1234567891' })).not.toBe(name);
  expect(organizationOf({ url: 'https://other.example', apiKey })).not.toBe(name);
});
