/** Failures of a CRM: each is waited out, tried again, or reported in one line. */
import { gzipSync } from 'node:zlib';
import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { nowhere, serve } from '../support/http/test-server.ts';
import {
  crm,
  json,
  people,
  SECRET,
  sourceOf,
  status,
  type Reply,
} from '../support/sources/http-crm.ts';
import { errorOf, readAll } from '../support/sources/source-reading.ts';

const NOON = 'Thu, 15 Jan 2026 12:00:00 GMT';
const paged = { page: { number: 'page' } };
const cut = (response: ServerResponse) => {
  response.writeHead(200, { 'content-length': '1000' });
  response.write('[{"id":1,"email":"ann@x', () => response.destroy());
};
const html = (response: ServerResponse) =>
  response.writeHead(200, { 'content-type': 'text/html' }).end('<p>ann@example.com');
const silent = () => undefined;
const gzipped = (response: ServerResponse) =>
  response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('[]'));
const huge = (response: ServerResponse) => response.end(`["${'x'.repeat(17 * 1024 * 1024)}"]`);
const text = (body: string) => (response: ServerResponse) => response.end(body);

/** Of the error: its kind, and its line without the port. */
async function failure(options: object, ...replies: Reply[]) {
  const { url, asked } = await crm(...replies);
  const { source, clock } = sourceOf(url, options, replies.includes(silent) ? 100 : 20_000);
  const error = await errorOf(readAll(source, ['id']));
  expect(error.message).not.toMatch(/sk_secret|ann@|people/);
  const line = error.message.replace(/127\.0\.0\.1:\d+/, 'crm');
  return { name: error.name, line, asked: asked.length, slept: clock.slept };
}

describe('a temporary failure', () => {
  test.each<[string, Reply, number[]]>([
    ['a 429 that says how long', status(429, { 'retry-after': '30' }), [30_000]],
    ['a 429 with a time', status(429, { date: NOON, 'retry-after': '1768478403' }), [3_000]],
    ['a 429 in ms', status(429, { date: NOON, 'retry-after': '1768478403000' }), [3_000]],
    ['a 429 that says nothing', status(429), [10_000]],
    ['a 429 that says no time', status(429, { 'retry-after': '0' }), [1_000]],
    ['a 503 that says how long', status(503, { 'retry-after': '7' }), [7_000]],
    ['a 500', status(500), [250]],
    ['a 502', status(502), [250]],
    ['a connection lost in mid-page', cut, [250]],
    ['a web page for a moment', html, [250]],
    ['half a text', text('[{"id":1'), [250]],
  ])('%s is outlasted', async (_, reply, slept) => {
    const { url, asked } = await crm(people(1, 1), reply, people(2, 1), []);
    const { source, clock } = sourceOf(url, paged);
    const { values, certificate } = await readAll(source, ['id']);
    expect(values.map(({ id }) => id)).toEqual([1, 2]);
    expect(certificate.complete).toBe(true);
    expect(asked).toHaveLength(4);
    expect(clock.slept).toEqual(slept);
  });
});

describe('a permanent failure', () => {
  const api = 'is url of the source the address of its API?';
  const rights = 'correct the headers of the source, or its rights there';
  test.each<[string, Reply, string]>([
    ['500', status(500), 'crm answered 500'],
    ['a cut', cut, 'crm cut the connection in the middle of its answer (UND_ERR_SOCKET)'],
    ['a web page', html, `crm answered 200 with a web page (${api})`],
    ['no JSON', text('yes'), `crm answered 200 with something that is no JSON (${api})`],
    ['an empty answer', text(''), `crm answered 200 with something that is no JSON (${api})`],
    [
      'too much',
      huge,
      'crm answered more than is accepted at once, 16 MiB: ask for smaller pages (UND_ERR_RES_EXCEEDED_MAX_SIZE)',
    ],
  ])('%s', async (_, reply, why) => {
    const line = `${why}, after 4 attempts`;
    expect(await failure({}, reply)).toMatchObject({ name: 'Unavailable', line, asked: 4 });
  });

  test.each<[string, Reply, string, object?]>([
    ['401', status(401), `crm refused the credentials (401) → ${rights}`],
    ['403', status(403), `crm does not allow this with them (403) → ${rights}`],
    [
      'a packing that was not asked for',
      gzipped,
      'crm packs its answer (content-encoding) as it was not asked to → have it, or the proxy before it, send the answer as it is',
    ],
    ['404', status(404), 'crm has no such page (404) → correct url and page of the source'],
    ['400', status(400), 'crm refused the request (400) → correct url and page of the source'],
    [
      'no list',
      { error: 'ann@example.com' },
      'crm: the answer is no list → name with records where in it the list stands',
    ],
    [
      'no list there',
      { a: [] },
      'crm: there is no list at records in the answer → correct records of the source',
      { records: 'a.b' },
    ],
    [
      'a cursor that is none',
      { a: [], c: { d: 1 } },
      'crm: page.cursor is no text or number there → correct it',
      { records: 'a', page: { cursor: 'c', param: 'c' } },
    ],
  ])('%s', async (_, reply, line, options = {}) => {
    expect(await failure(options, reply)).toMatchObject({ name: 'Invalid', line, asked: 1 });
  });

  test('a wait that is too long, or endless', async () => {
    const line =
      'crm asks to wait (429), and 10 minutes were not enough' +
      ' → run less often, or have its limit raised';
    const long = await failure({}, status(429, { 'retry-after': '86400' }));
    expect(long).toMatchObject({ name: 'RateLimited', line, asked: 1, slept: [] });
    const often = await failure({}, status(429, { 'retry-after': '200' }));
    expect(often).toMatchObject({ name: 'RateLimited', line, asked: 4 });
  });

  test('silence', async () => {
    const { name, line } = await failure({}, silent);
    expect(name).toBe('Unavailable');
    // A machine under load may not even come to connect.
    expect(line).toMatch(
      /^crm (did not answer|gave no connection) within 100 ms, after 4 attempts$/,
    );
  });

  test('nobody there', async () => {
    const { source } = sourceOf(nowhere());
    expect((await errorOf(readAll(source))).message).toMatch(/refused the connection/);
  });

  test('a redirect does not send the headers elsewhere', async () => {
    const seen: unknown[] = [];
    const elsewhere = await serve(({ headers }, response) => {
      seen.push(headers);
      response.end('[]');
    });
    const { name, line } = await failure({}, status(302, { location: `${elsewhere}/?k=ann@x.y` }));
    const mend = 'write where it leads into url; the headers are sent nowhere else';
    expect({ name, line }).toEqual({
      name: 'Invalid',
      line: `crm answered with a redirect (302) → ${mend}`,
    });
    expect(seen).toEqual([]);
  });
});

