/** Events and the last deliveries of a CRM: what the console shows of them, and to whom. */
import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { Webhook as Signer } from 'standardwebhooks';
import { loadConfig } from '../../src/config/load-config.ts';
import { readMemoryKey } from '../../src/store/memory/memory-key.ts';
import { systemClock } from '../../src/http/system-clock.ts';
import { createMetrics } from '../../src/worker/server/metrics.ts';
import { deliveryLogOf, openEventQueue } from '../../src/compose/queues/event-queue.ts';
import { sealOf } from '../../src/compose/queues/payload-encryption.ts';
import { mirrored } from '../support/commands/mirrored-contacts.ts';
import { faultsOf, look, startConsole, viewer } from '../support/console/running-console.ts';
import { serve } from '../support/http/test-server.ts';
import { ownRedis } from '../support/redis.ts';
import { startServer } from '../support/server/started-server.ts';
import { connectTo } from '../support/worker/connections.ts';
import { untilHolds } from '../support/waiting.ts';

const secret = `whsec_${Buffer.alloc(24).toString('base64')}`;
const odd = '-d "of space"';
const ann = 'ann@example.com';
/** An id of a CRM that escapes the address of a person. */
const escaped = 'mailto%3Abob%40example.com';

/** A mirror of a CRM whose ids are odd, and the webhook of its worker. */
async function delivered() {
  const redis = await ownRedis();
  const people = new Map(
    [
      [odd, ann],
      [escaped, 'bob@example.com'],
    ].map(([id = '', email]) => [id, { id, email, news: 'yes', product: '' }]),
  );
  const crm = await serve(({ url = '' }, response) => {
    const id = decodeURIComponent(url.slice(1));
    if (url === '/') return response.end(JSON.stringify([...people.values()]));
    if (!people.has(id)) response.statusCode = 404;
    return response.end(JSON.stringify(people.get(id) ?? {}));
  });
  const world = await mirrored();
  const file = world.config({
    redis: redis.url,
    schedule: { full: '0 3 * * *' },
    contacts: {
      source: { type: 'http', url: `${crm}/`, one: `${crm}/{id}` },
      webhook: { format: 'standard', secret },
    },
  });
  expect((await world.call('sync')).code).toBe(0);
  const key = readMemoryKey(loadConfig(file, {}).memory.keyFile)?.secret ?? '';
  const place = { mirror: 'world', clock: systemClock, connections: connectTo(redis.url) };
  const events = openEventQueue(place);
  const client = new Redis(redis.url);
  const seal = () => sealOf({ key, mirror: 'world', random: randomBytes });
  const deliveries = deliveryLogOf(client, { mirror: 'world', clock: systemClock, seal });
  const webhook = { format: 'standard', secret, id: 'data.id', events, deliveries } as const;
  const webhookOf = (mirror: string) => (mirror === 'world' ? webhook : undefined);
  const metrics = createMetrics([]);
  const server = await startServer({ webhookOf, metrics, publicUrl: undefined, token: 'tok' });
  onTestFinished(async () => {
    await server.close();
    await events.close();
    client.disconnect();
    await redis.close();
  });
  const send = async (ids: readonly string[], by = secret) => {
    const body = JSON.stringify(ids.map((id) => ({ data: { id } })));
    const [id, at] = [`msg_${randomBytes(4).toString('hex')}`, new Date()];
    const headers = {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': `${Math.floor(at.getTime() / 1000)}`,
      'webhook-signature': new Signer(by).sign(id, at, body),
    };
    return (await fetch(`${server.url}/webhooks/world`, { method: 'POST', headers, body })).status;
  };
  const stored = async (): Promise<string> => {
    const lists = ['accepted', 'refused'].map((name) =>
      client.lrange(`crm-mirror:world:deliveries:${name}`, 0, -1),
    );
    return JSON.stringify(await Promise.all(lists));
  };
  return { world, file, redis, events, people, client, send, stored };
}

const forged = `whsec_${Buffer.alloc(24, 1).toString('base64')}`;

