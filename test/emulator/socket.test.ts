import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { Command } from 'commander';
import { afterEach, describe, expect, test } from 'vitest';
import { declareOptions, type FlagsOf } from '../../src/compose/command-options.ts';
import { options, run } from '../../src/commands/emulator.ts';
import { serve } from '../../src/emulator/http-listener.ts';
import { KEY, stage } from '../support/emulator/emulator-stage.ts';

const closing: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function served() {
  const platform = stage();
  const { url, close } = await serve(platform, 0);
  closing.push(close);
  return { ...platform, url, close };
}

describe('over a socket', () => {
  test('answers as without one', async () => {
    const { url, ask } = await served();
    const response = await fetch(`${url}/api/contacts/channel/ch_news`, {
      method: 'POST',
      headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
      body: JSON.stringify({ email: 'Ännchen@example.org' }),
    });
    expect(response.status).toBe(201);
    expect(response.headers.get('x-ratelimit-window')).toBe('1');
    expect(response.headers.get('date')).toBe('Fri, 20 Nov 2026 12:00:00 GMT');
    expect(await response.json()).toMatchObject({ contact: { email: 'ännchen@example.org' } });
    const list = await fetch(`${url}/api/contacts/list?search=%C3%84nn`, {
      headers: { 'x-api-key': KEY },
    });
    expect(await list.json()).toEqual(ask('GET /api/contacts/list?search=%C3%84nn').json);
  });

  test.each([undefined, 'text/plain', 'nonsense', 'application/json; charset=latin1'])(
    'reads a body of content type %s',
    async (type) => {
      const { url } = await served();
      const response = await fetch(`${url}/api/template/v1/create`, {
        method: 'POST',
        headers: { 'x-api-key': KEY, ...(type && { 'content-type': type }) },
        body: new TextEncoder().encode('{"name":"a"}'),
      });
      expect(response.status).toBe(200);
    },
  );

  test('accepts a content type in a GET or DELETE', async () => {
    const { url } = await served();
    const headers = { 'x-api-key': KEY, 'content-type': 'application/json' };
    expect((await fetch(`${url}/api/contacts/list`, { headers })).status).toBe(200);
    const gone = await fetch(`${url}/api/contacts/x`, { method: 'DELETE', headers });
    expect(gone.status).toBe(404);
  });

  test('refuses a body above 1 MB in JSON, and reads one below', async () => {
    const { url } = await served();
    const post = (size: number) =>
      fetch(`${url}/api/template/v1/create`, {
        method: 'POST',
        headers: { 'x-api-key': KEY },
        body: JSON.stringify({ name: 'a', content: ['x'.repeat(size)] }),
      });
    expect((await post(1024 * 1024 - 100)).status).toBe(200);
    const refused = await post(1024 * 1024);
    expect(refused.status).toBe(413);
    expect(await refused.json()).toMatchObject({ message: 'Request body too large' });
  });

  test.each(['OPTIONS', 'PATCH', 'PROPFIND', 'HEAD'])('answers 405 for %s', async (method) => {
    const { url } = await served();
    const response = await fetch(`${url}/api/contacts/list`, { method });
    expect(response.status).toBe(405);
    expect(response.headers.get('allow')).toBe('GET, DELETE');
    expect(response.headers.get('content-type')).toMatch(/^application\/json/);
  });

  test.each([
    'nonsense\r\n\r\n',
    'GET / HTTP/1.1\r\nhost: a b\r\nx y: z\r\n\r\n',
    'GET /a b HTTP/9\r\n\r\n',
  ])('refuses what is no HTTP in JSON: %j', async (text) => {
    const { url } = await served();
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    socket.write(text);
    const [first] = await once(socket, 'data');
    const [head = '', body = ''] = String(first).split('\r\n\r\n');
    expect(head).toMatch(/^HTTP\/1\.1 400 .*content-type: application\/json/s);
    expect(head).toContain(`content-length: ${Buffer.byteLength(body)}`);
    expect(Object.keys(JSON.parse(body))).toEqual(['message', 'why', 'fix', 'link']);
  });

  test('listens on loopback, and closes at once with a connection open', async () => {
    const { url, close } = await served();
    const { hostname, port } = new URL(url);
    expect(hostname).toBe('127.0.0.1');
    const socket = connect(Number(port), hostname);
    socket.write('GET /api/contacts/list HTTP/1.1\r\nhost: x\r\n\r\n');
    await once(socket, 'data');
    const ended = once(socket, 'close');
    await Promise.all([close(), ended]);
  });
});

