/** What HubSpot's API may answer, by its documented shapes, and what is made of it. */
import { join } from 'node:path';
import nock from 'nock';
import { describe, expect, test } from 'vitest';
import { changesOf, fields, sourceOf, TOKEN } from '../support/sources/hubspot-account.ts';
import { errorOf, readAll, scratch, write, WRITTEN } from '../support/sources/source-reading.ts';
import { onlyNocked } from '../support/sources/nock-server.ts';

const api = 'https://api.hubapi.com';
const contacts = '/crm/v3/objects/contacts';
const date = { date: new Date(WRITTEN).toUTCString() };
const since = new Date(WRITTEN).toISOString();
const signal = new AbortController().signal;

onlyNocked();

const person = (id: number, more: object = {}) => ({
  id: String(id),
  properties: { email: `p${id}@x.y`, newsletter: 'true' },
  createdAt: '2026-01-01T00:00:00.000Z',
  updatedAt: '2026-01-02T00:00:00.000Z',
  archived: false,
  ...more,
});
const list = (ids: number[], after?: string) => ({
  results: ids.map((id) => person(id)),
  ...(after !== undefined && { paging: { next: { after, link: `${api}${contacts}` } } }),
});
const refused = (policyName: string, message: string) => ({
  status: 'error',
  message,
  errorType: 'RATE_LIMIT',
  correlationId: 'c033cdaa-2c40-4a64-ae48-b4cec88dad24',
  policyName,
});
const daily = refused('DAILY', 'You have reached your daily limit.');
const rolling = refused(
  'TEN_SECONDLY_ROLLING',
  'You have reached your ten_secondly_rolling limit.',
);
const secondly = refused('SECONDLY', 'You have reached your secondly limit.');
const scopes = {
  status: 'error',
  message: "This app hasn't been granted all required scopes to make this call.",
  errors: [{ context: { requiredGranularScopes: ['crm.objects.contacts.read'] } }],
  category: 'MISSING_SCOPES',
};

const named = (times = 1, headers: Record<string, string> = date) =>
  nock(api, { reqheaders: { authorization: `Bearer ${TOKEN}` } })
    .get('/crm/v3/properties/contacts?archived=false')
    .times(times)
    .reply(200, { results: [{ name: 'email' }, { name: 'newsletter' }] }, headers);
const page = (archived: boolean, after?: string) =>
  nock(api)
    .get(contacts)
    .query({
      limit: '100',
      properties: 'email,newsletter,hs_merged_object_ids,hs_calculated_merged_vids',
      archived: String(archived),
      ...(after !== undefined && { after }),
    });
const search = (above: string) =>
  nock(api).post(`${contacts}/search`, {
    filterGroups: [
      {
        filters: [
          { propertyName: 'lastmodifieddate', operator: 'GTE', value: String(WRITTEN) },
          { propertyName: 'hs_object_id', operator: 'GT', value: above },
        ],
      },
    ],
    sorts: [{ propertyName: 'hs_object_id', direction: 'ASCENDING' }],
    properties: ['hs_object_id'],
    limit: 100,
  });
const batch = (ids: number[], archived = false) =>
  nock(api).post(`${contacts}/batch/read?archived=${archived}`, {
    properties: ['email', 'newsletter', 'hs_merged_object_ids', 'hs_calculated_merged_vids'],
    inputs: ids.map((id) => ({ id: String(id) })),
  });

const readIt = async (options: object = {}) => {
  const { source, clock } = sourceOf(api, options);
  const { values, certificate } = await readAll(source, fields);
  return { ids: values.map(({ id }) => id), certificate, slept: clock.slept };
};
const lineOf = async (promise: Promise<unknown>) => {
  const { name, message } = await errorOf(promise);
  expect(message).not.toMatch(/secret|@x\.y|crm\/v3/);
  return `${name}: ${message}`;
};

describe('pages', () => {
  test('are followed to the end that HubSpot marks, also when empty', async () => {
    named();
    page(false).reply(200, list([1, 2], 'NTI1'));
    page(false, 'NTI1').reply(200, list([], '3'));
    page(false, '3').reply(200, list([3]));
    page(true).reply(200, { results: [person(4, { archived: true })] });
    const { ids, certificate } = await readIt();
    expect(ids).toEqual(['1', '2', '3', '4']);
    expect(certificate.complete).toBe(true);
  });

  test('hide nobody when they repeat a contact', async () => {
    named();
    page(false).reply(200, list([1, 2], '3'));
    page(false, '3').reply(200, list([1, 2], '4'));
    page(false, '4').reply(200, list([3]));
    page(true).reply(200, list([]));
    const { ids, certificate } = await readIt();
    expect(ids).toEqual(['1', '2', '1', '2', '3']);
    expect(certificate.complete).toBe(true);
  });

  test('in a circle prove nothing', async () => {
    named();
    page(false).reply(200, list([1], '2'));
    page(false, '2').reply(200, list([2], '2'));
    const { ids, certificate } = await readIt();
    expect(ids).toEqual(['1', '2']);
    expect(certificate).toMatchObject({
      complete: false,
      why: expect.stringMatching(/^reading stopped at page 3: api\.hubapi\.com goes in a circle/),
    });
  });

  test('in another order than by id prove nothing in a search', async () => {
    named();
    search('0').reply(200, { total: 2, ...list([1, 2], '2') });
    batch([1, 2]).reply(200, { status: 'COMPLETE', results: [person(1), person(2)] });
    search('2').reply(200, { total: 2, ...list([7, 3]) });
    const { values, certificate } = await changesOf(sourceOf(api).source, since);
    expect(values).toHaveLength(2);
    expect(certificate).toMatchObject({
      complete: false,
      why: expect.stringMatching(/its search, or in another order than it was asked for$/),
      fix: 'read it again',
    });
  });

  test('with something that is no contact: broken, and no proof', async () => {
    named();
    page(false).reply(200, {
      results: [person(1), null, { id: '3', properties: { email: '\0' } }],
    });
    page(true).reply(200, list([]));
    const { certificate } = await readIt();
    const why = '2 contacts cannot be read, the first at page 1, contact 2';
    expect(certificate).toMatchObject({ complete: false, why });
  });
});

