import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createSend, describe as explain, type SendOptions } from '../../src/http/send-request.ts';
import { Invalid, Unavailable } from '../../src/domain/errors.ts';
import type { Request } from '../../src/domain/exchange.ts';
import { nowhere, serve, serveRaw } from '../support/http/test-server.ts';

const LONG_MS = 20_000;
const SHORT_MS = 500;

const post: Request = {
  method: 'POST',
  path: '/api/contacts?search=ann%40example.com',
  headers: { 'x-api-key': 'key_secret', 'content-type': 'application/json' },
  body: '{"email":"ann@example.com"}',
};
const get: Request = { method: 'GET', path: '/x', headers: {} };

function sender(url: string, options: Partial<SendOptions> = {}) {
  const made = createSend({ url, timeoutMs: LONG_MS, userAgent: 'crm-mirror/1', ...options });
  onTestFinished(() => made.close());
  return made.send;
}

/** Fails for `acted`, in one line that keeps quiet about the request. */
async function failure(sent: Promise<unknown>): Promise<Unavailable> {
  const error = await sent.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof Unavailable)) throw new Error('expected Unavailable', { cause: error });
  expect(error.message).not.toMatch(/\n|key_secret|ann@|ann%40|search|partial/);
  return error;
}

describe('one request', () => {
  test('keeps the path of the base address and the body, and always sends a user agent', async () => {
    const seen: unknown[] = [];
    const url = await serve((request, response) => {
      const { method, url: path, headers, text } = request;
      seen.push({ method, path, agent: headers['user-agent'], key: headers['x-api-key'], text });
      response.writeHead(201, { 'X-RateLimit-Remaining': '7' }).end('{"ok":"é"}');
    });
    const answer = await sender(`${url}/base/`)(post);
    expect(answer).toMatchObject({ status: 201, body: '{"ok":"é"}' });
    expect(answer.headers['x-ratelimit-remaining']).toBe('7');
    expect(seen).toEqual([
      {
        method: 'POST',
        path: '/base/api/contacts?search=ann%40example.com',
        agent: 'crm-mirror/1',
        key: 'key_secret',
        text: '{"email":"ann@example.com"}',
      },
    ]);
  });

  test('replaces an empty user agent', async () => {
    const url = await serve((request, response) => {
      response.end(request.headers['user-agent']);
    });
    expect((await sender(url, { userAgent: ' ' })(get)).body).toBe('crm-mirror');
  });

  test.each([204, 301, 404, 429, 500])('returns a %i as it is, once', async (status) => {
    let requests = 0;
    const url = await serve((_, response) => {
      requests += 1;
      response.writeHead(status, { location: '/elsewhere' }).end();
    });
    expect(await sender(url)(get)).toMatchObject({ status, body: '' });
    expect(requests).toBe(1);
  });

  test('skips informational answers, and a byte order mark', async () => {
    const url = await serve((_, response) => {
      response.writeEarlyHints({ link: '</x>; rel=preload' });
      response.end('\uFEFF{}');
    });
    expect(await sender(url)(get)).toMatchObject({ status: 200, body: '{}' });
  });
});

describe('a failure before the request was written did not act:', () => {
  test('connection refused', async () => {
    const error = await failure(sender(nowhere())(post));
    expect(error).toMatchObject({ acted: 'no' });
    expect(error.message).toMatch(
      /^127\.0\.0\.1:\d+ refused the connection \(ECONNREFUSED\) → check its address/,
    );
  });

  test('connection refused, which is reported once something was written', () => {
    const refused = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' });
    expect(explain(refused, 'host', 'written')).toMatchObject({ acted: 'no' });
  });

  test('unknown host', async () => {
    const error = await failure(sender('http://crm-mirror.invalid')(post));
    expect(error).toMatchObject({ acted: 'no' });
    expect(error.message).toMatch(/DNS/);
  });

  test('no TLS on the other side', async () => {
    const url = await serve((_, response) => response.end());
    const error = await failure(sender(url.replace('http:', 'https:'))(post));
    expect(error).toMatchObject({ acted: 'no' });
    expect(error.message).toMatch(/TLS/);
  });

  test('connection cut during the TLS handshake', async () => {
    const url = await serveRaw((socket) => socket.on('data', () => socket.destroy()));
    const error = await failure(sender(url.replace('http:', 'https:'))(post));
    expect(error).toMatchObject({ acted: 'no' });
  });

  test('time-out during connection, TLS unanswered', async () => {
    const url = await serveRaw(() => undefined);
    const https = url.replace('http:', 'https:');
    const error = await failure(sender(https, { timeoutMs: SHORT_MS })(post));
    expect(error).toMatchObject({ acted: 'no' });
    expect(error.message).toMatch(/gave no connection within 500 ms/);
  });

  test('time-out in the queue for a connection, and the request is never sent', async () => {
    const paths: (string | undefined)[] = [];
    let answerFirst = (): void => undefined;
    const url = await serve((request, response) => {
      paths.push(request.url);
      answerFirst = () => void response.end();
    });
    const send = sender(url, { connections: 1 });
    const stop = new AbortController();
    const first = send(get);
    const second = send(post, stop.signal);
    await expect.poll(() => paths.length).toBe(1);
    stop.abort(new Error('enough'));
    await expect(second).rejects.toThrow('enough');
    answerFirst();
    await first;
    const third = send({ ...get, path: '/third' });
    await expect.poll(() => paths.length).toBe(2);
    answerFirst();
    await third;
    expect(paths).toEqual(['/x', '/third']);
  });

  test('aborted beforehand, with the reason of the signal', async () => {
    const sent = sender(nowhere())(post, AbortSignal.abort(new Error('enough')));
    await expect(sent).rejects.toThrow('enough');
  });

  test('closed', async () => {
    const { send, close } = createSend({ url: nowhere(), timeoutMs: 1, userAgent: 'a' });
    await close();
    expect(await failure(send(post))).toMatchObject({ acted: 'no' });
  });

  test('a kept connection that the other side had closed is replaced by a new one', async () => {
    let connections = 0;
    const url = await serveRaw((socket) => {
      connections += 1;
      socket.once('data', () => {
        socket.end('HTTP/1.1 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\n{}');
      });
    });
    const send = sender(url, { connections: 1 });
    await send(post);
    expect(await send(post)).toMatchObject({ status: 200 });
    expect(connections).toBe(2);
  });
});

