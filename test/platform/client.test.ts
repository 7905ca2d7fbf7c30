import { describe, expect, test } from 'vitest';
import { createGate } from '../../src/http/rate-limit/request-gate.ts';
import type { Answer } from '../../src/domain/exchange.ts';
import { createPlatform, type Platform } from '../../src/platform/api-client.ts';
import { virtualClock } from '../support/waiting.ts';
import {
  ann,
  answering,
  apiKey,
  calls,
  COOKIE,
  domain,
  fails,
  KEY,
  listed,
  template,
  type Reply,
} from '../support/platform/connected-client.ts';

describe('the typed client sends', () => {
  const channel = 'POST /api/contacts/channel';
  const create = { name: 'Welcome', content: [] };
  const made = { domain: 'example.com', tls: 'enforced' } as const;
  const letter = { to: 'Ann@example.com', variables: { n: '1' } };
  const blocked = { page: 2, limit: 50, search: ' Ann+1@Example.com ', status: 'blocked' } as const;
  const page = { page: 1, limit: 100 };
  const byId = { contactId: 'con_1', subscription: 'opt_out' } as const;
  const byEmail = { email: ' Ann@Example.COM', subscription: 'opt_in' } as const;

  test.each<[line: string, (to: Platform) => Promise<unknown>, answer: unknown, body?: object]>([
    [
      'GET /api/contacts/list?page=2&limit=50&search=ann%2B1%40example.com&status=blocked',
      (to) => to.contacts.list(blocked),
      listed,
    ],
    ['GET /api/contacts/retrieve/a%2Fb%3Fc', (to) => to.contacts.retrieve('a/b?c'), ann],
    ['DELETE /api/contacts/con_1', (to) => to.contacts.remove('con_1'), { success: true }],
    [
      `${channel}/ch%201`,
      (to) => to.contacts.enrol('ch 1', byId),
      {},
      { contact_id: 'con_1', subscription: 'opt_out' },
    ],
    [
      `${channel}/ch`,
      (to) => to.contacts.enrol('ch', byEmail),
      {},
      { email: 'ann@example.com', subscription: 'opt_in' },
    ],
    [
      'GET /api/template/v1/list?page=1&limit=100',
      (to) => to.templates.list(page),
      { templates: [], total: 0 },
    ],
    ['POST /api/template/v1/create', (to) => to.templates.create(create), template, create],
    [
      'PUT /api/template/v1/tpl_1',
      (to) => to.templates.update('tpl_1', { subject: 'Hi' }),
      template,
      { subject: 'Hi' },
    ],
    [
      'POST /api/template/v1/tpl%201/test',
      (to) => to.templates.test('tpl 1', letter),
      { success: true },
      letter,
    ],
    ['GET /api/domain/v1/list?page=1&limit=100', (to) => to.domains.list(page), { domains: [] }],
    ['POST /api/domain/v1/create', (to) => to.domains.create(made), domain, made],
    [
      'POST /api/domain/v1/verify/dom_1',
      (to) => to.domains.verify('dom_1'),
      { id: 'dom_1', status: 'verifying' },
    ],
    ['POST /api/api-key/v1/enable/key_1', (to) => to.apiKeys.enable('key_1'), apiKey],
  ])('%s', async (line, use, answer, sent) => {
    const { run, requests } = await answering({ body: answer });
    await run(use);
    expect(requests).toHaveLength(1);
    const { method, path, body, headers } = requests[0] ?? {};
    expect([`${method} ${path}`, body]).toEqual([line, sent]);
    const json = 'application/json';
    expect(headers).toMatchObject({ 'x-api-key': KEY, accept: json });
    expect(Object(headers)['content-type']).toBe(sent && json);
  });

  test.each(['', '.', '..', '%2e', '.%2E'])('no id of %j', async (id) => {
    const { run, requests } = await answering({ body: {} });
    expect(await fails(run((to) => to.contacts.remove(id)))).toMatchObject({ name: 'Invalid' });
    expect(requests).toEqual([]);
  });

  const named = { nameservers: ['ns1.example.net'] };

  test.each([
    COOKIE,
    `Cookie: theme=dark; ${COOKIE}; lang=en`,
    `__Secure-app.session_token=x; other=1`,
  ])('nameservers with the session of %s, without the key', async (sessionCookie) => {
    const { run, requests } = await answering({ body: named });
    await run((to) => to.domains.nameservers('dom_1', { sessionCookie }));
    expect(requests).toHaveLength(1);
    expect(requests[0]).toMatchObject({
      method: 'GET',
      path: '/api/domain/v1/nameservers/dom_1',
      headers: { cookie: expect.stringMatching(/^\S+\.session_token=\S+$/) },
    });
    expect(requests[0]?.['headers']).not.toHaveProperty('x-api-key');
  });

  test.each(['', 's3cr3t', 'session_token=', 'a.session_token=', 'a.session_token_old=x', 'a=b'])(
    'no cookie %j',
    async (sessionCookie) => {
      const { run, requests } = await answering({ body: named });
      const error = await fails(run((to) => to.domains.nameservers('dom_1', { sessionCookie })));
      expect(error).toMatchObject({ name: 'Invalid' });
      expect(requests).toEqual([]);
    },
  );

  test('each operation by its route', async () => {
    const { run, gate } = await answering({ status: 400, body: {} });
    for (const [, , use] of calls) await fails(run(use));
    expect(Object.keys(gate.counts().byRoute)).toEqual([...new Set(calls.map(([name]) => name))]);
  });
});

