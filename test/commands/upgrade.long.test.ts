/** An upgrade without a gap: workers of two versions, one after the other and beside each other. */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { serve } from '../support/http/test-server.ts';
import { freePort } from '../support/port.ts';
import { ownRedis, type TestRedis } from '../support/redis.ts';
import { createWorld } from '../support/engine/engine-world.ts';
import { isKnown, unpackVersion } from '../support/commands/earlier-version.ts';
import { startWorker, until } from '../support/commands/worker-processes.ts';

/** The last version whose workers did not share the mirrors of a folder. */
const earlier = '4724c68eefce6b84e50dc402931009dfad0272e3';

let redis: TestRedis;
beforeAll(async () => void (redis = await ownRedis()));
afterAll(async () => redis.close());

const secret = Buffer.from('a secret of the tests').toString('base64');

interface Person {
  id: string;
  email: string;
  news: string;
}

/** A CRM that tells of each new person once, and repeats what no worker has accepted. */
async function tellingCrm(ports: readonly number[]) {
  const people = new Map<string, Person>();
  const url = await serve(({ url = '' }, response) => {
    const id = /^\/people\/(\w+)$/.exec(url)?.[1];
    const found = id === undefined ? [...people.values()] : people.get(id);
    response.writeHead(found ? 200 : 404, { 'content-type': 'application/json' });
    response.end(JSON.stringify(found ?? {}));
  });
  const post = async (id: string, port: number): Promise<boolean> => {
    const body = JSON.stringify([{ data: { id } }]);
    const [name, now] = [randomUUID(), new Date()];
    const headers = {
      'content-type': 'application/json',
      'webhook-id': name,
      'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
      'webhook-signature': new Webhook(secret).sign(name, now, body),
    };
    const options = { method: 'POST', headers, body };
    return fetch(`http://127.0.0.1:${port}/webhooks/told`, options).then(
      ({ status }) => status === 202,
      () => false,
    );
  };
  const over = new AbortController();
  const tell = async (): Promise<void> => {
    for (let n = 0; !over.signal.aborted; n += 1) {
      const id = `p${n}`;
      people.set(id, { id, email: `${id}@example.com`, news: 'yes' });
      for (let at = n; !(await post(id, ports[at % ports.length] ?? 0)); at += 1) await pause(50);
      await pause(200);
    }
  };
  return {
    url,
    begin() {
      const told = tell();
      return async (): Promise<Person[]> => {
        over.abort();
        await told;
        return [...people.values()];
      };
    },
  };
}

/** Two mirrors with one configuration for both versions: one of events, and one of a schedule. */
async function stage() {
  const ports = [await freePort(), await freePort()];
  const crm = await tellingCrm(ports);
  const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-upgrade-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'due.csv'), 'id,email,news\n1,ann@example.com,yes\n');
  const events = {
    source: { type: 'http', url: `${crm.url}/people`, one: `${crm.url}/people/{id}` },
    webhook: { format: 'standard', secret: `whsec_${secret}` },
  };
  const told = await createWorld({ kinds: ['contact'], channels: ['ch_news'] });
  const due = await createWorld({ kinds: ['contact'], channels: ['ch_news'] });
  const parts = {
    told: { world: told, schedule: {}, contacts: events },
    due: {
      world: due,
      schedule: { full: '* * * * * *' },
      contacts: { source: { type: 'csv', path: join(folder, 'due.csv') } },
    },
  };
  for (const [mirror, { world, schedule, contacts }] of Object.entries(parts)) {
    const channels = [{ id: 'ch_news', subscription: 'news' }];
    const lines = {
      mirror,
      redis: redis.url,
      snapshot: `state/${mirror}.sqlite`,
      platform: { url: world.server.url, apiKey: 'key_live_world', timeoutMs: 5_000 },
      schedule,
      contacts: { ...contacts, id: 'id', email: 'email', channels },
      server: { port: '${PORT}' },
    };
    writeFileSync(join(folder, `${mirror}.yaml`), JSON.stringify(lines));
  }
  const program = unpackVersion(earlier);
  const start = (isEarlier: boolean, ...args: string[]) => {
    const env = { PORT: String(ports[isEarlier ? 0 : 1]) };
    const worker = startWorker(args, env, isEarlier ? program : undefined);
    onTestFinished(() => worker.kill('SIGKILL'));
    return worker;
  };
  const files = ['-c', join(folder, 'told.yaml'), '-c', join(folder, 'due.yaml')];
  return {
    crm,
    told,
    startEarlier: () => start(true, ...files),
    startLater: () => start(false, ...files),
    startFolder: () => start(false, '--mirrors', folder),
  };
}

type Worker = ReturnType<typeof startWorker>;

/** Waits until this worker has both mirrors, and has begun a run of the one with a schedule. */
async function serves(worker: Worker): Promise<void> {
  const from = worker.heard().length;
  await worker.said('told: worker serves events');
  await worker.said('due: worker serves full');
  await until(() => /"mirror":"due"[^\n]*run done/.test(worker.heard().slice(from)));
}

test.runIf(isKnown(earlier))('an older and a newer worker take turns', async () => {
  const { crm, told, startEarlier, startLater, startFolder } = await stage();
  const first = startEarlier();
  await serves(first);
  const end = crm.begin();
  // The newer one stands by, and takes both over.
  const second = startLater();
  await second.said('another run holds this mirror');
  expect(await first.ends()).toBe(143);
  await serves(second);
  // It hands both back.
  const third = startEarlier();
  await third.said('another run holds this mirror');
  expect(await second.ends()).toBe(143);
  await serves(third);
  // And again, from one that is killed, to a worker of a folder.
  const fourth = startFolder();
  await fourth.said('the server listens');
  third.kill('SIGKILL');
  await serves(fourth);
  const people = await end();
  const emails = people.map(({ email }) => email).toSorted();
  await until(() => emails.every((email) => told.shown(email)?.['ch_news'] === 'opt_in'));
  const created = told.writes().flatMap(({ body, status }) => {
    return body.email !== undefined && status < 300 ? [body.email] : [];
  });
  expect(created.toSorted()).toEqual(emails);
  expect(await fourth.ends()).toBe(143);
  for (const worker of [first, second, third, fourth]) {
    expect(worker.heard()).not.toMatch(/bug|damaged/);
  }
});