describe('a failure after the request was written may have acted:', () => {
  test('no answer in time', async () => {
    const url = await serve(() => undefined);
    const error = await failure(sender(url, { timeoutMs: SHORT_MS })(post));
    expect(error).toMatchObject({ acted: 'maybe' });
    expect(error.message).toMatch(/did not answer within 500 ms/);
  });

  test('headers in time, the body not', async () => {
    const url = await serve((_, response) => response.writeHead(200).write('partial'));
    const error = await failure(sender(url, { timeoutMs: SHORT_MS })(post));
    expect(error).toMatchObject({ acted: 'maybe' });
    expect(error.message).toMatch(/did not finish its answer/);
  });

  const answers: [string, string, RegExp][] = [
    ['reset after the request', '', /before it answered/],
    ['half a body', 'HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{"partial', /in the middle/],
    ['half a chunk', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\npar', /middle/],
    ['half a header', 'HTTP/1.1 200 OK\r\nx-partial', /before it answered/],
    ['garbage', 'SSH-2.0-partial\r\n\r\n', /not HTTP/],
  ];
  test.each(answers)('%s', async (_, bytes, message) => {
    const url = await serveRaw((socket) => socket.once('data', () => socket.end(bytes)));
    const error = await failure(sender(url)(post));
    expect(error).toMatchObject({ acted: 'maybe' });
    expect(error.message).toMatch(message);
    expect(error.cause).toBeUndefined();
  });

  test('endless body', async () => {
    const piece = Buffer.alloc(1 << 20, 'x');
    const url = await serve((_, response) => {
      const more = () => void (response.destroyed || response.write(piece, more));
      more();
    });
    const error = await failure(sender(url)(get));
    expect(error).toMatchObject({ acted: 'maybe' });
    expect(error.message).toMatch(/more than is accepted/);
  });

  test('aborted in flight', async () => {
    const stop = new AbortController();
    const url = await serve(() => stop.abort(new Error('enough')));
    const error = await failure(sender(url)(post, stop.signal));
    expect(error).toMatchObject({ acted: 'maybe' });
  });

  test('closed in flight', async () => {
    const url = await serve(() => void close());
    const { send, close } = createSend({ url, timeoutMs: LONG_MS, userAgent: 'a' });
    expect(await failure(send(post))).toMatchObject({ acted: 'maybe' });
  });
});

test('an answer that arrived while the process was stopped still counts, however late', async () => {
  const flags = new Int32Array(new SharedArrayBuffer(12));
  const [arrived, awaited, answered] = [0, 1, 2];
  const script = `
    const { parentPort, workerData: flags } = require('node:worker_threads');
    const server = require('node:http').createServer((request, response) => {
      Atomics.store(flags, ${arrived}, 1);
      Atomics.wait(flags, ${awaited}, 0);
      response.end('{}', () => {
        Atomics.store(flags, ${answered}, 1);
        Atomics.notify(flags, ${answered});
      });
    });
    server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));`;
  const worker = new Worker(script, { eval: true, workerData: flags });
  onTestFinished(async () => void (await worker.terminate()));
  const [port] = await once(worker, 'message');
  const sent = sender(`http://127.0.0.1:${port}`, { timeoutMs: 5_000 })(get);
  while (Atomics.load(flags, arrived) === 0) await turn();
  Atomics.store(flags, awaited, 1);
  Atomics.notify(flags, awaited);
  Atomics.wait(flags, answered, 0);
  // Nothing wakes this: it only lets the deadline pass.
  Atomics.wait(flags, answered, 1, 5_000);
  expect(await sent).toMatchObject({ status: 200 });
});

describe('a request that cannot be sent at all', () => {
  test.each(['', 'example.com', 'ftp://example.com'])('has the address %j', (url) => {
    expect(() => createSend({ url, timeoutMs: 1, userAgent: 'a' })).toThrow(Invalid);
  });

  test('has a header with a line break, which is not printed', async () => {
    const request = { ...get, headers: { 'x-api-key': 'key_secret\n' } };
    const sent = sender(nowhere())(request);
    await expect(sent).rejects.toThrow(Invalid);
    await expect(sent).rejects.not.toThrow(/key_secret/);
  });
});
