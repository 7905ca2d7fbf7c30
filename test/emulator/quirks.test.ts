import { describe, expect, test } from 'vitest';
import { quirks } from '../../src/emulator/quirks/quirks.ts';
import { stage } from '../support/emulator/emulator-stage.ts';

const LIST = 'GET /api/contacts/list';
const TEMPLATES = 'GET /api/template/v1/list';
const NEWS = 'POST /api/contacts/channel/ch_news';
const CREATE = 'POST /api/template/v1/create';

function withAnn(...names: string[]) {
  const platform = stage({
    quirks: names,
    channels: [
      { id: 'ch_news', name: 'Newsletter' },
      { id: 'ch_product', name: 'Product updates', subscription: 'opt_in' },
      { id: 'ch_other', name: 'Other' },
    ],
  });
  platform.seed.contact({
    id: 'con_ann',
    email: 'ann@example.org',
    groups: [{ id: 'grp_1', name: 'Friends' }],
    channels: { ch_news: 'opt_in' },
  });
  return platform;
}

describe('enrolment', () => {
  test('no-flip: the opposite subscription is a 409, and nothing changes', () => {
    const platform = withAnn('no-flip');
    const out = { contact_id: 'con_ann', subscription: 'opt_out' };
    const { status, json } = platform.ask(NEWS, out);
    expect(status).toBe(409);
    expect(json.message).toBe('Contact is already subscribed to this channel');
    expect(platform.world.contact('con_ann')?.channels[0]?.subscription).toBe('opt_in');
    expect(platform.ask(NEWS, { email: 'ANN@example.org', subscription: 'opt_out' }).status).toBe(
      409,
    );
    expect(platform.ask(NEWS, { contact_id: 'con_ann' }).status).toBe(409);
    expect(platform.ask('POST /api/contacts/channel/ch_other', out).status).toBe(201);
    expect(platform.ask(NEWS, { contact_id: 'nobody' }).status).toBe(404);
    expect(platform.world.requests()[0]).toMatchObject({ contactId: 'con_ann', status: 409 });
  });

  test('unknown-email: 404, and no contact is made', () => {
    const platform = withAnn('unknown-email=404');
    const { status, json } = platform.ask(NEWS, { email: 'new@example.org' });
    expect([status, json.message]).toEqual([404, 'Contact not found']);
    expect(platform.world.contacts()).toHaveLength(1);
    expect(platform.ask(NEWS, { email: 'ann@example.org' }).status).toBe(409);
    expect(platform.ask(NEWS, { email: 'nonsense' }).status).toBe(400);
    expect(
      platform.ask('POST /api/contacts/channel/none', { email: 'new@example.org' }).json.message,
    ).toBe('Channel subscription not found');
  });

  test('enrol-status: 200', () => {
    expect(withAnn('enrol-status').ask(NEWS, { email: 'new@example.org' }).status).toBe(200);
  });

  test('enrol-touches: a change of a subscription changes updatedAt', () => {
    const out = { contact_id: 'con_ann', subscription: 'opt_out' };
    const moved = (...names: string[]): boolean => {
      const platform = withAnn(...names);
      const before = platform.world.contact('con_ann')?.updatedAt;
      platform.pass(5_000);
      platform.ask(NEWS, out);
      return platform.world.contact('con_ann')?.updatedAt !== before;
    };
    expect([moved(), moved('enrol-touches')]).toEqual([false, true]);
  });

  test('enrol-raw: the contact is a bare row', () => {
    const { json } = withAnn('enrol-raw').ask(NEWS, { email: 'new@example.org' });
    expect(Object.keys(json.contact).toSorted()).toEqual([
      'createdAt',
      'email',
      'firstName',
      'id',
      'lastName',
      'status',
      'suppressedAt',
      'suppressionReason',
      'updatedAt',
    ]);
    expect(json).toMatchObject({ subscriptionId: expect.any(String), event: 'contact.created' });
  });
});