describe('crm-mirror emulator', () => {
  function start(...words: string[]) {
    const stop = new AbortController();
    const lines: string[] = [];
    const command = new Command();
    declareOptions(command, options);
    command.parse(words, { from: 'user' });
    const { promise: printed, resolve } = Promise.withResolvers<void>();
    const flags = command.opts<FlagsOf<typeof options>>();
    const exit = run(
      { name: 'emulator', flags, args: [], namesConfig: false },
      {
        env: {},
        print: (line: string) => {
          lines.push(line);
          setImmediate(resolve);
        },
        note: () => {},
        progress: () => {},
        terminal: false,
        interactive: false,
        abort: new AbortController().signal,
        stop: stop.signal,
      },
    );
    const finish = async () => {
      stop.abort();
      return exit;
    };
    closing.push(() => finish().catch(() => {}));
    return { lines, printed: () => Promise.race([printed, exit]), exit, finish };
  }

  test('prints one JSON document, serves, and exits with 0 when stopped', async () => {
    const { lines, printed, finish } = start('--port', '0', '--json');
    await printed();
    const document = JSON.parse(lines.join('\n'));
    expect(document).toEqual({
      firstLoad: { people: 1000, ms: 60_000 },
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      apiKey: expect.stringMatching(/^key_live_/),
      channels: [
        { id: 'ch_news', name: 'Newsletter' },
        { id: 'ch_product', name: 'Product updates' },
      ],
      sessions: {
        member: expect.stringMatching(/^session_/),
        guest: expect.stringMatching(/^session_/),
      },
      organizations: [expect.objectContaining({ apiKey: document.apiKey })],
    });
    const headers = { 'x-api-key': document.apiKey };
    expect((await fetch(`${document.url}/api/contacts/list`, { headers })).status).toBe(200);
    expect(await finish()).toBe(0);
    await expect(fetch(document.url)).rejects.toThrow();
  });

  test('prints what a person can paste', async () => {
    const { lines, printed } = start('--port', '0', '--key', 'mine', '--channel', 'a=One', 'b');
    await printed();
    const text = lines.join('\n');
    expect(text).toMatch(/^export PLATFORM_URL=http:\/\/127\.0\.0\.1:\d+$/m);
    expect(text).toMatch(/^export PLATFORM_API_KEY=mine$/m);
    expect(text).toMatch(/^Channels {2}a {2}One\n {10}b {2}b$/m);
  });

  test('takes limits', async () => {
    const flags = ['--limit', 'contacts.list=7/2', '*=9/3', '--key', 'mine'];
    const { lines, printed } = start('--port', '0', '--json', ...flags);
    await printed();
    const { url } = JSON.parse(lines.join('\n'));
    const response = await fetch(`${url}/api/contacts/list`, { headers: { 'x-api-key': 'mine' } });
    expect(response.headers.get('x-ratelimit-limit')).toBe('7');
  });

  test.each([
    [['--port', 'x'], '--port "x": give a whole number from 0 to 65535'],
    [['--port', '65536'], '--port "65536"'],
    [['--seed', '-1'], '--seed "-1"'],
    [['--key', 'a b'], '--key'],
    [['--channel', 'a/b'], '--channel "a/b": write id or id=Name'],
    [['--channel', 'a', 'a=Other'], 'channel "a" exists already'],
    [['--limit', 'x'], 'limit "x" cannot be read'],
  ])('%j is refused', async (flags, message) => {
    const { exit } = start(...flags);
    await expect(exit).rejects.toMatchObject({
      name: 'Invalid',
      message: expect.stringContaining(message),
    });
  });

  test('reports a port in use, and the way out', async () => {
    const other = createServer();
    other.listen(0, '127.0.0.1');
    await once(other, 'listening');
    closing.push(async () => other.close());
    const address = other.address();
    const port = typeof address === 'object' ? String(address?.port) : '';
    await expect(start('--port', port).exit).rejects.toMatchObject({
      name: 'Invalid',
      message: expect.stringMatching(new RegExp(`^--port ${port}: .*in use; .*--port 0`)),
    });
  });
});
