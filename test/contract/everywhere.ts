import { expect } from 'vitest';
import { count, envelope, refusal, text, type Sections, type Sentence } from './sentence.ts';

/** Every operation that takes an API key, on contacts and templates. */
const operations: [ask: string, body?: object][] = [
  ['GET /api/contacts/list'],
  ['GET /api/contacts/retrieve/con_ann'],
  ['DELETE /api/contacts/con_ann'],
  ['POST /api/contacts/channel/ch_product', { contact_id: 'con_ann', subscription: 'opt_in' }],
  ['POST /api/template/v1/create', { name: 'n' }],
  ['PUT /api/template/v1/tpl_a', { name: 'n' }],
  ['GET /api/template/v1/list'],
  ['POST /api/template/v1/tpl_a/test', { to: 'a' }],
];
const others: [ask: string, body?: object][] = [
  ['POST /api/domain/v1/create', { domain: 'c.example.com' }],
  ['POST /api/domain/v1/verify/dom_a'],
  ['GET /api/domain/v1/list'],
  ['POST /api/api-key/v1/enable/key_off'],
];
const whole = /^\d+$/;
const none = undefined;
const sends = ([ask]: [string, object?]) => ask.endsWith('/test');
const sentenceOf = ([ask, body]: [string, object?]) => ({ ask, ...(body && { body }) });

/** Authentication 4 and Limits 4, of one operation. */
const keyed = (operation: [string, object?]): Sentence[] => [
  {
    says: `401: x-api-key is missing, ${operation[0]}`,
    ...sentenceOf(operation),
    headers: { 'x-api-key': none },
    status: 401,
    answer: envelope,
    needs: 'world',
  },
  {
    says: `401: x-api-key is invalid, ${operation[0]}`,
    ...sentenceOf(operation),
    headers: { 'x-api-key': 'key_live_of_nobody' },
    status: 401,
    answer: envelope,
    needs: 'world',
  },
];
const limited = (operation: [string, object?]): Sentence[] => [
  {
    says: `every response carries them, ${operation[0]}`,
    ...sentenceOf(operation),
    status: [200, 201],
    needs: { limits: ['*=9/60'] },
    sends: {
      'x-ratelimit-limit': '9',
      'x-ratelimit-remaining': '8',
      'x-ratelimit-window': sends(operation) ? none : '60',
      'x-ratelimit-reset': sends(operation) ? expect.stringMatching(/^\d{10}$/) : none,
      'retry-after': none,
    },
  },
  {
    says: `429 beyond the limit, with Retry-After, ${operation[0]}`,
    first: [sentenceOf(operation)],
    ...sentenceOf(operation),
    status: 429,
    needs: { limits: ['*=1/60'] },
    answer: refusal(),
    sends: { 'retry-after': expect.stringMatching(/^\d+$/), 'x-ratelimit-remaining': '0' },
  },
];

export const everywhere: Sections = {
  Authentication: [
    ...operations.flatMap(keyed),
    {
      says: 'an invalid key is refused by anybody',
      ask: 'GET /api/contacts/list?limit=1',
      headers: { 'x-api-key': 'key_live_of_nobody' },
      status: 401,
      has: { message: text },
    },
    {
      says: 'x-api-key it is, no Authorization header',
      ask: 'POST /api/template/v1/create',
      body: { name: 'n' },
      headers: { 'x-api-key': none, authorization: 'Bearer key_live_full' },
      status: 401,
      answer: refusal(),
    },
  ],
  Errors: [
    {
      says: 'JSON with message, why, fix and link',
      ask: 'GET /api/contacts/retrieve/con_that_never_was',
      needs: 'world',
      status: 404,
      answer: {
        ...refusal('Contact not found'),
        link: expect.stringMatching(/^https?:\/\/\S+$/),
      },
    },
    ...['/', '/api', '/api/contacts', '/api/contacts/list/all', '/api/nowhere/v1/list', '/%zz'].map(
      (path) => ({
        says: `404 in JSON for the path ${path}`,
        ask: `GET ${path}`,
        needs: 'world' as const,
        status: 404,
        answer: refusal('Not found'),
      }),
    ),
    ...['{', '{"name":', "{'name':'n'}", 'name=n', '"n"', '[]', 'null'].map((body) => ({
      says: `400 in JSON for the body ${body}`,
      ask: 'POST /api/template/v1/create',
      body,
      status: 400,
      answer: refusal(),
    })),
    {
      says: '400 for no body at all',
      ask: 'POST /api/template/v1/create',
      status: 400,
      answer: refusal(),
    },
  ],
  Limits: [
    ...operations.flatMap(limited),
    {
      says: 'a management endpoint names limit, remaining and window',
      ask: 'GET /api/contacts/list?limit=1',
      status: 200,
      sends: {
        'x-ratelimit-limit': expect.stringMatching(whole),
        'x-ratelimit-remaining': expect.stringMatching(whole),
        'x-ratelimit-window': expect.stringMatching(whole),
        'retry-after': none,
      },
    },
    {
      says: 'limits vary by endpoint: one that is used up leaves the others alone',
      first: [{ ask: 'GET /api/contacts/list' }, { ask: 'GET /api/contacts/list' }],
      ask: 'GET /api/template/v1/list',
      status: 200,
      needs: { limits: ['*=1/60'] },
    },
    {
      says: 'every paginated response carries total, page and limit at its root',
      ask: 'GET /api/template/v1/list?page=1&limit=2',
      status: 200,
      has: { total: count, page: 1, limit: 2 },
    },
  ],
  Events: [
    {
      says: 'contact.list',
      ask: 'GET /api/contacts/list',
      needs: 'world',
      status: 200,
      has: { event: 'contact.list' },
    },
    {
      says: 'template.list',
      ask: 'GET /api/template/v1/list',
      needs: 'world',
      status: 200,
      has: { event: 'template.list' },
    },
    {
      says: 'contact.created',
      ask: 'POST /api/contacts/channel/ch_news',
      body: { email: 'dora@example.org' },
      status: 201,
      has: { event: 'contact.created' },
    },
  ],
};

