import { describe, expect, test } from 'vitest';
import { stage } from '../support/emulator/emulator-stage.ts';

const everyOperation = [
  'GET /api/contacts/list',
  'GET /api/contacts/retrieve/x',
  'DELETE /api/contacts/x',
  'POST /api/contacts/channel/x',
  'GET /api/template/v1/list',
  'POST /api/template/v1/create',
  'PUT /api/template/v1/x',
  'POST /api/template/v1/x/test',
  'POST /api/domain/v1/create',
  'POST /api/domain/v1/verify/x',
  'GET /api/domain/v1/nameservers/x',
  'GET /api/domain/v1/list',
  'POST /api/api-key/v1/enable/x',
];

describe('errors', () => {
  test('the key is checked before anything else', () => {
    const headers = { 'x-api-key': 'wrong' };
    expect(stage().ask('POST /api/template/v1/create', '{', headers).status).toBe(401);
  });

  test('a wrong method is reported with the right one', () => {
    const { status, headers } = stage().ask('PATCH /api/contacts/channel/ch_news');
    expect(status).toBe(405);
    expect(headers['allow']).toBe('POST');
    expect(stage().ask('HEAD /api/template/v1/list').status).toBe(405);
    expect(stage().ask('get /api/template/v1/list').status).toBe(405);
  });

  test('a body nested too deep to be answered: 400', () => {
    const content = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
    const create = (levels: number) =>
      stage().ask('POST /api/template/v1/create', `{"name":"a","content":${content(levels)}}`);
    expect(create(99).status).toBe(200);
    expect(create(101).status).toBe(400);
    expect(create(400_000).status).toBe(400);
  });

  test('every wrong field is reported', () => {
    const body = { name: '', subject: 7 };
    const { why } = stage().ask('POST /api/template/v1/create', body).json;
    expect(why).toContain('body.name');
    expect(why).toContain('body.subject');
  });

  test('every answer carries the date of the platform', () => {
    const platform = stage();
    platform.pass(1500);
    for (const line of [...everyOperation, 'GET /nowhere', 'GET /_emulator/state']) {
      expect(platform.ask(line).headers['date']).toBe('Fri, 20 Nov 2026 12:00:01 GMT');
    }
  });
});
