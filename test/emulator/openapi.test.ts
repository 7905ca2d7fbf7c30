import { describe, expect, test } from 'vitest';
import { answers } from '../../src/emulator/api/answers.ts';
import { describeApi } from '../../src/emulator/docs/openapi-document.ts';
import { twoOrganizations, stage } from '../support/emulator/emulator-stage.ts';

const document = describeApi();

/** Every operation of the specification, with the statuses it lists. */
const specified: [line: string, statuses: number[]][] = [
  ['GET /api/contacts/list', [200]],
  ['GET /api/contacts/retrieve/{contact_id}', [200, 403, 404]],
  ['DELETE /api/contacts/{contact_id}', [200, 403, 404]],
  ['POST /api/contacts/channel/{channel_id}', [201, 400, 403, 404, 409]],
  ['GET /api/template/v1/list', [200]],
  ['POST /api/template/v1/create', [200, 400, 401, 403]],
  ['PUT /api/template/v1/{id}', [200]],
  ['POST /api/template/v1/{id}/test', [200, 400, 401, 403, 404]],
  ['POST /api/domain/v1/create', [201, 400, 403, 409]],
  ['POST /api/domain/v1/verify/{domain_id}', [200, 400, 403, 404]],
  ['GET /api/domain/v1/nameservers/{domain_id}', [200, 403, 404]],
  ['GET /api/domain/v1/list', [200]],
  ['POST /api/api-key/v1/enable/{api_key_id}', [200]],
];

function operationOf(line: string) {
  const [method = '', path = ''] = line.split(' ');
  return document.paths[path]?.[method.toLowerCase()];
}

describe('/openapi.json', () => {
  test('is served without a key, counts for no limit and is not logged', () => {
    const platform = stage({ limits: ['*=1/60'] });
    const { status, headers, body } = platform.handle({
      method: 'GET',
      path: '/openapi.json?x=1',
      headers: {},
    });
    expect(status).toBe(200);
    expect(headers['content-type']).toBe('application/json; charset=utf-8');
    expect(body).toBe(JSON.stringify(document));
    expect(platform.world.requests()).toEqual([]);
    expect(platform.ask('POST /openapi.json').status).toBe(404);
  });

  test.each(specified)('%s has the statuses the specification lists', (line, statuses) => {
    const operation = operationOf(line);
    expect(Object.keys(operation?.responses ?? {}).map(Number)).toEqual(
      expect.arrayContaining([...statuses, 401, 429]),
    );
    const names = [...line.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    const parameters = operation?.parameters.filter((parameter) => parameter.in === 'path');
    expect(parameters?.map(({ name }) => name)).toEqual(names);
  });

  test('lists no other operation', () => {
    const lines = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(lines.toSorted()).toEqual(specified.map(([line]) => line).toSorted());
  });

  test('states the bounds of the specification', () => {
    const body = (line: string) =>
      operationOf(line)?.requestBody?.content['application/json'].schema;
    expect(body('POST /api/template/v1/create')).toMatchObject({
      required: ['name'],
      properties: { name: { minLength: 1, maxLength: 255 }, subject: { maxLength: 500 } },
    });
    expect(body('POST /api/domain/v1/create')).toMatchObject({
      required: ['domain'],
      properties: {
        domain: { minLength: 4, maxLength: 255 },
        custom_return_path: { default: 'inbound', minLength: 1, maxLength: 255 },
        tracking: { default: 'tracking' },
        click_tracking: { default: false },
        sending_email: { default: true },
        tls: { enum: ['opportunistic', 'enforced'] },
      },
    });
    expect(operationOf('GET /api/contacts/list')?.parameters).toMatchObject([
      { name: 'page', schema: { minimum: 1, default: 1 } },
      { name: 'limit', schema: { minimum: 1, maximum: 100, default: 100 } },
      { name: 'search' },
      { name: 'status', schema: { enum: ['subscribed', 'unsubscribed', 'blocked'] } },
    ]);
  });

  test.each([
    ['GET /api/domain/v1/list', 'not shown'],
    ['POST /api/contacts/channel/{channel_id}', 'not shown'],
    ['POST /api/api-key/v1/enable/{api_key_id}', 'not shown'],
    ['POST /api/domain/v1/create', 'not stated'],
    ['PUT /api/template/v1/{id}', 'not shown'],
  ])('%s says what the specification leaves open', (line, words) => {
    expect(operationOf(line)?.description).toContain(words);
  });

  test('every reference resolves', () => {
    const references = [
      ...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g),
    ];
    expect(references.length).toBeGreaterThan(20);
    for (const [, name = ''] of references) {
      expect(Object.keys(document.components.schemas)).toContain(name);
    }
  });
});