describe('contacts', () => {
  const shown = (fallback: string) => [
    { id: 'ch_news', name: 'Newsletter', subscription: 'opt_in' },
    { id: 'ch_product', name: 'Product updates', subscription: 'opt_in' },
    { id: 'ch_other', name: 'Other', subscription: fallback },
  ];

  test.each([
    ['all-channels', 'opt_out'],
    ['all-channels=opt_in', 'opt_in'],
  ])('%s: every channel is listed, and nobody is enrolled by it', (quirk, fallback) => {
    const platform = withAnn(quirk);
    expect(platform.ask(LIST).json.contacts[0].channels).toEqual(shown(fallback));
    const one = platform.ask('GET /api/contacts/retrieve/con_ann').json;
    expect(one.channels).toEqual(shown(fallback));
    const made = platform.ask(NEWS, { email: 'new@example.org' }).json;
    expect(made.contact.channels).toEqual(shown(fallback));
    expect(platform.world.contact('con_ann')?.channels).toHaveLength(1);
    const join = 'POST /api/contacts/channel/ch_other';
    expect(platform.ask(join, { contact_id: 'con_ann' }).status).toBe(201);
  });

  test('list-groups-empty: retrieve still fills them', () => {
    const platform = withAnn('list-groups-empty');
    expect(platform.ask(LIST).json.contacts[0].groups).toEqual([]);
    expect(platform.ask('GET /api/contacts/retrieve/con_ann').json.groups).toHaveLength(1);
  });

  test('null-names', () => {
    expect(withAnn('null-names').ask(LIST).json.contacts[0]).toMatchObject({
      firstName: null,
      lastName: null,
    });
  });

  test('delete-soft-404', () => {
    const platform = withAnn('delete-soft-404');
    const { status, json } = platform.ask('DELETE /api/contacts/nobody');
    expect([status, json]).toEqual([200, { message: 'Contact not found' }]);
    expect(platform.ask('DELETE /api/contacts/con_ann').json.success).toBe(true);
  });

  test.each([
    ['%25', 2],
    ['_nn@', 1],
    ['a%25org', 1],
    ['_@x.example', 1],
    ['b.b', 0],
  ])('search-wildcards: %s finds %i', (search, found) => {
    const platform = withAnn('search-wildcards');
    platform.seed.contact({ email: 'b_b@x.example' });
    expect(platform.ask(`${LIST}?search=${search}`).json.total).toBe(found);
  });

  test('email-as-given: a sign-up keeps its case, and an enrolment makes a second contact', () => {
    const platform = withAnn('email-as-given');
    platform.dashboard.signUp({ email: ' Bob@Example.org ' });
    const enrol = () => platform.ask(NEWS, { email: 'Bob@Example.org' });
    expect([enrol().status, enrol().status]).toEqual([201, 409]);
    const emails = platform.ask(`${LIST}?search=bob`).json.contacts;
    expect(emails.map(({ email }: { email: string }) => email)).toEqual([
      'bob@example.org',
      'Bob@Example.org',
    ]);
  });

  test('email-as-given: an edited email keeps its case', () => {
    const { dashboard } = withAnn('email-as-given');
    expect(dashboard.editContact('con_ann', { email: ' Zoe@Example.org ' }).email).toBe(
      'Zoe@Example.org',
    );
  });

  test('unsorted-ties: pages of one millisecond repeat and skip', () => {
    const platform = withAnn('unsorted-ties');
    platform.pass(1);
    for (const id of ['a', 'b', 'c']) platform.seed.contact({ id, email: `${id}@example.org` });
    const page = (number: number) =>
      platform
        .ask(`${LIST}?limit=2&page=${number}`)
        .json.contacts.map(({ id }: { id: string }) => id);
    expect([page(1), page(2)]).toEqual([
      ['c', 'b'],
      ['c', 'con_ann'],
    ]);
  });
});