test('a record is listed and processed again, whatever its id, and refusals say why', async () => {
  const { world, file, people, client, send, stored } = await delivered();
  expect(await send([odd, escaped])).toBe(202);
  expect(await send([odd], forged)).toBe(401);
  await untilHolds(async () => expect(await stored()).toContain('forged'));
  for (const list of ['accepted', 'refused']) {
    // What anybody who reaches Redis may have written is left out.
    await client.lpush(`crm-mirror:world:deliveries:${list}`, 'not JSON', '{}');
  }
  for (const text of ['example.com', 'of space', 'mailto']) {
    expect(await stored()).not.toContain(text);
  }
  const running = await startConsole([file]);
  const { page, complaints } = await look(running);
  await page.goto('/m/world/events');
  expect(await faultsOf(page)).toEqual([]);
  const last = page.getByRole('region').or(page.locator('section')).filter({
    hasText: 'Last deliveries',
  });
  const row = last.getByRole('row').filter({ hasText: odd });
  await row.getByText('accepted, waits').waitFor();
  await page.getByText('it is signed with another secret').waitFor();
  // The worker has processed them, and the record changes once more without an event.
  const jobs = await client.keys('crm-mirror:events-world:*');
  await client.del(...jobs);
  people.set(odd, { id: odd, email: ann, news: 'no', product: '' });
  await page.reload();
  await row.getByText('accepted, done').waitFor();
  await row.getByRole('button', { name: 'Process again' }).click();
  await page.getByRole('status').waitFor();
  expect(world.writes().at(-1)?.body).toMatchObject({ subscription: 'opt_out' });
  expect([complaints, running.failures]).toEqual([[], []]);
});

test('an event that waits is listed, and an operator has its record processed now', async () => {
  const { world, file, events, people, redis } = await delivered();
  const running = await startConsole([file]);
  const { page, complaints } = await look(running);
  await page.goto('/m/world/events');
  await page.getByText('Every event is processed.').waitFor();
  people.set(odd, { id: odd, email: ann, news: 'no', product: '' });
  await events.add([odd]);
  await page.reload();
  expect(await faultsOf(page)).toEqual([]);
  await page.getByRole('button', { name: 'Process now' }).click();
  await page.getByRole('status').waitFor();
  expect(world.writes().at(-1)?.body).toMatchObject({ subscription: 'opt_out' });
  await redis.kill();
  await page.reload();
  await page.getByText('Redis cannot be asked').waitFor();
  expect([complaints, running.failures]).toEqual([[], []]);
});

test('a viewer sees hashes of ids, also where an address is escaped', async () => {
  const { file, send } = await delivered();
  expect(await send([odd, escaped])).toBe(202);
  const running = await startConsole([file], { user: viewer });
  const { page } = await look(running);
  await page.goto('/m/world/events');
  const html = await page.content();
  for (const text of ['example.com', 'mailto', 'of space']) expect(html).not.toContain(text);
  expect(
    await page
      .getByRole('row')
      .filter({ hasText: /#[0-9a-f]{12}/ })
      .count(),
  ).toBe(4);
});

test('`sync` takes a person or the id of a record', async () => {
  const { world, people } = await delivered();
  people.set(odd, { id: odd, email: ann, news: 'no', product: '' });
  expect((await world.call('sync', `--id=${odd}`)).code).toBe(0);
  expect(world.shown(ann)).toMatchObject({ ch_news: 'opt_out' });
  for (const [why, ...args] of [
    ["'--person <who>' cannot be used with option '--id <id>'", '--person', ann, '--id=1'],
    ['--id: it is empty', '--id='],
  ] as const) {
    const { code, err } = await world.call('sync', ...args);
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(why) });
  }
});

test('`sync --id` is refused by a source that cannot read one record', async () => {
  const world = await mirrored();
  await world.call('sync');
  const { code, said } = await world.call('sync', '--id=1');
  expect({ code, said }).toEqual({ code: 2, said: expect.stringMatching(/→/) });
});
