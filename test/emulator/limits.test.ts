import { describe, expect, test } from 'vitest';
import { NOON, stage } from '../support/emulator/emulator-stage.ts';

const LIST = 'GET /api/contacts/list';
const ENROL = 'POST /api/contacts/channel/ch_news';

function limitHeaders(headers: Record<string, string>) {
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => /^(x-ratelimit-|retry-after)/.test(name)),
  );
}

describe('rate limits', () => {
  test('400, 404 and 409 count', () => {
    const platform = stage({ limits: ['contacts.enrol=6/60'] });
    const lines: [body: unknown, status: number][] = [
      [{ email: 'a@example.org' }, 201],
      [{ email: 'a@example.org' }, 409],
      [{ contact_id: 'none' }, 404],
      [{}, 400],
      ['{', 400],
      [{ email: 'b@example.org' }, 201],
      [{ email: 'c@example.org' }, 429],
    ];
    for (const [index, [body, status]] of lines.entries()) {
      const answer = platform.ask(ENROL, body);
      expect(answer.status).toBe(status);
      expect(answer.headers['x-ratelimit-remaining']).toBe(String(Math.max(0, 5 - index)));
    }
    expect(platform.world.contacts()).toHaveLength(2);
  });

  test('401 does not count and has no rate-limit headers, nor do unknown paths', () => {
    const platform = stage({ limits: ['*=1/60'] });
    const refused = platform.ask(LIST, undefined, { 'x-api-key': 'wrong' });
    expect(refused.status).toBe(401);
    expect(limitHeaders(refused.headers)).toEqual({});
    expect(limitHeaders(platform.ask('GET /nowhere').headers)).toEqual({});
    expect(limitHeaders(platform.ask('PATCH /api/contacts/list').headers)).toEqual({});
    expect(platform.ask(LIST).status).toBe(200);
  });

  test('a test send tells when its window ends, in seconds since the epoch', () => {
    const platform = stage({ limits: ['templates.test=1/60'] });
    platform.seed.template({ id: 't', name: 'a' });
    platform.pass(250);
    const send = () => platform.ask('POST /api/template/v1/t/test', { to: 'x' });
    const reset = String(NOON / 1000 + 61);
    const names = { 'x-ratelimit-limit': '1', 'x-ratelimit-remaining': '0' };
    expect(limitHeaders(send().headers)).toEqual({ ...names, 'x-ratelimit-reset': reset });
    platform.pass(10_000);
    const refused = send();
    expect(refused.status).toBe(429);
    expect(limitHeaders(refused.headers)).toEqual({
      ...names,
      'x-ratelimit-reset': reset,
      'retry-after': '50',
    });
    expect(platform.world.outbox()).toHaveLength(1);
  });

  test('the defaults are 60 a minute, 30 for deletes and 1,000 for enrolments', () => {
    const platform = stage({ limits: [] });
    const limits = {
      'GET /api/contacts/list': '60',
      'GET /api/contacts/retrieve/x': '60',
      'DELETE /api/contacts/x': '30',
      'POST /api/contacts/channel/x': '1000',
      'GET /api/template/v1/list': '60',
      'POST /api/template/v1/create': '60',
      'PUT /api/template/v1/x': '60',
      'POST /api/template/v1/x/test': '60',
    };
    for (const [line, limit] of Object.entries(limits)) {
      expect(platform.ask(line, {}).headers['x-ratelimit-limit']).toBe(limit);
    }
    expect(platform.ask(LIST).headers['x-ratelimit-window']).toBe('60');
  });

  test('* stands for every route without a limit, wherever it is written', () => {
    const platform = stage({ limits: ['contacts.list=5/1', '*=7/0.25'] });
    expect(platform.ask(LIST).headers['x-ratelimit-limit']).toBe('5');
    expect(platform.ask(ENROL, {}).headers).toMatchObject({
      'x-ratelimit-limit': '7',
      'x-ratelimit-window': '0.25',
    });
  });

  test.each([
    'contacts.enrol',
    'contacts.enrol=30',
    '=1/1',
    'contacts.enrol=0/60',
    '*=1/0',
    '*=1/-1',
  ])('the limit "%s" cannot be read', (text) => {
    expect(() => stage({ limits: [text] })).toThrow(/contacts\.enrol=30\/60/);
  });

  test('an unknown route is reported with the existing ones', () => {
    expect(() => stage({ limits: ['contact.list=1/1'] })).toThrow(
      /"contact\.list=1\/1" names no route: use one of contacts\.list, .*\*/,
    );
  });
});