describe('templates', () => {
  test('template-total and template-limit', () => {
    const platform = withAnn('template-total=page', 'template-limit=10');
    for (let index = 0; index < 15; index += 1) platform.seed.template({ name: `t${index}` });
    expect(platform.ask(TEMPLATES).json).toMatchObject({ total: 10, limit: 10 });
    expect(platform.ask(`${TEMPLATES}?page=2`).json).toMatchObject({ total: 5, page: 2 });
    expect(platform.ask(`${TEMPLATES}?limit=12`).json).toMatchObject({ total: 12, limit: 12 });
  });

  test('content-rederives-variables', () => {
    const platform = withAnn('content-rederives-variables');
    const content = [{ text: 'Dear {{name}} of {{ city }}, {{name}}' }];
    const derived = ['name', 'city'].map((name) => ({ name, type: 'string', defaultValue: null }));
    const { id, variables } = platform.ask(CREATE, { name: 'a', content, variables: [] }).json;
    expect(variables).toEqual(derived);
    const update = (body: object) =>
      platform.ask(`PUT /api/template/v1/${id}`, body).json.variables;
    const own = [{ name: 'name', type: 'number', defaultValue: '1' }];
    expect(update({ content, variables: own })).toEqual(own);
    expect(update({ subject: 'b' })).toEqual(own);
    expect(update({ content })).toEqual(derived);
    expect(platform.world.templates()[0]?.variables).toEqual(derived);
  });
});

describe('limits', () => {
  const tight = (...names: string[]) => stage({ quirks: names, limits: ['*=1/60'] });
  const headersOf = (headers: Record<string, string>) =>
    Object.fromEntries(Object.entries(headers).filter(([name]) => /ratelimit|retry/.test(name)));

  test.each([
    [
      'reset',
      { 'x-ratelimit-limit': '1', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '60' },
    ],
    ['none', {}],
  ])('headers=%s', (which, expected) => {
    const platform = tight(`headers=${which}`);
    expect(headersOf(platform.ask(LIST).headers)).toEqual(expected);
    platform.pass(500);
    expect(headersOf(platform.ask(LIST).headers)).toEqual({ ...expected, 'retry-after': '60' });
  });

  test('headers=none-templates', () => {
    const platform = tight('headers=none-templates');
    expect(headersOf(platform.ask(TEMPLATES).headers)).toEqual({});
    expect(headersOf(platform.ask(LIST).headers)['x-ratelimit-window']).toBe('60');
  });

  test('retry-after-short: the wait is too short, and repeated in the body', () => {
    const platform = tight('retry-after-short', 'retry-after-body', 'error-message-only');
    platform.ask(LIST);
    platform.pass(500);
    expect(platform.ask(LIST).headers['retry-after']).toBe('60');
    platform.pass(100);
    const { headers, json } = platform.ask(LIST);
    expect(headers['retry-after']).toBe('59');
    expect(json).toEqual({ message: 'Rate limit exceeded', retryAfter: 59 });
    platform.pass(59_000);
    expect(platform.ask(LIST).headers['retry-after']).toBe('1');
  });

  test('retry-after-stuck: an exhausted limit stays exhausted', () => {
    const platform = tight('retry-after-stuck', 'retry-after-short');
    expect(platform.ask(LIST).status).toBe(200);
    for (let times = 0; times < 3; times += 1) {
      const { status, headers } = platform.ask(LIST);
      expect([status, headers['retry-after'], headers['x-ratelimit-remaining']]).toEqual([
        429,
        '1',
        '0',
      ]);
      platform.pass(3_600_000);
    }
    expect(platform.ask(TEMPLATES).status).toBe(200);
  });
});

