/** A worker of a folder of mirrors, as a process on a real Redis. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Queue } from 'bullmq';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { ownRedis, type TestRedis } from '../support/redis.ts';
import { freePort } from '../support/waiting.ts';
import { createWorld, type World } from '../support/engine/engine-world.ts';
import { start as startFile, startFolder, until } from '../support/worker/fleet.ts';

let redis: TestRedis;
beforeAll(async () => void (redis = await ownRedis()));
beforeEach(async () => redis.flush());
afterAll(async () => redis.close());

const everySecond = '* * * * * *';
const file = z.record(z.string(), z.unknown());

/** A folder of mirrors with a server, and worlds whose mirrors can be put into it. */
async function stage() {
  const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-mirrors-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const port = await freePort();
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
  const defaults = {
    redis: '${REDIS_URL}',
    schedule: { full: everySecond },
    server: { port: '${PORT}' },
    guards: { optOuts: { percent: 100 } },
  };
  write('defaults.yaml', JSON.stringify(defaults));
  return {
    folder,
    write,
    env: { REDIS_URL: redis.url, PORT: String(port) },
    remove: (name: string) => rmSync(join(folder, name)),
    get: async (path: string) => fetch(`http://127.0.0.1:${port}${path}`),
    /** Writes the file of a world's mirror, with other lines than the world's own. */
    put(world: World, mirror: string, lines: object = {}) {
      const { guards: _, ...own } = file.parse(JSON.parse(readFileSync(world.config(), 'utf8')));
      const contacts = {
        ...file.parse(own['contacts']),
        source: { type: 'csv', path: join(world.folder, 'people.csv') },
      };
      const snapshot = join(world.folder, 'worker/snapshot.sqlite');
      write(`${mirror}.yaml`, JSON.stringify({ ...own, mirror, snapshot, contacts, ...lines }));
    },
  };
}

const wanting = ({ people }: World, ...names: string[]): void =>
  people(names.map((name) => ({ email: `${name}@example.com`, news: 'yes' })));
const isIn = async ({ shown }: World, name: string): Promise<void> =>
  until(() => shown(`${name}@example.com`)?.['ch_news'] === 'opt_in');

async function scheduled(mirror: string): Promise<string[]> {
  const connection = { url: redis.url };
  const queue = new Queue(`runs-${mirror}`, { connection, prefix: 'crm-mirror' });
  const found = await queue.getJobSchedulers();
  await queue.close();
  return found.map(({ key, pattern }) => `${key} ${pattern}`);
}

test('serves the mirrors of a folder as they come, change and go, without a restart', async () => {
  const { folder, env, put, write, remove, get } = await stage();
  const [acme, beta] = [
    await createWorld({ kinds: ['contact'] }),
    await createWorld({ kinds: ['contact'] }),
  ];
  wanting(acme, 'ann');
  wanting(beta, 'bob');
  put(acme, 'acme');
  write('broken.yaml', '{ mirror: broken, snapshot: b.sqlite, platfrom: {} }');
  const worker = startFolder(folder, env);
  // A bad file is said aloud, and stops nobody else.
  await isIn(acme, 'ann');
  await worker.said('broken.yaml: its mirror is stopped until the file is mended');
  await worker.said('broken.yaml:1:39  platfrom');
  expect(await (await get('/readyz')).json()).toEqual({
    ready: true,
    reasons: [],
    refused: [join(folder, 'broken.yaml')],
    failing: [],
  });
  expect(await (await get('/metrics')).text()).toContain(
    `crm_mirror_configuration_refused{file="${join(folder, 'broken.yaml')}"} 1`,
  );
  const page = await (await get('/')).text();
  expect(page).toContain('Files that cannot be used: their mirrors are stopped');
  expect(page).toContain('broken.yaml');
  const hook = await fetch(`${(await get('/')).url}webhooks/broken`, { method: 'POST' });
  expect(hook.status).toBe(503);
  // One more mirror, while the worker runs.
  put(beta, 'beta');
  await isIn(beta, 'bob');
  remove('broken.yaml');
  await until(async () => (await get('/m/beta')).status === 200);
  await until(async () => !(await (await get('/metrics')).text()).includes('broken'));
  // Another schedule.
  put(beta, 'beta', { schedule: { full: '0 4 * * *' } });
  await until(async () => (await scheduled('beta')).join() === 'full 0 4 * * *');
  // A mistake stops the mirror, but it is not forgotten.
  write(
    'beta.yaml',
    readFileSync(join(folder, 'beta.yaml'), 'utf8').replace('"id":"id"', '"id":""'),
  );
  await worker.said('beta: it is stopped once its run has ended');
  // Its page stays, with what is wrong and what is recorded.
  const stopped = async () => (await get('/m/beta')).text();
  await until(async () => (await stopped()).includes('its configuration cannot be used'));
  expect(await stopped()).toMatch(/beta\.yaml:1:\d+ +contacts\.id[^]*people recorded/);
  expect(await (await get('/')).text()).not.toContain('Files that cannot be used');
  expect(await scheduled('beta')).toEqual(['full 0 4 * * *']);
  put(beta, 'beta');
  wanting(beta, 'bob', 'bea');
  await isIn(beta, 'bea');
  // Gone, with its schedule; the other one goes on.
  remove('beta.yaml');
  await until(async () => (await scheduled('beta')).length === 0);
  await until(async () => (await get('/m/beta')).status !== 200);
  wanting(acme, 'ann', 'amy');
  await isIn(acme, 'amy');
  expect(await worker.ends()).toBe(143);
  expect((await worker.ended).stderr).not.toContain('bug');
});

test.each(['--mirrors', '-c'])('a worker by %s whose server cannot listen ends', async (by) => {
  const { folder, env, put } = await stage();
  const world = await createWorld({ kinds: ['contact'] });
  wanting(world, 'ann');
  const port = Number(env.PORT);
  put(world, 'acme', { redis: redis.url, schedule: { full: everySecond }, server: { port } });
  const server = createServer().listen(port);
  onTestFinished(() => void server.close());
  const { ended, kill } =
    by === '-c' ? startFile(join(folder, 'acme.yaml')) : startFolder(folder, env);
  onTestFinished(() => kill('SIGKILL'));
  const { code, stderr } = await ended;
  expect([code, stderr]).toEqual([2, expect.stringMatching(/^crm-mirror: server: \S+ is in use/m)]);
});

test('a changed file waits for the run in progress, which ends as it began', async () => {
  const { folder, env, put } = await stage();
  const world = await createWorld({ kinds: ['contact'], limits: ['*=10/1'] });
  const names = Array.from({ length: 30 }, (_, at) => `p${at}`);
  wanting(world, ...names);
  put(world, 'acme');
  const worker = startFolder(folder, env);
  await isIn(world, 'p0');
  put(world, 'acme', { schedule: { full: '0 4 * * *' } });
  await worker.said('acme: its configuration has changed');
  await until(async () => (await scheduled('acme')).join() === 'full 0 4 * * *');
  expect(names.every((name) => world.shown(`${name}@example.com`))).toBe(true);
  expect(worker.heard()).not.toContain('"msg":"run interrupted"');
  expect(await worker.ends()).toBe(143);
});
