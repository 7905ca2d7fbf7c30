import { describe, expect, test } from 'vitest';
import { Rejected, Unavailable } from '../../src/domain/errors.ts';
import { nowhere, serve, serveRaw } from '../support/http/test-server.ts';
import {
  answering,
  calls,
  connect,
  COOKIE,
  enrolByEmail,
  fails,
  KEY,
  type Reply,
} from '../support/platform/connected-client.ts';
import { sampled } from '../support/extent.ts';

describe('a refusal', () => {
  const refused = async (reply: Reply, use: (typeof calls)[0][2] = enrolByEmail) => {
    const { run, requests } = await answering(reply);
    const error = await fails(run(use));
    if (!(error instanceof Rejected)) throw error;
    expect(requests).toHaveLength(1);
    return error;
  };

  test('carries the words of the platform', async () => {
    const words = { message: 'Invalid email format', why: 'No dot.', fix: 'Add one.' };
    const error = await refused({ status: 400, body: { ...words, link: 'x' } });
    expect(error).toMatchObject({ ...words, status: 400 });
  });

  test.each([
    [422, { message: 'Too long' }, { message: 'Too long', why: 'Too long', fix: '' }],
    [409, '', { message: /answered 409 to contacts.enrol/, why: '', fix: '' }],
    [413, '<html><h1>Too large</h1></html>', { message: /answered 413/, why: '' }],
    [400, { message: { text: 'no' } }, { message: /answered 400/, why: '' }],
    [401, { message: 'Nope' }, { message: /refused the API key.*platform\.apiKey/, why: 'Nope' }],
    [
      403,
      { message: 'No' },
      { message: /contacts\.enrol \(403\): give it the right to write con/ },
    ],
  ])('%i %j', async (status, body, { message, ...more }) => {
    const error = await refused({ status, body });
    expect(error).toMatchObject({ status, ...more });
    expect(error.message).toMatch(message);
  });

  test('is one short line, without the key and without any address', async () => {
    const text = `${KEY}\n\u0007\u202ebad: ANN@example.com, ann%40example.com or bob@example.org`;
    const { message, why } = await refused({
      status: 400,
      body: { message: text, why: 'y'.repeat(999) },
    });
    expect(message).toBe('‹key› bad: ‹address›, ‹address› or ‹address›');
    expect(why).toBe('y'.repeat(300));
  });

  test.each([
    [401, /refused the session cookie \(401\)/],
    [403, /this session to use domains\.nameservers \(403\)/],
  ])('of a session, with %i, does not print the cookie', async (status, message) => {
    const said = { message: `${COOKIE} belongs to nobody`, why: `s3cr3t.token and ${KEY}` };
    const error = await refused({ status, body: said }, ({ domains }) =>
      domains.nameservers('dom_1', { sessionCookie: COOKIE }),
    );
    expect(error.message).toMatch(message);
    expect(error.why).toBe('‹key› and ‹key›');
  });

  test('is built in linear time from a long text', async () => {
    const { message } = await refused({ status: 400, body: { message: 'a'.repeat(1_000_000) } });
    expect(message).toHaveLength(300);
  });
});

describe.each(sampled(calls, 4))('%s', (route, changes, use) => {
  const acted = changes ? 'maybe' : 'no';

  test.each([
    ['a redirect', { status: 302, headers: { location: '/login' }, body: '' }, /platform\.url/],
    ['a web page', { headers: { 'content-type': 'text/html' }, body: '<html>' }, /platform\.url/],
    ['nothing', { body: '' }, /with a body that is not/],
    ['half of it', { body: '{"id":"con_1' }, /with a body that is not/],
    ['a list', { body: [] }, /with a body that is not/],
  ] as [string, Reply, RegExp][])('answered by %s', async (_, reply, message) => {
    const { run, requests } = await answering(reply);
    const error = await fails(run(use));
    expect(error).toBeInstanceOf(Unavailable);
    expect(error).toMatchObject({ acted });
    expect(String(error)).toMatch(message);
    expect(String(error)).toContain(route);
    expect(requests).toHaveLength(changes ? 1 : 4);
  });

  test('no connection: four attempts, nothing acted', async () => {
    const { run, gate } = connect(nowhere());
    expect(await fails(run(use))).toMatchObject({ acted: 'no' });
    expect(gate.counts().total).toBe(0);
  });

  test('connection cut after the request: only a read is sent again', async () => {
    let requests = 0;
    const url = await serveRaw((socket) =>
      socket.once('data', () => {
        requests += 1;
        socket.destroy();
      }),
    );
    expect(await fails(connect(url).run(use))).toMatchObject({ acted });
    expect(requests).toBe(changes ? 1 : 4);
  });

  test('no answer in time', async () => {
    const url = await serve(() => undefined);
    const { run, gate } = connect(url, 300);
    expect(await fails(run(use))).toMatchObject({ acted });
    expect(gate.counts().total).toBe(changes ? 1 : 4);
  });
});

/** What is never sent twice, whatever the answer. */
const once: [string, number][] = [
  ['templates.create', 1],
  ['templates.test', 1],
  ['domains.create', 1],
];
/** Requests sent when every answer is this status. */
const attempts: [number, number, [string, number][]][] = [
  [500, 4, once],
  [502, 4, [...once, ['by email', 1]]],
  [503, 4, [...once, ['by email', 1]]],
  [504, 4, [...once, ['by email', 1]]],
];
describe.each(attempts)('%i', (status, usual, exceptions) => {
  test.each(calls)('%s', async (route, changes, use) => {
    const name = use === enrolByEmail ? 'by email' : route;
    const { run, requests } = await answering({ status, body: { message: 'Oops' } });
    const error = await fails(run(use));
    expect(error).toMatchObject({ status, acted: changes ? 'maybe' : 'no' });
    expect(String(error)).toContain(`the platform answered ${status} to ${route}: Oops`);
    expect(requests).toHaveLength(new Map(exceptions).get(name) ?? usual);
  });
});