describe('after the first page', () => {
  test.each<[string, Reply, string, string]>([
    ['a failure', status(500), 'crm answered 500, after 4 attempts', 'read it again'],
    [
      'a token that ran out',
      status(401),
      'crm refused the credentials (401)',
      'correct the headers of the source, or its rights there',
    ],
    [
      'a limit',
      status(429, { 'retry-after': '3600' }),
      'crm asks to wait (429), and 10 minutes were not enough',
      'run less often, or have its limit raised',
    ],
    [
      'an error that is said with 200',
      json({ error: 'ann@x.y' }),
      'crm: the answer is no list',
      'name with records where in it the list stands',
    ],
  ])('%s ends the reading: what was read counts, uncertified', async (_, reply, why, fix) => {
    const { url } = await crm(people(1, 2), reply);
    const { values, certificate } = await readAll(sourceOf(url, paged).source, ['id']);
    expect(values).toHaveLength(2);
    if (certificate.complete) throw new Error('certified');
    expect(certificate.why.replace(/127\.0\.0\.1:\d+/, 'crm')).toBe(
      `reading stopped at page 2: ${why}`,
    );
    expect(certificate.fix).toBe(fix);
  });

  test('a field that nobody had so far may be others’', async () => {
    const { url } = await crm(people(1, 2), status(500));
    const { certificate } = await readAll(sourceOf(url, paged).source, ['id', 'archived']);
    expect(certificate).toMatchObject({ complete: false, why: expect.stringMatching(/at page 2/) });
  });

  test.each<[string, Reply]>([
    ['a request', silent],
    ['a wait', status(429, { 'retry-after': '60' })],
    ['a second attempt', status(500)],
  ])('a stop ends %s at once', async (_, reply) => {
    const stop = new AbortController();
    const reason = new Error('stop');
    const { url } = await crm(people(1, 1), (response: ServerResponse) => {
      stop.abort(reason);
      if (typeof reply === 'function') reply(response);
    });
    const { source } = sourceOf(url, paged);
    await expect(readAll(source, ['id'], stop.signal)).rejects.toBe(reason);
  });

  test('leaving early leaves no connection behind', async () => {
    const { url, asked } = await crm(people(1, 1), people(2, 1));
    const signal = new AbortController().signal;
    for await (const batch of sourceOf(url, paged).source.read({ fields: [], signal })) {
      expect(batch).toHaveLength(1);
      break;
    }
    expect(asked).toHaveLength(1);
  });
});

describe('a single record', () => {
  const one = async (reply: Reply, id = 'a/b 1', path = '/{id}?full=1') => {
    const { url, asked } = await crm(reply);
    const { source } = sourceOf(url, { one: url + path });
    const signal = new AbortController().signal;
    const found = source.one?.(id, { fields: ['id', 'x'], signal });
    return { found, asked };
  };

  test('is read by its id', async () => {
    const { found, asked } = await one({ id: 'a/b 1', email: 'ann@x.y' });
    expect(await found).toEqual({
      where: 'the record by its id',
      value: { id: 'a/b 1', email: 'ann@x.y', x: null },
    });
    expect(asked).toMatchObject([
      { path: '/people/a%2Fb%201?full=1', headers: { authorization: SECRET } },
    ]);
  });

  test('may be missing', async () => {
    expect(await (await one(status(404))).found).toBeUndefined();
  });

  test.each<[string, Reply, string]>([
    ['another one', { id: 'b' }, '7'],
    ['one in something else', { data: { id: '7' } }, '7'],
    ['a list', [{ id: '7' }], '7'],
    ['one for no id', { id: '' }, ''],
    ['one for dots', { id: '..' }, '..'],
    ['one for encoded dots', { id: '%2e%2E' }, '%2e%2E'],
  ])('is not %s', async (_, reply, id) => {
    const error = await errorOf((await one(reply, id)).found ?? Promise.resolve());
    expect(error.name).toBe('Invalid');
    expect(error.message).toMatch(/id asked for → correct one|names nothing/);
  });

  test('is not offered without a configured URL', () => {
    expect(sourceOf('https://crm.example').source.one).toBeUndefined();
  });
});