describe('the typed client returns', () => {
  test('a list of contacts, with the clock of the platform', async () => {
    const date = 'Thu, 01 Jan 2026 10:00:00 GMT';
    const body = { ...listed, totalContacts: 3, subscribedContacts: 2, unsubscribedContacts: 'x' };
    const { run } = await answering({ headers: { date }, body });
    const list = await run((to) => to.contacts.list({ page: 1, limit: 100 }));
    const { object: _, unheardOf: __, ...contact } = ann;
    expect(list).toEqual({
      contacts: [contact],
      total: 1,
      totalContacts: 3,
      subscribedContacts: 2,
      date: Date.UTC(2026, 0, 1, 10),
    });
  });

  test('a brief list without names, properties and groups', async () => {
    const { run } = await answering({ body: listed });
    const list = await run((to) => to.contacts.list({ page: 1, limit: 100, brief: true }));
    const { id, email, status, channels, suppressionReason, suppressedAt, createdAt } = ann;
    const contact = { id, email, status, channels, suppressionReason, suppressedAt, createdAt };
    expect(list.contacts).toEqual([contact]);
  });

  test('a contact, whatever is wrong with what is only shown', async () => {
    const { run } = await answering({ body: { ...ann, properties: [], groups: 1, lastName: 5 } });
    expect(await run((to) => to.contacts.retrieve('con_1'))).toMatchObject({ id: 'con_1' });
  });

  test('no contact for a 404 of the platform', async () => {
    const { run, requests } = await answering({
      status: 404,
      body: { message: 'Contact not found' },
    });
    expect(await run((to) => to.contacts.retrieve('con_1'))).toBeUndefined();
    expect(requests).toHaveLength(1);
  });

  test.each(['', '<html>404</html>', 'not found'])(
    'an error for a 404 of something else: %j',
    async (body) => {
      const { run } = await answering({ status: 404, body });
      const error = await fails(run((to) => to.contacts.retrieve('con_1')));
      expect(error).toMatchObject({ name: 'Unavailable', acted: 'no', status: 404 });
    },
  );

  test.each([
    [{ body: { success: true, id: 'con_1' } }, 'removed'],
    [{ body: { success: false } }, 'unclear'],
    [{ body: { message: 'Contact not found' } }, 'unclear'],
    [{ status: 404, body: { message: 'Contact not found' } }, 'unclear'],
  ] as [Reply, string][])('a deletion answered %j is %s', async (reply, result) => {
    const { run } = await answering(reply);
    expect(await run((to) => to.contacts.remove('con_1'))).toBe(result);
  });

  test.each([
    [{ status: 201, body: { contact: ann, subscriptionId: 'sub_1' } }, { subscriptionId: 'sub_1' }],
    [
      { body: { contact: { id: 'con_1', email: null } } },
      { contact: { id: 'con_1', email: null } },
    ],
    [{ status: 202, body: { contact: 'con_1', subscriptionId: 7 } }, {}],
  ] as [Reply, object][])('an enrolment answered %j', async (reply, expected) => {
    const { run } = await answering(reply);
    const who = { contactId: 'con_1', subscription: 'opt_in' } as const;
    expect(await run((to) => to.contacts.enrol('ch', who))).toMatchObject(expected);
  });

  test('templates', async () => {
    const { run } = await answering({ body: { templates: [template], total: 1 } });
    const { templates } = await run((to) => to.templates.list({ page: 1, limit: 100 }));
    expect(templates).toMatchObject([{ id: 'tpl_1', name: 'Welcome', description: null }]);
    expect(templates[0]).not.toHaveProperty('extra');
  });

  test.each([
    [{ success: true }, 'sent'],
    [{ success: false }, 'unclear'],
    [{ message: 'queued' }, 'unclear'],
  ])('a test send answered %j is %s', async (body, result) => {
    const { run } = await answering({ body });
    expect(await run((to) => to.templates.test('tpl_1', { to: 'ann@example.com' }))).toBe(result);
  });

  test('domains, whatever is wrong with what is only shown', async () => {
    const loose = { ...domain, status: 'suspended', dnsRecords: [{ ttl: 1 }], tls: 0, extra: 1 };
    const { run } = await answering({ body: { domains: [loose], total: 'x' } });
    const { domains } = await run((to) => to.domains.list({ page: 1, limit: 100 }));
    expect(domains).toEqual([
      { id: 'dom_1', domain: 'example.com', status: 'suspended', dnsRecords: [{}] },
    ]);
  });

  test('a created domain, a verification, nameservers, a key', async () => {
    const nameservers = { nameservers: ['ns1', 'ns2'], dnsProvider: 'x', event: 'y' };
    const { run } = await answering(
      { status: 201, body: domain },
      { body: { id: 'dom_1', status: 'verifying' } },
      { body: nameservers },
      { body: apiKey },
    );
    const created = await run((to) => to.domains.create({ domain: 'example.com' }));
    expect(created).toEqual({ id: 'dom_1', domain: 'example.com', status: 'pending' });
    const verified = await run((to) => to.domains.verify('dom_1'));
    expect(verified).toEqual({ id: 'dom_1', status: 'verifying' });
    const named = await run((to) => to.domains.nameservers('dom_1', { sessionCookie: COOKIE }));
    expect(named).toEqual({ nameservers: ['ns1', 'ns2'], dnsProvider: 'x' });
    const enabled = await run((to) => to.apiKeys.enable('key_1'));
    expect(enabled).toEqual({ id: 'key_1', name: 'CI', enabled: true });
  });

  test.each(['id', 'email', 'status', 'channels'])(
    'an error for a contact without %s',
    async (field) => {
      const { run, requests } = await answering({
        body: { ...listed, contacts: [{ ...ann, [field]: null }] },
      });
      const error = await fails(run((to) => to.contacts.list({ page: 1, limit: 100 })));
      expect(error).toMatchObject({ name: 'Unavailable', acted: 'no', status: 200 });
      expect(String(error)).toContain(
        `contacts.list with a body that is not a list of contacts (contacts.0.${field})`,
      );
      expect(requests).toHaveLength(4);
    },
  );
});