describe('a limit', () => {
  test.each<[string, object, Record<string, string>, number, number?]>([
    ['of ten seconds', rolling, {}, 10_000],
    ['on a record that is locked', { status: 'error', category: 'LOCKED' }, {}, 2_000, 423],
    ['on an account that is moved', {}, { 'retry-after': '300' }, 300_000, 477],
    ['of its interval', rolling, { 'x-hubspot-ratelimit-interval-milliseconds': '4000' }, 4_000],
    ['of a second', secondly, {}, 1_000],
    ['that says how long', rolling, { 'retry-after': '7' }, 7_000],
  ])('%s is waited out', async (_, body, headers, waitMs, status = 429) => {
    named();
    page(false).reply(status, body, headers);
    page(false).reply(200, list([1]));
    page(true).reply(200, list([]));
    const { ids, certificate, slept } = await readIt();
    expect([ids, certificate.complete, slept]).toEqual([['1'], true, [waitMs]]);
  });

  test('for the day is not waited out: the failure, or what was read, comes at once', async () => {
    nock(api)
      .get(/properties/)
      .reply(429, daily);
    const { source, clock } = sourceOf(api);
    expect(await lineOf(readAll(source, fields))).toBe(
      'RateLimited: api.hubapi.com has no request left for today, for this account (429)' +
        ' → run less often, or have its limit raised; it begins anew at midnight',
    );
    expect(clock.slept).toEqual([]);
    named();
    page(false).reply(200, list([1], '2'));
    page(false, '2').reply(429, daily);
    const { ids, certificate, slept } = await readIt();
    expect([ids, slept]).toEqual([['1'], []]);
    expect(certificate).toMatchObject({ complete: false, why: expect.stringMatching(/for today/) });
  });

  test('without end is given up after ten minutes', async () => {
    named();
    page(false).times(61).reply(429, rolling);
    const line = await lineOf(readIt());
    expect(line).toMatch(
      /^RateLimited: .* asks to wait \(429\), and 10 minutes were not enough → /,
    );
  });

  test('is waited for when the headers say that nothing is left', async () => {
    const left = (remaining: string) => ({
      'x-hubspot-ratelimit-max': '100',
      'x-hubspot-ratelimit-remaining': remaining,
      'x-hubspot-ratelimit-interval-milliseconds': '10000',
    });
    named();
    page(false).reply(200, list([1], '2'), left('1'));
    page(false, '2').reply(200, list([2]), left('0'));
    page(true).reply(200, list([]), left('99'));
    const { certificate, slept } = await readIt();
    expect([certificate.complete, slept]).toEqual([true, [10_000]]);
  });

  test('for search, which no header tells, is respected', async () => {
    named();
    for (const [above, id] of [0, 1, 2, 3].entries()) {
      search(String(above)).reply(200, list([id + 1], id < 3 ? String(id + 1) : undefined));
      batch([id + 1]).reply(200, { results: [person(id + 1)] });
    }
    const { source, clock } = sourceOf(api);
    expect((await changesOf(source, since)).values).toHaveLength(4);
    expect(clock.slept).toEqual([250, 250, 250]);
  });
});