const theirs: [ask: string, message: string, body?: object][] = [
  ['GET /api/contacts/retrieve/con_b', 'Contact not found'],
  ['DELETE /api/contacts/con_b', 'Contact not found'],
  ['POST /api/contacts/channel/ch_b', 'Channel subscription not found', { contact_id: 'con_ann' }],
  ['POST /api/contacts/channel/ch_news', 'Contact not found', { contact_id: 'con_b' }],
  ['PUT /api/template/v1/tpl_b', 'Template not found', { name: 'n' }],
  ['POST /api/template/v1/tpl_b/test', 'Template not found', { to: 'a' }],
];

/** What needs several organizations and keys. */
export const organizations: Sections = {
  Organizations: [
    ...theirs.map(([ask, message, body]): Sentence => ({
      says: `another organization's is not found, ${ask}`,
      ask,
      ...(body && { body }),
      needs: 'world',
      status: 404,
      answer: refusal(message),
    })),
    {
      says: 'a list shows the organization of the key alone',
      ask: 'GET /api/contacts/list',
      headers: { 'x-api-key': 'key_live_other' },
      needs: 'world',
      status: 200,
      has: { total: 1, contacts: [{ id: 'con_b' }] },
    },
    {
      says: 'what is created belongs to the organization of the key',
      first: [
        {
          ask: 'POST /api/contacts/channel/ch_b',
          body: { email: 'ann@example.org' },
          headers: { 'x-api-key': 'key_live_other' },
        },
      ],
      ask: 'GET /api/contacts/list?search=ann@example.org',
      status: 200,
      has: { total: 1, contacts: [{ id: 'con_ann' }] },
    },
    {
      says: 'rate limits apply per organization: another one has its own',
      first: [{ ask: 'GET /api/contacts/list' }, { ask: 'GET /api/contacts/list' }],
      ask: 'GET /api/contacts/list',
      headers: { 'x-api-key': 'key_live_other' },
      needs: { limits: ['*=1/60'] },
      status: 200,
    },
    {
      says: 'rate limits apply per organization: another key of it has none of its own',
      first: [{ ask: 'GET /api/contacts/list' }],
      ask: 'GET /api/contacts/list',
      headers: { 'x-api-key': 'key_live_read' },
      needs: { limits: ['*=1/60'] },
      status: 429,
    },
  ],
  'Authentication, keys': [
    ...others.flatMap(keyed),
    {
      says: '401: the key is revoked',
      ask: 'GET /api/contacts/list',
      headers: { 'x-api-key': 'key_live_gone' },
      needs: 'world',
      status: 401,
      answer: refusal(),
    },
    ...[...operations, ...others].map((operation): Sentence => {
      const writes = !operation[0].startsWith('GET ');
      return {
        says: `403: the key lacks permission, ${operation[0]}`,
        ...sentenceOf(operation),
        headers: { 'x-api-key': writes ? 'key_live_read' : 'key_live_write' },
        needs: 'world',
        status: 403,
        has: { message: 'Unauthorized access' },
      };
    }),
  ],
  'Limits, domains and keys': others.flatMap(limited),
};
