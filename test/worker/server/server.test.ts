/** Who is let in, what is answered when something is wrong, and how it ends: over real HTTP. */
import { connect } from 'node:net';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { Invalid, Unavailable } from '../../../src/domain/errors.ts';
import { viewQueues } from '../../../src/compose/queues/run-queue.ts';
import { createMetrics } from '../../../src/worker/server/metrics.ts';
import { anyRedis, ownRedis } from '../../support/redis.ts';
import {
  raw,
  type ServerParts,
  startServer,
  type Started,
} from '../../support/server/started-server.ts';
import { untilHolds } from '../../support/waiting.ts';

const running: Started[] = [];
afterEach(async () => void (await Promise.all(running.splice(0).map(async (one) => one.close()))));

async function start(options: Partial<ServerParts> = {}): Promise<Started> {
  const started = await startServer(options);
  running.push(started);
  return started;
}

const scraped = (text: () => Promise<string>) => ({ ...createMetrics([]), text });

const basic = (user: string, password: string) =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;

describe('health', () => {
  test('is alive, and ready until it says why not', async () => {
    const reasons: string[] = [];
    const failing = [{ mirror: 'acme', code: 'platform_away', since: null }];
    const { get } = await start({ token: 'tok', ready: () => reasons, failing: () => failing });
    const alive = await get('/healthz');
    expect([alive.status, await alive.text()]).toEqual([200, 'ok']);
    const ready = await get('/readyz');
    expect([ready.status, await ready.json()]).toEqual([
      200,
      { ready: true, reasons: [], failing },
    ]);
    reasons.push('acme: Redis is away');
    const not = await get('/readyz');
    expect([not.status, await not.json()]).toEqual([503, { ready: false, reasons, failing }]);
    expect((await get('/healthz')).status).toBe(200);
  });
});

describe('the token', () => {
  test.each([
    '/',
    '/metrics',
    '/queues',
    '/queues/',
    '/queues/api/queues',
    '/nowhere',
    '/webhooks',
  ])('is required at %s', async (path) => {
    const { get } = await start({ token: 'tok_1' });
    for (const authorization of [
      undefined,
      'Bearer tok_2',
      'Bearer tok_',
      'Bearer',
      'tok_1',
      'Digest tok_1',
      basic('tok_1', ''),
      basic('', 'tok_11'),
      `Basic ${Buffer.from('tok_1').toString('base64')}`,
    ]) {
      const answer = await get(path, authorization === undefined ? {} : { authorization });
      expect([authorization, answer.status]).toEqual([authorization, 401]);
      expect(await answer.json()).toEqual({ error: 'the token is missing or wrong' });
      expect(answer.headers.get('www-authenticate')).toMatch(/^Basic realm="crm-mirror"/);
    }
  });

  test.each(['Bearer tok:1', 'bearer tok:1', basic('ann', 'tok:1'), basic('', 'tok:1')])(
    'is accepted: %s',
    async (authorization) => {
      const { get } = await start({ token: 'tok:1' });
      for (const path of ['/', '/metrics', '/queues']) {
        expect((await get(path, { authorization })).status).toBe(200);
      }
      expect((await get('/nowhere', { authorization })).status).toBe(404);
    },
  );

  test('is not needed by a caller that uses a name of this machine', async () => {
    const { url } = await start();
    const ask = async (host: string, path = '/metrics') =>
      (await raw(url, { path, headers: { host } })).status;
    for (const host of ['localhost:8080', '127.0.0.1', '[::1]:1'])
      expect(await ask(host)).toBe(200);
    for (const host of ['evil.example', '127.0.0.1.evil.example', 'a b', '10.0.0.1']) {
      expect([host, await ask(host)]).toEqual([host, 403]);
    }
    expect(await ask('evil.example', '/healthz')).toBe(200);
  });
});