describe('answers match their description', () => {
  const platform = twoOrganizations();
  const asked: [line: string, body?: unknown][] = [
    ['GET /api/contacts/list'],
    ['GET /api/contacts/list?limit=0'],
    ['GET /api/contacts/retrieve/con_a'],
    ['GET /api/contacts/retrieve/x'],
    ['POST /api/contacts/channel/ch_a', { email: 'new@example.org' }],
    ['POST /api/contacts/channel/ch_a', { email: 'new@example.org' }],
    ['POST /api/contacts/channel/ch_a', { email: 'new' }],
    ['DELETE /api/contacts/con_a'],
    ['POST /api/template/v1/create', { name: 'a', content: [{ a: [1, null] }] }],
    ['POST /api/template/v1/create', '{'],
    [
      'PUT /api/template/v1/tpl_a',
      { variables: [{ name: 'v', type: 'number', defaultValue: null }] },
    ],
    ['PUT /api/template/v1/x', {}],
    ['GET /api/template/v1/list'],
    ['POST /api/template/v1/tpl_a/test', { to: 'x' }],
    ['POST /api/domain/v1/create', { domain: 'a.example.org', tls: 'enforced' }],
    ['POST /api/domain/v1/create', { domain: 'a.example.org' }],
    ['POST /api/domain/v1/verify/dom_a'],
    ['POST /api/domain/v1/verify/x'],
    ['POST /api/domain/v1/verify/a%20b'],
    ['GET /api/domain/v1/list'],
    ['POST /api/api-key/v1/enable/key_off'],
    ['POST /api/api-key/v1/enable/x'],
  ];

  function check(line: string, status: number, json: unknown) {
    const [method = '', path = ''] = line.split(/[ ?]/);
    const template = Object.keys(document.paths).find((one) => {
      const pattern = new RegExp(`^${one.replaceAll(/\{\w+\}/g, '[^/]+')}$`);
      return pattern.test(path) && document.paths[one]?.[method.toLowerCase()];
    });
    const response = operationOf(`${method} ${template}`)?.responses[status];
    const reference = JSON.stringify(response?.content['application/json'].schema);
    const name = /(\w+)"\}$/.exec(reference)?.[1];
    const schema = Object.entries(answers).find(([known]) => known === name)?.[1];
    expect(schema?.safeParse(json)).toMatchObject({ success: true });
  }

  test.each(asked)('%s %j', (line, body) => {
    const { status, json } = platform.ask(line, body);
    check(line, status, json);
  });

  test.each(asked)('%s with keys without permission', (line) => {
    for (const key of ['k_none', 'wrong']) {
      const { status, json } = platform.askAs(key, line);
      expect(status).toBeGreaterThanOrEqual(401);
      check(line, status, json);
    }
  });

  test.each(['s_a', 's_none', 's_wrong', 's_b'])('nameservers by session %s', (session) => {
    const line = 'GET /api/domain/v1/nameservers/dom_a';
    const { status, json } = platform.askIn(session, line);
    check(line, status, json);
  });
});

describe('/docs', () => {
  test('is one self-contained page with every operation', () => {
    const { status, headers, body } = stage().handle({ method: 'GET', path: '/docs', headers: {} });
    expect(status).toBe(200);
    expect(headers['content-type']).toBe('text/html; charset=utf-8');
    for (const [line] of specified) expect(body).toContain(`<code>${line.split(' ')[1]}</code>`);
    expect(body).not.toMatch(/<script|<link|<img|@import|url\(|src=|https?:/);
    expect(body).not.toContain('undefined');
    const open = [...body.matchAll(/<(\w+)[ >]/g)].length;
    expect(open).toBeGreaterThan(200);
    for (const tag of ['details', 'table', 'tr', 'td', 'p', 'h2', 'code', 'summary', 'a']) {
      const count = (pattern: RegExp) => [...body.matchAll(pattern)].length;
      expect(count(new RegExp(`<${tag}[ >]`, 'g'))).toBe(count(new RegExp(`</${tag}>`, 'g')));
    }
    for (const [, id = ''] of body.matchAll(/href="#([^"]+)"/g))
      expect(body).toContain(`id="${id}"`);
  });
});
