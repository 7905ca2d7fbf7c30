/** Who left, told to an HTTP API: what is sent, and what each answer means. */
import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { httpReturnsOptions } from '../../src/sources/http/options.ts';
import { httpReturns } from '../../src/sources/http/http-source.ts';
import { nowhere, serve } from '../support/http/test-server.ts';
import { allMail, left, tell, errorOf, virtualClock } from '../support/sources/source-reading.ts';

const SECRET = 'Bearer sk_secret';

interface Heard {
  method: string;
  path: string;
  headers: Record<string, unknown>;
  text: string;
}

type Reply = number | ((response: ServerResponse) => void);

/** Answers with the replies in turn, the last one for ever. */
async function crm(...replies: Reply[]) {
  const heard: Heard[] = [];
  const url = await serve(({ method = '', url: path = '', headers, text }, response) => {
    heard.push({ method, path, headers, text });
    const reply = replies[Math.min(heard.length, replies.length) - 1] ?? 200;
    if (typeof reply === 'number') response.writeHead(reply).end();
    else reply(response);
  });
  return { url, heard };
}

function returnsTo(url: string, options: object = {}) {
  const parsed = httpReturnsOptions.parse({
    type: 'http',
    url,
    headers: { Authorization: SECRET },
    ...options,
  });
  const clock = virtualClock();
  return { returns: httpReturns(parsed, { clock, random: () => 1 }), clock };
}

describe('a request', () => {
  test('has its values filled in, in the address and in all texts of the body', async () => {
    const { url, heard } = await crm(204);
    const body = {
      'the {id}': '{id}',
      of: ['{channel}: {cause}', { at: '{at}', key: '{return}' }],
      newsletter: false,
      n: 3,
      nothing: null,
    };
    const { returns } = returnsTo(`${url}/people/{id}?by={email}`, { method: 'PUT', body });
    const crmId = 'a/b ü{email}"';
    await tell(returns, left('a', { crmId, email: 'a+b@x.y', ...allMail }));
    expect(heard).toMatchObject([
      {
        method: 'PUT',
        path: `/people/${encodeURIComponent(crmId)}?by=a%2Bb%40x.y`,
        headers: {
          authorization: SECRET,
          'content-type': 'application/json',
          'idempotency-key': 'ret_a',
        },
      },
    ]);
    expect(JSON.parse(heard[0]?.text ?? '')).toEqual({
      'the {id}': crmId,
      of: ['*: unsubscribed', { at: '2026-01-02T03:04:05.678Z', key: 'ret_a' }],
      newsletter: false,
      n: 3,
      nothing: null,
    });
  });

  test('can have no body, and is a POST unless configured otherwise', async () => {
    const { url, heard } = await crm(200);
    const { returns } = returnsTo(`${url}/optout/{id}`);
    expect(await tell(returns, left('a'))).toEqual([{ is: 'told' }]);
    expect(heard).toMatchObject([{ method: 'POST', path: '/optout/a', text: '' }]);
    expect(heard[0]?.headers['idempotency-key']).toBe('ret_a');
  });

  test('needs an id only when it uses one', () => {
    const nobody = { crmId: '', channel: '*' };
    expect(returnsTo('http://127.0.0.1/{id}').returns.takes(nobody)).toBe(false);
    const body = { who: '{id}' };
    expect(returnsTo('http://127.0.0.1/x', { body }).returns.takes(nobody)).toBe(false);
    expect(returnsTo('http://127.0.0.1/{email}').returns.takes(nobody)).toBe(true);
  });

  test.each([
    ['people/{id}', { crmId: '.' }],
    ['people/{id}', { crmId: '..' }],
    ['people/{id}/x', { crmId: '%2e%2E' }],
    ['people/{channel}', { channel: '..' }],
  ])('is not sent to %s if %j would change its address', async (path, of) => {
    const { url, heard } = await crm(200);
    const [told] = await tell(returnsTo(`${url}/${path}`).returns, left('a', of));
    expect(told).toMatchObject({ is: 'rejected', reason: expect.stringContaining('dots') });
    expect(heard).toEqual([]);
  });

  test('is sent with any id in the query', async () => {
    const { url, heard } = await crm(200);
    await tell(returnsTo(`${url}/people?id={id}`).returns, left('a', { crmId: '..' }));
    expect(heard).toMatchObject([{ path: '/people?id=..' }]);
  });
});

