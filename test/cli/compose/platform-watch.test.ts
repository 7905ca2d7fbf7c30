/** Which answers of the platform are an outage of it, or of the API key. */
import { createServer } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { watchedTransport } from '../../../src/cli/compose/platform-watch.ts';
import { freePort } from '../../support/port.ts';

async function told(status: number | undefined): Promise<string[]> {
  const port = await freePort();
  const server = createServer((_request, response) => response.writeHead(status ?? 200).end('{}'));
  if (status !== undefined) await new Promise<void>((done) => server.listen(port, done));
  const noted: string[] = [];
  const { send, close } = watchedTransport(
    {
      platform: {
        url: `http://127.0.0.1:${port}`,
        timeoutMs: 1_000,
        apiKey: 'k',
        reserve: 0,
        allowHttp: true,
      },
    },
    {
      failed: (part, _, how) => void noted.push(`${part} fails ${how}`),
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
  ['a failure', 503, ['platform fails maybe']],
  ['a refused key', 401, ['platform works', 'key fails surely']],
  ['a record', 200, ['platform works', 'key works']],
  ['a refused record', 422, ['platform works']],
  ['a limit', 429, ['platform works']],
])('%s', async (_, status, expected) => {
  expect(await told(status)).toEqual(expected);
});