describe('an error is one line', () => {
  test('for an unknown path or method', async () => {
    const { url, get } = await start();
    for (const path of ['/nowhere', '/../etc/passwd', '/webhooks', '/healthz/x', '/%00']) {
      const answer = await raw(url, { path });
      expect([path, answer.status, answer.body]).toEqual([path, 404, '{"error":"not found"}']);
    }
    expect((await get('/webhooks/acme')).status).toBe(404);
    expect((await fetch(`${url}/healthz`, { method: 'POST' })).status).toBe(404);
  });

  test('for a bug, which is logged and not shown', async () => {
    const bug = new Error('ann@example.com');
    const { get, failures } = await start({ metrics: scraped(() => Promise.reject(bug)) });
    const answer = await get('/metrics');
    expect([answer.status, await answer.text()]).toEqual([500, '{"error":"internal error"}']);
    expect(failures).toEqual([bug]);
  });

  test('but not for missing Redis', async () => {
    const gone = new Unavailable('gone', { acted: 'no' });
    const { get, failures } = await start({ metrics: scraped(() => Promise.reject(gone)) });
    expect([(await get('/metrics')).status, failures]).toEqual([503, []]);
  });

  test('for headers without an end', async () => {
    const { get } = await start();
    expect((await get('/healthz', { 'x-long': 'x'.repeat(20_000) })).status).toBe(431);
  });

  test('with headers against storing, framing, sniffing and loading', async () => {
    const { get } = await start();
    for (const path of ['/', '/healthz', '/nowhere', '/queues']) {
      const { headers } = await get(path);
      expect(headers.get('cache-control')).toBe('no-store');
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('content-security-policy')).toMatch(/default-src 'none'.*frame-ancestors/);
    }
  });
});

const listed = z.object({
  queues: z.array(z.object({ name: z.string(), readOnlyMode: z.boolean() })),
});

describe('the queues page', () => {
  test('is shown, and read-only', async () => {
    const redis = await anyRedis();
    const view = viewQueues('acme', { url: redis.url });
    const { url, get } = await start({ queues: () => view.queues });
    const page = await (await get('/queues')).text();
    expect(page).toContain('<base href="/queues/"');
    const script = /static\/js\/main\.\w+\.js/.exec(page)?.[0];
    expect((await get(`/queues/${script}`)).status).toBe(200);
    const shown = listed.parse(await (await get('/queues/api/queues')).json());
    const names = shown.queues.map(({ name, readOnlyMode }) => `${name} ${readOnlyMode}`);
    expect(names.toSorted()).toEqual(['events-acme true', 'runs-acme true']);
    for (const [method, path] of [
      ['PUT', 'api/queues/runs-acme/pause'],
      ['POST', 'api/queues/runs-acme/add'],
      ['PUT', 'api/queues/events-acme/obliterate'],
      ['DELETE', 'api/queues/events-acme'],
    ] as const) {
      const { status } = await fetch(`${url}/queues/${path}`, { method });
      expect([path, [404, 405].includes(status)]).toEqual([path, true]);
    }
    view.close();
    await redis.close();
  });

  test('keeps nobody waiting without Redis', async () => {
    const redis = await ownRedis();
    await redis.kill();
    const view = viewQueues('acme', { url: redis.url });
    const { get, failures } = await start({ queues: () => view.queues });
    const answer = await get('/queues/api/queues');
    expect([answer.status, await answer.text()]).toEqual([
      500,
      '{"error":"Redis cannot be asked"}',
    ]);
    expect((await get('/queues')).status).toBe(200);
    await redis.start();
    await untilHolds(async () => expect((await get('/queues/api/queues')).status).toBe(200));
    expect(failures).toEqual([]);
    view.close();
    await redis.close();
  });
});

describe('listening', () => {
  test('reports a port in use, and the fix', async () => {
    const { url } = await start();
    const { port } = new URL(url);
    const second = startServer({ port: Number(port) });
    await expect(second).rejects.toThrow(
      `server: 127.0.0.1:${port} is in use → stop what listens there, or choose another server.port`,
    );
    await expect(second).rejects.toBeInstanceOf(Invalid);
  });

  test.each([
    ['192.0.2.1', 'is no address of this machine'],
    ['nowhere.invalid', 'is no address of this machine'],
  ])('reports an address that is not of this machine: %s', async (host, said) => {
    await expect(startServer({ host, token: 't' })).rejects.toThrow(said);
  });

  test('ends after the requests in flight, and does not wait for idle connections', async () => {
    const asked = Promise.withResolvers<void>();
    const metrics = scraped(async () => {
      asked.resolve();
      await pause(50);
      return '';
    });
    const { url, get, server } = await startServer({ metrics });
    const idle = connect(Number(new URL(url).port), '127.0.0.1');
    idle.on('error', () => undefined);
    await once(idle, 'connect');
    const half = connect(Number(new URL(url).port), '127.0.0.1');
    half.on('error', () => undefined);
    half.write('POST /webhooks/acme HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{');
    const answer = get('/metrics');
    await asked.promise;
    await server.close();
    expect((await answer).status).toBe(200);
    await expect(get('/healthz')).rejects.toThrow();
  });
});
