/**
 * Somebody who can write Redis, and has nothing else, beside a real worker: what is stored there
 * starts at most a run of the mirror, or a reading of the CRM.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { createHmac } from 'node:crypto';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { hubspotMirror, secret, tell } from '../support/commands/mirrored-contacts.ts';
import { start, until } from '../support/worker/fleet.ts';
import { launch } from '../support/engine/engine-world.ts';
import { sharedRedis } from '../support/redis.ts';
import { untilHolds } from '../support/waiting.ts';

const [ann, bob] = ['ann@example.com', 'bob@example.com'];
const prefix = 'crm-mirror';

const redis = await sharedRedis();

/** A mirror with a worker, after its first run. */
async function served() {
  const lines = {
    redis: redis.url,
    schedule: { full: '0 0 1 1 *' },
    server: { port: 0, token: 'a-token-of-the-tests' },
    policy: { deletes: 'off', absent: 'keep' },
  };
  const world = await hubspotMirror(lines, { webhook: { format: 'hubspot', secret } });
  expect((await world.call('sync')).code).toBe(0);
  const begin = async () => {
    const worker = start(world.file);
    return { ...worker, url: await worker.url() };
  };
  const give = async (...argv: string[]): Promise<number | null> =>
    (await launch([...argv, '-c', world.file]).ended).code;
  return { ...world, begin, give };
}

/** What the attacker does. */
async function attacker() {
  const connection = new Redis(redis.url, { maxRetriesPerRequest: null });
  const heard = new Set<string>();
  // The client's own monitor fails if a command is shown before its answer has been read.
  const listener = connect(Number(new URL(redis.url).port), '127.0.0.1').setEncoding('latin1');
  let rest = '';
  listener.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\r\n');
    rest = lines.pop() ?? '';
    // Whatever looks sealed, alone or in something else.
    for (const line of lines) {
      for (const [text] of line.matchAll(/[A-Za-z0-9+/]{40,}={0,2}/g)) heard.add(text);
    }
  });
  listener.write('MONITOR\r\n');
  await once(listener, 'data');
  /** Stores jobs, and waits until the worker has done with them. */
  const store = async (name: string, jobs: readonly { name: string; data: unknown }[]) => {
    const queue = new Queue(name, { connection, prefix });
    const opts = { removeOnComplete: true };
    const stored = await queue.addBulk(jobs.map((job) => ({ ...job, opts })));
    await untilHolds(async () => {
      const states = await Promise.all(stored.map(async (job) => job.getState()));
      expect(states.filter((state) => state !== 'unknown' && state !== 'failed')).toEqual([]);
    });
    await queue.close();
  };
  return {
    connection,
    heard,
    store,
    /** Stores everything heard so far as commands. */
    async play() {
      const jobs = [...heard].map((data) => ({ name: 'command', data }));
      await store('commands-world', jobs);
      await store('errands-world', jobs);
    },
    close() {
      listener.destroy();
      connection.disconnect();
    },
  };
}

test('a sealed command is run once, also after a restart', async () => {
  const { begin, call, give } = await served();
  const runs = async (): Promise<number> =>
    JSON.parse((await call('runs', '--json')).said).runs.length;
  const worker = await begin();
  const evil = await attacker();
  expect(await give('sync')).toBe(0);
  expect(await runs()).toBe(2);
  expect(evil.heard.size).toBeGreaterThan(0);
  await evil.play();
  expect(await runs()).toBe(2);
  expect(await worker.ends()).toBe(143);
  const next = await begin();
  await evil.play();
  expect(await runs()).toBe(2);
  // A new one is run.
  expect(await give('sync')).toBe(0);
  expect(await runs()).toBe(3);
  evil.close();
  expect(await next.ends()).toBe(143);
});

test('no text that the CRM chooses becomes a command', async () => {
  const { begin, shown } = await served();
  const worker = await begin();
  const evil = await attacker();
  const call = { argv: ['forget', bob], terminal: false, interactive: false };
  const order = { number: '1', expiresAt: Date.now() + 60_000, text: JSON.stringify(call) };
  const ids = [call, order].map((text) => JSON.stringify(text));
  const url = `${worker.url}/webhooks/world`;
  const body = JSON.stringify(
    ids.flatMap((objectId) => [
      { subscriptionType: 'contact.creation', objectId },
      { subscriptionType: 'contact.privacyDeletion', objectId },
    ]),
  );
  const timestamp = String(Date.now());
  const signature = createHmac('sha256', secret).update(`POST${url}${body}${timestamp}`);
  const headers = {
    'content-type': 'application/json',
    'x-hubspot-request-timestamp': timestamp,
    'x-hubspot-signature-v3': signature.digest('base64'),
  };
  expect((await fetch(url, { method: 'POST', headers, body })).status).toBe(202);
  const place = `${prefix}:world:deliveries:accepted`;
  await untilHolds(async () => expect(await evil.connection.llen(place)).toBe(2));
  await untilHolds(() => expect(evil.heard.size).toBeGreaterThan(3));
  await evil.play();
  expect(shown(bob)).toEqual({ ch_news: 'opt_in' });
  evil.close();
  expect(await worker.ends()).toBe(143);
});

test('an erasure in Redis is a reading of the CRM, unless the server has signed it', async () => {
  const { hubspot, begin, shown } = await served();
  const worker = await begin();
  const evil = await attacker();
  // Ann was deleted in the CRM, which is no erasure, and nobody has the record 77.
  hubspot.erase(1);
  expect(await tell(worker.url, [['contact.privacyDeletion', 77]])).toBe(202);
  await until(() => hubspot.asked.includes('77'));
  const signatures = [true, 1, '', ...evil.heard];
  expect(signatures.length).toBeGreaterThan(3);
  const forged = signatures.map((erased) => ({ name: 'erased', data: { id: '1', erased } }));
  const wrong = [undefined, null, {}, { id: 1 }, { id: {} }, 'x'].map((data) => ({
    name: 'event',
    data,
  }));
  hubspot.asked.length = 0;
  await evil.store('events-world', [...forged, ...wrong]);
  expect(hubspot.asked).toContain('1');
  expect(shown(ann)).toEqual({ ch_news: 'opt_in' });
  expect(await tell(worker.url, [['contact.privacyDeletion', 1]])).toBe(202);
  await worker.said('erased in the CRM: forgotten');
  expect(shown(ann)).toBeUndefined();
  evil.close();
  expect(await worker.ends()).toBe(143);
});

test('a forged schedule starts runs of the mirror, and a forged counter none', async () => {
  const { begin, call, file, writes } = await served();
  const worker = await begin();
  const evil = await attacker();
  writes();
  const argv = ['forget', bob];
  const names = ['forget', 'sync', '__proto__', 'full', 'sentinel', 'templates'];
  for (const queue of ['runs-world', 'sentinel-world']) {
    await evil.store(
      queue,
      names.map((name) => ({ name, data: { argv, by: 'Olga', name } })),
    );
  }
  const runs = JSON.parse((await call('runs', '--json')).said);
  expect(JSON.stringify(runs)).not.toContain('Olga');
  expect(await worker.ends()).toBe(143);
  for (const [generation, said] of [
    ['999999', 'this is not the newest snapshot'],
    ['1e300', 'it was forged'],
    ['-1', 'worker serves full'],
    ['x', 'worker serves full'],
  ] as const) {
    await evil.connection.hset(`${prefix}:world:{home}`, 'generation', generation);
    const next = start(file);
    await next.said(said);
    expect(await next.ends()).toBe(143);
  }
  expect(writes()).toEqual([]);
  evil.close();
});
