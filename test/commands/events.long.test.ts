/** What a CRM tells of, from its webhook to the platform: real worker, real Redis, real HTTP. */
import { randomUUID } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { expect, test } from 'vitest';
import { serve } from '../support/http/test-server.ts';
import { sharedRedis } from '../support/redis.ts';
import { createWorld, launch } from '../support/engine/engine-world.ts';
import { start, until } from '../support/worker/fleet.ts';

const secret = Buffer.from('a secret of the tests').toString('base64');
const token = 'a-token-of-the-tests';
const bearer = { authorization: `Bearer ${token}` };

const redis = await sharedRedis();

interface Served {
  schedule?: Record<string, unknown>;
  limits?: string[];
}

/** A worker of a CRM that is asked over HTTP; nothing is due but what it is told of. */
async function served({ schedule = {}, limits = ['*=1000000/1'] }: Served = {}) {
  const people = new Map<string, { id: string; email: string; news: string }>();
  const asked: string[] = [];
  const crm = await serve(({ url = '' }, response) => {
    asked.push(url);
    const id = /^\/people\/(\w+)$/.exec(url)?.[1];
    const found = id === undefined ? [...people.values()] : people.get(id);
    response.writeHead(found ? 200 : 404, { 'content-type': 'application/json' });
    response.end(JSON.stringify(found ?? {}));
  });
  const world = await createWorld({ kinds: ['contact'], channels: ['ch_news'], limits });
  const source = { type: 'http', url: `${crm}/people`, one: `${crm}/people/{id}` };
  const webhook = { format: 'standard', secret: `whsec_${secret}` };
  const file = world.config({
    redis: redis.url,
    schedule,
    timeoutMs: 5_000,
    contacts: { source, webhook },
    server: { port: 0, token },
  });
  const worker = start(file);
  const url = await worker.url();
  return { ...world, file, people, asked, worker, url };
}

async function tell(url: string, ids: string[], by = secret): Promise<number> {
  const body = JSON.stringify(ids.map((id) => ({ data: { id } })));
  const [id, now] = [randomUUID(), new Date()];
  const headers = {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
    'webhook-signature': new Webhook(by).sign(id, now, body),
  };
  return (await fetch(`${url}/webhooks/world`, { method: 'POST', headers, body })).status;
}

test('an event brings that person in line and reads no other record', async () => {
  const { people, asked, worker, url, shown } = await served();
  people.set('1', { id: '1', email: 'ann@example.com', news: 'yes' });
  people.set('2', { id: '2', email: 'bob@example.com', news: 'yes' });
  expect(await tell(url, ['1'])).toBe(202);
  await until(() => shown('ann@example.com')?.['ch_news'] === 'opt_in');
  people.set('1', { id: '1', email: 'ann@example.com', news: 'no' });
  expect(await tell(url, ['1', '7'])).toBe(202);
  await until(() => shown('ann@example.com')?.['ch_news'] === 'opt_out');
  expect(shown('bob@example.com')).toBeUndefined();
  expect(asked.filter((path) => !/^\/people\/[17]$/.test(path))).toEqual([]);
  expect(await tell(url, ['2'], Buffer.from('another').toString('base64'))).toBe(401);

  let metrics = '';
  // The platform shows a change before the run that made it has ended.
  await until(async () => {
    metrics = await (await fetch(`${url}/metrics`, { headers: bearer })).text();
    return /crm_mirror_runs_total\{[^}]*mode="single"[^}]*\} 2/.test(metrics);
  });
  expect(metrics).toMatch(/crm_mirror_events_accepted_total\{mirror="world"\} 3/);
  expect(metrics).toMatch(/crm_mirror_records\{[^}]*kind="contact"[^}]*\} 1/);
  const page = await (await fetch(url, { headers: bearer })).text();
  expect(page).toContain('world');
  expect(page).not.toContain('example.com');
  expect((await fetch(url)).status).toBe(401);
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
  expect(await worker.ends()).toBe(143);
});

test('an event is processed at once, even during a backfill of hundreds', async () => {
  const { people, worker, url, shown, file } = await served({ limits: ['*=10/1'] });
  people.set('1', { id: '1', email: 'ann@example.com', news: 'yes' });
  expect(await tell(url, ['1'])).toBe(202);
  await until(() => shown('ann@example.com')?.['ch_news'] === 'opt_in');
  for (let at = 2; at <= 150; at += 1) {
    people.set(`${at}`, { id: `${at}`, email: `p${at}@example.com`, news: 'yes' });
  }
  const brought = () => [...people.values()].filter(({ email }) => shown(email)).length;
  const backfill = launch(['backfill', '-c', file]);
  await until(() => brought() > 20);
  people.set('1', { id: '1', email: 'ann@example.com', news: 'no' });
  expect(await tell(url, ['1'])).toBe(202);
  await until(() => shown('ann@example.com')?.['ch_news'] === 'opt_out');
  expect(brought()).toBeLessThan(130);
  expect((await backfill.ended).code).toBe(0);
  expect(brought()).toBe(150);
  expect(shown('ann@example.com')?.['ch_news']).toBe('opt_out');
  expect(await worker.ends()).toBe(143);
});
