/** Which answers of the platform are an outage of it, or of the API key. */
import { createServer } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { watchedTransport } from '../../src/compose/platform-connection.ts';
import { freePort } from '../support/waiting.ts';

/** `fixes`: what is to be done about it. */
async function told(status: number | undefined, aheadMs = 0, fixes: string[] = []) {
  const port = await freePort();
  const date = new Date(Date.now() + aheadMs).toUTCString();
  const server = createServer((_request, response) =>
    response.writeHead(status ?? 200, { date }).end('{}'),
  );
  if (status !== undefined) await new Promise<void>((done) => server.listen(port, done));
  const noted: string[] = [];
  const { send, close } = watchedTransport(
    {
      url: `http://127.0.0.1:${port}`,
      timeoutMs: 1_000,
      apiKey: 'k',
      reserve: 0,
      allowHttp: true,
      apiKeyFile: '/run/secrets/key',
    },
    {
      failed(part, { fix = '' }, how) {
        noted.push(`${part} fails ${how}`);
        fixes.push(fix);
      },
      works: (part) => void noted.push(`${part} works`),
    },
  );
  onTestFinished(async () => {
    await close();
    server.close();
  });
  await send({ method: 'GET', path: '/', headers: {} }).catch(() => undefined);
  return noted;
}

test.each([
  ['nothing', undefined, ['platform fails maybe']],
  ['a failure', 503, ['clock works', 'platform fails maybe']],
  ['a refused key', 401, ['clock works', 'platform works', 'key fails surely']],
  ['a record', 200, ['clock works', 'platform works', 'key works']],
  ['a refused record', 422, ['clock works', 'platform works']],
  ['a limit', 429, ['clock works', 'platform works']],
])('%s', async (_, status, expected) => {
  expect(await told(status)).toEqual(expected);
});

test('the remedy of a refused key names the file that it is read from', async () => {
  const fixes: string[] = [];
  await told(401, 0, fixes);
  expect(fixes.at(-1)).toBe('write a valid key into /run/secrets/key, and run `crm-mirror sync`');
});

test.each([
  ['four minutes', 4, 'clock works'],
  ['six minutes', 6, 'clock fails surely'],
  ['six minutes', -6, 'clock fails surely'],
])('a clock that differs by %s', async (_, minutes, expected) => {
  expect((await told(200, minutes * 60_000))[0]).toBe(expected);
});