test('a temporary failure is not visible to the caller', async () => {
  const { run } = await answering(
    { status: 503, body: 'x' },
    { status: 429, body: '' },
    { body: ann },
  );
  expect(await run((to) => to.contacts.retrieve('con_1'))).toMatchObject({ id: 'con_1' });
});

test('a signal and a priority are passed with the call', async () => {
  const clock = virtualClock();
  const gate = createGate({ clock, random: () => 0 });
  const order: string[] = [];
  const send = async ({ path }: { path: string }): Promise<Answer> => {
    order.push(path.slice(-1));
    await clock.sleep(10);
    return { status: 200, headers: {}, body: JSON.stringify(ann) };
  };
  const { contacts } = createPlatform({ send, gate, clock, random: () => 0, apiKey: KEY });
  const stop = new AbortController();
  const read = (id: string, priority?: 'event') =>
    contacts.retrieve(id, { priority, signal: stop.signal });
  const all = Promise.allSettled([read('1'), read('2'), read('3'), read('4', 'event'), read('5')]);
  await clock.advance(5);
  stop.abort(new Error('enough'));
  const ends = await clock.run(all);
  // Nothing is known of the route yet: one is in flight.
  expect(order).toEqual(['4']);
  expect(ends.map(({ status }) => status === 'fulfilled')).toEqual([
    false,
    false,
    false,
    true,
    false,
  ]);
});
