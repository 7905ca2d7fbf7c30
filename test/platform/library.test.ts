import { existsSync, readFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { createPlatform, Invalid, Rejected } from '../../src/platform/platform.ts';
import { nowhere, serve } from '../support/http/test-server.ts';
import { ann, collect, fails, KEY, listed } from '../support/platform/connected-client.ts';

function platformAt(url: string, options: object = {}) {
  const platform = createPlatform({ url, apiKey: KEY, ...options });
  onTestFinished(() => platform.close());
  return platform;
}

test('an address and a key are enough to call the platform', async () => {
  const headers: Record<string, unknown>[] = [];
  const url = await serve((request, response) => {
    headers.push(request.headers);
    response.end(JSON.stringify(listed));
  });
  const platform = platformAt(`${url}/base/`);
  const people = await collect(platform.contacts.all());
  expect(people).toMatchObject([{ id: ann.id, email: ann.email }]);
  expect(headers).toMatchObject([{ 'x-api-key': KEY, 'user-agent': 'crm-mirror' }]);
  expect(platform.requests()).toEqual({
    total: 1,
    byRoute: { 'contacts.list': 1 },
    rateLimited: 0,
  });
});

test('errors are the library’s own classes', async () => {
  const url = await serve((_request, response) => {
    response.writeHead(409).end(JSON.stringify({ message: 'Domain exists', why: 'w', fix: 'f' }));
  });
  const error = await fails(platformAt(url).domains.create({ domain: 'example.com' }));
  expect(error).toBeInstanceOf(Rejected);
  expect(error).toMatchObject({ status: 409, message: 'Domain exists', why: 'w', fix: 'f' });
  expect(() => createPlatform({ url: 'ftp://x', apiKey: KEY })).toThrow(Invalid);
});

test('options for clock, chance, attempts and signal are used', async () => {
  const stop = new AbortController();
  const waits: number[] = [];
  const clock = {
    now: () => 0,
    monotonic: () => 0,
    sleep: async (ms: number) => void waits.push(ms),
  };
  const options = { clock, random: () => 1, maxAttempts: 3, signal: stop.signal };
  const platform = platformAt(nowhere(), options);
  expect(await fails(platform.contacts.retrieve('con_1'))).toMatchObject({ acted: 'no' });
  expect(waits).toEqual([250, 500]);
  stop.abort(new Error('enough'));
  expect(await fails(platform.contacts.retrieve('con_1'))).toBe(stop.signal.reason);
});

test('the package exports what is built from it', () => {
  const root = new URL('../../', import.meta.url);
  const manifest = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));
  const { types, default: code } = manifest.exports['./platform'];
  expect(types.replace('.d.ts', '')).toBe(code.replace('.js', ''));
  const source = code.replace('./dist/', 'src/').replace('.js', '.ts');
  expect(existsSync(new URL(source, root))).toBe(true);
});