describe('a token', () => {
  const mend = 'correct the token of the source, or its rights there';
  test('is reported when it is refused', async () => {
    nock(api)
      .get(/properties/)
      .reply(401, { category: 'INVALID_AUTHENTICATION' });
    const line = 'Invalid: api.hubapi.com refused the credentials (401)';
    expect(await lineOf(readIt())).toBe(`${line} → ${mend}`);
  });

  test('ends the reading when it expires; what was read counts, uncertified', async () => {
    named(2);
    page(false).reply(200, list([1, 2], '3'));
    page(false, '3').reply(401, { category: 'EXPIRED_AUTHENTICATION' });
    const { ids, certificate } = await readIt();
    expect(ids).toEqual(['1', '2']);
    expect(certificate).toMatchObject({
      complete: false,
      why: 'reading stopped at page 2: api.hubapi.com refused the credentials (401)',
      fix: mend,
    });
    search('0').reply(401, {});
    expect(await lineOf(changesOf(sourceOf(api).source, since))).toMatch(/^Invalid: .* \(401\)/);
  });

  test.each([
    ['properties', 'crm.schemas.contacts.read'],
    ['contacts', 'crm.objects.contacts.read'],
  ])('without the right to read %s is reported', async (what, scope) => {
    if (what === 'contacts') named();
    nock(api)
      .get(new RegExp(`/crm/v3/(objects/)?${what}`))
      .reply(403, scopes);
    expect(await lineOf(readIt())).toBe(
      'Invalid: api.hubapi.com does not allow this with the token (403)' +
        ` → give its app the scope ${scope}`,
    );
  });

  test('can be kept in a file, and change there', async () => {
    const file = join(await scratch(), 'token');
    const { source } = sourceOf(api, { token: undefined, tokenFile: file });
    const one = async () => source.one?.('1', { fields, signal });
    expect(await lineOf(one())).toMatch(/^Invalid: .*token: there is no such file/);
    await write(file, 'a b\n');
    expect(await lineOf(one())).toMatch(/holds no token → write it alone into it$/);
    await write(file, `${TOKEN}\n`);
    named();
    nock(api, { reqheaders: { authorization: `Bearer ${TOKEN}` } })
      .get(/contacts\/1\?/)
      .reply(200, person(1));
    expect(await one()).toMatchObject({ value: { id: '1' } });
    await write(file, 'pat-new');
    nock(api, { reqheaders: { authorization: 'Bearer pat-new' } })
      .get(/contacts\/1\?/)
      .reply(200, person(1));
    expect(await one()).toMatchObject({ value: { id: '1' } });
  });
});

describe('a mistake', () => {
  const line = async (field: string) => lineOf(readAll(sourceOf(api).source, ['id', field]));
  test('in a property is reported with the nearest one', async () => {
    named();
    expect(await line('properties.news_letter')).toBe(
      'Invalid: api.hubapi.com: contacts have no property "news_letter"; did you mean' +
        ' "newsletter" for "news_letter"? → correct the configuration, by internal names,' +
        ' or make it in HubSpot',
    );
  });

  test.each([
    ['email', 'properties.email'],
    ['createdat', 'createdAt'],
  ])('in a field is reported before any request: %s', async (field, near) => {
    expect(await line(field)).toBe(
      `Invalid: api.hubapi.com: there is no field "${field}"; a contact has the fields id,` +
        ` createdAt, updatedAt, archived, archivedAt and properties.NAME → write "${near}"`,
    );
  });

  test.each<[string, number, object | string]>([
    ['nothing', 404, {}],
    ['another list', 200, { items: [] }],
    ['a list alone', 200, []],
  ])('in url: %s is there', async (_, status, body) => {
    named();
    page(false).reply(status, body);
    expect(await lineOf(readIt())).toMatch(/^Invalid: .* → correct url of the source$/);
  });
});

describe('some contacts of a batch', () => {
  const results = [person(1)];
  const missing = (ids: number[], category = 'OBJECT_NOT_FOUND') => ({
    status: 'COMPLETE',
    results,
    numErrors: 1,
    errors: [{ status: 'error', category, context: { ids: ids.map(String) } }],
  });

  test('are looked for among the archived when they are missing', async () => {
    named();
    search('0').reply(200, list([1, 2, 3]));
    batch([1, 2, 3]).reply(207, missing([2, 3]));
    batch([2, 3], true).reply(207, { ...missing([3]), results: [person(2, { archived: true })] });
    const { values, certificate } = await changesOf(sourceOf(api).source, since);
    expect(values.map(({ id, archived }) => [id, archived])).toEqual([
      ['1', false],
      ['2', true],
    ]);
    expect(certificate).toMatchObject({ complete: true });
  });

  test('do not count as deleted when they could not be read', async () => {
    named(2);
    search('0')
      .times(2)
      .reply(200, list([1, 2], '2'));
    batch([1, 2])
      .times(2)
      .reply(207, missing([2], 'INTERNAL_ERROR'));
    const { source } = sourceOf(api);
    const line =
      'Unavailable: api.hubapi.com could not read all the contacts it was asked for (207)';
    expect(await lineOf(changesOf(source, since))).toBe(line);
    expect(await lineOf(changesOf(source, since))).toBe(line);
  });
});

test('a server that fails for a moment is asked again', async () => {
  named();
  page(false).reply(502, 'ann@x.y');
  page(false).replyWithError(Object.assign(new Error('cut'), { code: 'ECONNRESET' }));
  page(false).reply(200, list([1]));
  page(true).reply(200, list([]));
  const { ids, certificate } = await readIt();
  expect([ids, certificate.complete]).toEqual([['1'], true]);
});

test('without HubSpot’s time there is no cursor, or still the former one', async () => {
  named(2, {});
  page(false).reply(200, list([1]));
  page(true).reply(200, list([]));
  expect((await readIt()).certificate).toMatchObject({ complete: true, cursor: undefined });
  search('0').reply(200, list([]));
  const { certificate } = await changesOf(sourceOf(api).source, since);
  expect(certificate).toMatchObject({ complete: true, cursor: since });
});