describe('words and statuses', () => {
  test('validation-status: applies to what does not fit the schemas, and nothing else', () => {
    const platform = withAnn('validation-status=422');
    expect(platform.ask(`${LIST}?limit=0`).status).toBe(422);
    expect(platform.ask(NEWS, { email: 'nonsense' })).toMatchObject({
      status: 422,
      json: { message: 'Invalid email format' },
    });
    expect(platform.ask(NEWS, '{').status).toBe(400);
  });

  test('error-message-only: applies to a wrong key and an unknown path, too', () => {
    const platform = withAnn('error-message-only');
    expect(platform.ask('GET /nowhere').json).toEqual({ message: 'Not found' });
    expect(platform.ask(LIST, undefined, { 'x-api-key': 'no' }).json).toEqual({
      message: 'Invalid API key',
    });
  });

  test('event-ids', () => {
    const platform = withAnn('event-ids');
    const id = expect.stringMatching(/^evt_[a-z0-9]{8}$/);
    expect(platform.ask(LIST).json.event).toEqual(id);
    expect(platform.ask(NEWS, { email: 'b@example.org' }).json).toMatchObject({
      event: id,
      contact: { event: id },
    });
    expect(platform.ask('GET /api/contacts/retrieve/con_ann').json.event).toBeUndefined();
  });

  test('empty-user-agent', () => {
    const platform = withAnn('empty-user-agent=400');
    for (const headers of [{}, { 'user-agent': ' ' }]) {
      expect(platform.ask(LIST, undefined, headers).status).toBe(400);
    }
    expect(platform.ask(LIST, undefined, { 'user-agent': 'test' }).status).toBe(200);
  });

  test('domain-statuses: alone and in a list', () => {
    const platform = withAnn('domain-statuses', 'event-ids');
    const made = platform.ask('POST /api/domain/v1/create', { domain: 'one.example.org' });
    expect(made).toMatchObject({ status: 201, json: { status: 'start-verify' } });
    expect(made.json.event).toMatch(/^evt_/);
    platform.seed.domain({ domain: 'two.example.org', status: 'failed' });
    const { domains } = platform.ask('GET /api/domain/v1/list').json;
    expect(domains).toMatchObject([{ status: 'failed' }, { status: 'start-verify' }]);
    const verify = `POST /api/domain/v1/verify/${made.json.id}`;
    expect(platform.ask(verify).json.status).toBe('verifying');
    expect(platform.world.domains()).toMatchObject([{ status: 'failed' }, { status: 'verifying' }]);
  });

  test('domains and keys: validation-status and error-message-only as everywhere', () => {
    const platform = withAnn('validation-status=422', 'error-message-only');
    expect(platform.ask('POST /api/domain/v1/create', { domain: 'no domain' }).status).toBe(422);
    expect(platform.ask('GET /api/domain/v1/list?limit=0').status).toBe(422);
    expect(platform.ask('POST /api/api-key/v1/enable/none').json).toEqual({
      message: 'API key not found',
    });
  });
});

describe('names of quirks', () => {
  test('all quirks together still answer', () => {
    const all = quirks.map(({ name }) => name);
    const platform = withAnn(...all);
    const headers = { 'user-agent': 'test' };
    expect(platform.ask(LIST, undefined, headers).json).toMatchObject({ total: 1 });
    expect(platform.ask(NEWS, { email: 'new@example.org' }, headers).status).toBe(404);
  });

  test.each([
    [
      'noflip',
      /quirk "noflip" is not known: use no-flip, unknown-email=404, .*headers=reset\|none/,
    ],
    ['headers=some', 'quirk "headers=some" does not know that value: write headers=reset|none'],
    ['no-flip=1', 'quirk "no-flip=1" does not know that value: write no-flip alone'],
    ['no-flip=', 'write no-flip alone'],
  ])('%s is refused', (text, message) => {
    expect(() => stage({ quirks: [text] })).toThrow(message);
  });

  test('the same name twice is refused', () => {
    expect(() => stage({ quirks: ['headers=none', 'headers=reset'] })).toThrow(
      'quirk "headers" is given twice',
    );
  });
});