describe('an answer', () => {
  test.each([200, 201, 202, 204])('%i means reported', async (status) => {
    const { url } = await crm(status);
    expect(await tell(returnsTo(`${url}/{id}`).returns, left('a'))).toEqual([{ is: 'told' }]);
  });

  test.each([
    [404, 'the CRM does not have this person (404)'],
    [410, 'the CRM does not have this person (410)'],
    [400, 'the CRM refused it (400)'],
    [422, 'the CRM refused it (422)'],
  ])('%i rejects this opt-out, and no other', async (status, reason) => {
    const { url, heard } = await crm(status, 200);
    const told = await tell(returnsTo(`${url}/{id}`).returns, left('a'), left('b'));
    expect(told).toEqual([{ is: 'rejected', reason, fix: expect.any(String) }, { is: 'told' }]);
    expect(heard).toHaveLength(2);
  });

  const body = (type: string, text: string) => (response: ServerResponse) =>
    response.writeHead(200, { 'content-type': type }).end(text);

  test.each([
    ['application/json', '{"error":"not saved"}', 'error'],
    ['application/json', '{"success":false}', 'success'],
    ['text/html', '{"meta":{"errors":[{"of":"a@x.y"}]}}', 'meta.errors'],
    ['application/json', '{"success":true,"error":null,"errors":[]}', undefined],
    ['text/html', 'OK', undefined],
    ['text/html', '', undefined],
    ['application/xml', '<ok/>', undefined],
  ])('200 (%s) and %s: what it states counts', async (type, text, path) => {
    const { url } = await crm(body(type, text));
    const reason = `the CRM refused it (200, it states an error: ${path})`;
    const refused = { is: 'rejected', reason, fix: expect.any(String) };
    const told = await tell(returnsTo(`${url}/{id}`).returns, left('a'));
    expect(told).toEqual([path === undefined ? { is: 'told' } : refused]);
  });

  test('200 with a web page is no answer: the report waits', async () => {
    const { url } = await crm(body('text/html; charset=utf-8', ' <html>Sign in</html>'));
    const error = await errorOf(tell(returnsTo(`${url}/{id}`).returns, left('a'), left('b')));
    expect({ name: error.name, message: error.message }).toEqual({
      name: 'Unavailable',
      message: expect.stringMatching(/answered 200 with a web page \(is url of returns the/),
    });
  });

  test.each([
    [401, 'Invalid', /refused the credentials \(401\) → correct the headers of returns/],
    [403, 'Invalid', /does not allow this with them \(403\)/],
    [405, 'Invalid', /→ correct url, method and body of returns/],
    [302, 'Invalid', /answered with a redirect \(302\)/],
    [500, 'Unavailable', /answered 500, after 4 attempts/],
  ])('%i ends it: nothing else is reported', async (status, name, words) => {
    const { url, heard } = await crm(status);
    const error = await errorOf(tell(returnsTo(`${url}/{id}`).returns, left('a'), left('b')));
    expect({ name: error.name, message: error.message }).toEqual({
      name,
      message: expect.stringMatching(words),
    });
    expect(error.message).not.toMatch(/sk_secret|x\.y/);
    expect(new Set(heard.map(({ path }) => path))).toEqual(new Set(['/a']));
  });

  test('500 and then 200 means reported, under the same key each time', async () => {
    const { url, heard } = await crm(500, (response) => response.destroy(), 200);
    expect(await tell(returnsTo(`${url}/{id}`).returns, left('a'))).toEqual([{ is: 'told' }]);
    expect(heard.map(({ headers }) => headers['idempotency-key'])).toEqual(
      Array.from({ length: 3 }, () => 'ret_a'),
    );
  });

  test('429 is waited out for some seconds, and no longer', async () => {
    const later = (seconds: number) => (response: ServerResponse) =>
      response.writeHead(429, { 'retry-after': String(seconds) }).end();
    const soon = await crm(later(5), 200);
    const { returns, clock } = returnsTo(`${soon.url}/{id}`);
    expect(await tell(returns, left('a'))).toEqual([{ is: 'told' }]);
    expect(clock.slept).toContain(5_000);
    const late = await crm(later(600));
    const error = await errorOf(tell(returnsTo(`${late.url}/{id}`).returns, left('a')));
    expect(error.name).toBe('RateLimited');
    expect(error.message).toContain('20 seconds were not enough');
  });

  test('is missing: the reason names the host alone', async () => {
    const error = await errorOf(tell(returnsTo(`${nowhere()}/{id}`).returns, left('a')));
    expect(error.name).toBe('Unavailable');
    expect(error.message).not.toMatch(/sk_secret|x\.y|\/a/);
  });
});
