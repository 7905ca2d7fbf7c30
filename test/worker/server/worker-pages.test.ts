/** Who sees the metrics and the queues if the configuration names users. */
import { expect, onTestFinished, test } from 'vitest';
import { hashPassword, type Role } from '../../../src/console/access/users-file.ts';
import type { AccessRules } from '../../../src/console/access/access-rules.ts';
import { systemClock } from '../../../src/http/system-clock.ts';
import { openEventQueue } from '../../../src/compose/queues/event-queue.ts';
import { viewQueues } from '../../../src/compose/queues/run-queue.ts';
import { cookieOf } from '../../support/console/running-console.ts';
import { anyRedis } from '../../support/redis.ts';
import { connectTo } from '../../support/worker/connections.ts';
import { startServer } from '../../support/server/started-server.ts';

const roles = new Map<string, Role>([
  ['olga', 'operator'],
  ['vera', 'viewer'],
]);

/** An event about a record whose id is an address waits in the queue. */
async function started(token?: string, access: Partial<AccessRules> = {}) {
  const redis = await anyRedis();
  const connections = connectTo(redis.url);
  const events = openEventQueue({ mirror: 'pages', clock: systemClock, connections });
  await events.add(['ann@example.com']);
  const view = viewQueues('pages', { url: redis.url });
  const { url, close } = await startServer({ queues: () => view.queues, token, access });
  onTestFinished(async () => {
    view.close();
    await events.close();
    await Promise.all([close(), redis.close()]);
  });
  const get = async (path: string, headers: Record<string, string> = {}) => {
    const answer = await fetch(url + path, { headers, redirect: 'manual' });
    return { status: answer.status, text: await answer.text() };
  };
  /** Asks until Redis answers in time, which it may not just after the start. */
  const getJobs = async (headers: Record<string, string> = {}) => {
    await expect.poll(async () => (await get(jobs, headers)).status).not.toBe(500);
    return get(jobs, headers);
  };
  return { url, get, getJobs };
}

async function withUsers(token?: string) {
  const password = await hashPassword('secret', Buffer.alloc(16));
  const find = (name: string) => {
    const role = roles.get(name);
    return role && { name, role, password };
  };
  const users = { path: '', find, list: () => [] };
  const server = await started(token, { users });
  const signIn = async (name: string) => {
    const body = new URLSearchParams({ name, password: 'secret' });
    const answer = await fetch(`${server.url}/sign-in`, {
      method: 'POST',
      body,
      redirect: 'manual',
    });
    return { cookie: cookieOf(answer) };
  };
  return { ...server, signIn };
}

const jobs = '/queues/api/queues?activeQueue=events-pages&status=delayed&page=1';

test('with users, a name of this machine is not enough', async () => {
  const { get, getJobs, signIn } = await withUsers();
  for (const path of ['/metrics', '/queues', jobs]) {
    expect([path, (await get(path)).status]).toEqual([path, 401]);
  }
  const vera = await signIn('vera');
  expect((await get('/metrics', vera)).status).toBe(200);
  expect((await get('/queues', vera)).status).toBe(403);
  expect((await getJobs(vera)).text).not.toContain('ann@example.com');
  const olga = await signIn('olga');
  expect((await get('/metrics', olga)).status).toBe(200);
  expect((await get('/queues', olga)).status).toBe(200);
  expect((await getJobs(olga)).text).toContain('ann@example.com');
});

test('with users, the token shows both, without addresses', async () => {
  const { get, getJobs } = await withUsers('tok');
  expect((await get('/metrics', { authorization: 'Bearer tuk' })).status).toBe(401);
  const headers = { authorization: 'Bearer tok' };
  expect((await get('/metrics', headers)).status).toBe(200);
  const shown = await getJobs(headers);
  expect(shown.status).toBe(200);
  expect(shown.text).toContain('(an address)');
  expect(shown.text).not.toContain('ann@example.com');
});

test('without users, this machine sees both, without addresses', async () => {
  const { get, getJobs } = await started();
  expect((await get('/metrics')).status).toBe(200);
  const shown = await getJobs();
  expect(shown.status).toBe(200);
  expect(shown.text).toContain('(an address)');
  expect(shown.text).not.toContain('ann@example.com');
});

test('whom a proxy names is let in by the proxy alone', async () => {
  const proxy = { header: 'x-user', operators: new Set(['olga']), from: new Set(['127.0.0.1']) };
  const { get } = await started(undefined, { proxy });
  expect((await get('/queues')).status).toBe(401);
  expect((await get('/metrics')).status).toBe(401);
  expect((await get('/queues', { 'x-user': 'vera' })).status).toBe(403);
  expect((await get('/queues', { 'x-user': 'olga' })).status).toBe(200);
  expect((await get('/metrics', { 'x-user': 'vera' })).status).toBe(200);
});
