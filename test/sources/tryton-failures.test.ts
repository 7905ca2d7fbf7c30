/** What a Tryton may answer, and what is made of it: by a server that says what it is told to. */
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { trytonOptions } from '../../src/sources/tryton/options.ts';
import { trytonSource } from '../../src/sources/tryton/tryton-source.ts';
import { serve } from '../support/http/test-server.ts';
import {
  allOf,
  errorOf,
  readAll,
  scratch,
  virtualClock,
  write,
  WRITTEN,
} from '../support/sources/source-reading.ts';

const folder = await scratch();
const signal = new AbortController().signal;
const secret = 'pass phrase';

interface Asked {
  method: string;
  params: unknown[];
  authorization: string | undefined;
}
/** A result, or another answer than one. */
type Reply = { result: unknown } | { error: unknown } | { status: number; text?: string };
type Says = (asked: Asked, before: readonly Asked[]) => Reply | undefined;

const types = {
  name: { type: 'char' },
  vip: { type: 'boolean' },
  since: { type: 'date' },
  limit: { type: 'numeric' },
  shop: { type: 'many2one', relation: 'shop' },
  tags: { type: 'multiselection' },
  more: { type: 'dict' },
};
const party = (id: number, more: object = {}) => ({
  id,
  active: true,
  replaced_by: null,
  'contact_mechanisms.': [{ id, type: 'email', value: `p${id}@example.com`, active: true }],
  ...more,
});
const parties = (...ids: number[]) => ({ result: ids.map((id) => party(id)) });

/** Three parties in pages of two, unless a test says otherwise. */
const usual: Says = ({ method, params }) => {
  if (method.endsWith('login')) return { result: [7, 'key'] };
  if (method.endsWith('fields_get')) return { result: types };
  if (method.endsWith('search_count')) return { result: 3 };
  const above = (params as [[[string, string, number]]])[0][0][2];
  if (above === 0) return parties(1, 2);
  return above === 2 ? parties(3) : { result: [] };
};

async function tryton(says: Says, options: object = {}, headers: Record<string, string> = {}) {
  const asked: Asked[] = [];
  const url = await serve(({ headers: { authorization }, text, url: path }, response) => {
    expect(path).toBe('/a%20crm/');
    const now = { ...JSON.parse(text), authorization };
    const reply = says(now, asked) ?? usual(now, asked) ?? { status: 500 };
    asked.push(now);
    const { status = 200, text: body } = 'status' in reply ? reply : {};
    const type = { 'content-type': 'application/json', date: new Date(WRITTEN).toUTCString() };
    response.writeHead(status, { ...type, ...headers });
    response.end(body ?? ('status' in reply ? '' : JSON.stringify({ id: 0, ...reply })));
  });
  const given = { type: 'tryton', url, database: 'a crm', username: 'me', password: secret };
  const clock = virtualClock();
  const parsed = trytonOptions.parse({ ...given, ...options });
  return { source: trytonSource(parsed, { clock, random: () => 0 }), asked, clock };
}

const fields = ['id', 'email'];

describe('a reading of a Tryton', () => {
  test('is complete when it has as many parties as Tryton counts', async () => {
    const { source, asked, clock } = await tryton(usual);
    const { values, certificate } = await readAll(source, fields);
    expect(values.map(({ id }) => id)).toEqual(['1', '2', '3']);
    expect(certificate).toMatchObject({
      complete: true,
      cursor: expect.stringMatching(/^2026-01-15T11:58:00.000Z /),
    });
    const [login, ...rest] = asked;
    expect(login?.authorization).toBeUndefined();
    const session = `Session ${Buffer.from('me:7:key').toString('base64')}`;
    expect(new Set(rest.map(({ authorization }) => authorization))).toEqual(new Set([session]));
    for (const { params } of rest) expect(params.at(-1)).toEqual({ active_test: false });
    expect(source.still(certificate.reading)).toBe(true);
    await clock.sleep(15 * 60_000);
    expect(source.still(certificate.reading)).toBe(false);
  });

  test('is incomplete when there are more', async () => {
    const { source } = await tryton(({ method }) =>
      method.endsWith('count') ? { result: 4 } : undefined,
    );
    expect((await readAll(source, fields)).certificate).toMatchObject({
      complete: false,
      why: '3 parties were read, and Tryton counts 4',
    });
  });

  test('keeps what was read when it breaks off', async () => {
    const { source } = await tryton(({ params }) =>
      JSON.stringify(params).includes('["id",">",2]') ? { status: 503 } : undefined,
    );
    const { values, certificate } = await readAll(source, fields);
    expect(values).toHaveLength(2);
    expect(certificate).toMatchObject({ complete: false });
    expect(certificate).toHaveProperty(
      'why',
      expect.stringMatching(/^reading stopped at page 2: 127/),
    );
  });

  test('does not continue in another order than by id', async () => {
    const { source } = await tryton(({ params }) =>
      JSON.stringify(params).includes('["id",">",2]') ? parties(2) : undefined,
    );
    const { certificate } = await readAll(source, fields);
    expect(certificate).toHaveProperty('why', expect.stringContaining('in another order'));
  });

  test('has no cursor where the server tells no time', async () => {
    const { source } = await tryton(usual, {}, { date: '' });
    expect((await readAll(source, fields)).certificate).toMatchObject({
      complete: true,
      cursor: undefined,
    });
    const { certificate } = await allOf(source.changes('2026 x', { fields, signal }));
    expect(certificate).toBe('lost');
  });

  test('gives each value as a text, number or boolean', async () => {
    const all = {
      vip: 1,
      since: { __class__: 'date', year: 2026, month: 3, day: 1 },
      limit: { __class__: 'Decimal', decimal: '10.50' },
      shop: 4,
      'shop.': { id: 4, rec_name: 'Main street' },
      tags: ['a', 'b'],
      more: { size: { __class__: 'Decimal', decimal: '42' }, mails: true },
    };
    const { source, asked } = await tryton(({ method }) =>
      method.endsWith('search_read') ? { result: [party(9, all)] } : undefined,
    );
    const names = ['vip', 'since', 'limit', 'shop', 'tags', 'more.size', 'more.mails', 'email'];
    expect(await source.one('9', { fields: names, signal })).toMatchObject({
      where: 'party 9',
      value: {
        id: '9',
        email: 'p9@example.com',
        vip: true,
        since: '2026-03-01',
        limit: '10.50',
        shop: 'Main street',
        tags: 'a,b',
        more: { size: '42', mails: true },
      },
    });
    expect(asked.at(-1)?.params[4]).toEqual(
      expect.arrayContaining(['vip', 'shop.rec_name', 'more', 'contact_mechanisms.value']),
    );
  });

  test('reports that a field within a dictionary does not exist', async () => {
    const { source } = await tryton(usual);
    const error = await errorOf(readAll(source, ['more.sise']));
    expect(error.message).toContain('no record has "more.sise"');
  });
});

describe('a failure', () => {
  const always =
    (reply: Reply): Says =>
    () =>
      reply;
  const about =
    (method: string, reply: Reply): Says =>
    (asked) =>
      asked.method.endsWith(method) ? reply : undefined;
  const page = { status: 200, text: '<html>ann@example.com</html>' };
  const denied = ['UserError', ['You may not see ann@example.com', '', null]];

  test.each<[string, Says, string, string]>([
    ['a wrong password', always({ status: 401 }), 'Invalid', 'refused the credentials (401)'],
    ['too many of them', always({ status: 429 }), 'RateLimited', 'after too many wrong passwords'],
    ['no such database', always({ status: 404 }), 'Invalid', 'opens no database "a crm"'],
    [
      'a second factor',
      always({ error: ['LoginException', ['code', 'Code for ann@example.com', 'char']] }),
      'Invalid',
      'wants more than a password',
    ],
    ['a failure of the login', always({ error: ['ann@example.com', ''] }), 'Unavailable', 'log'],
    ['a web page', always(page), 'Unavailable', 'with a web page'],
    ['a server that is no Tryton', always({ result: {} }), 'Unavailable', 'gave no session'],
    [
      'a session that is never taken',
      about('fields_get', { status: 401 }),
      'Invalid',
      'does not let this user read party.party (401)',
    ],
    [
      'a user without rights',
      about('search_read', { error: denied }),
      'Invalid',
      'does not let this user read party.party →',
    ],
    [
      'a database without parties',
      about('fields_get', { error: ["'party.party'", ''] }),
      'Invalid',
      'activate the module party',
    ],
    [
      'a failure',
      about('search_count', { error: ['no such table for ann@example.com', 'line 1'] }),
      'Unavailable',
      'failed to answer about party.party',
    ],
    [
      'a party that is none',
      about('search_read', { result: [{ id: 1, active: 'ann@example.com' }] }),
      'Unavailable',
      'answered a party that is none',
    ],
  ])('%s is reported, without personal values', async (_, says, name, what) => {
    const { source } = await tryton(says);
    const error = await errorOf(readAll(source, fields));
    expect(error.name).toBe(name);
    expect(error.message).toContain(what);
    expect(error.message).not.toMatch(/ann@|pass phrase/);
  });

  test('with an expired session is repaired by one login', async () => {
    let keys = 0;
    const { source, asked } = await tryton(({ method, authorization = '' }) => {
      if (method.endsWith('login')) return { result: [7, `key ${(keys += 1)}`] };
      const isOld = Buffer.from(authorization.slice(8), 'base64').toString().endsWith('key 1');
      return isOld && asked.length > 4 ? { status: 403 } : undefined;
    });
    const { certificate } = await readAll(source, fields);
    expect(certificate.complete).toBe(true);
    expect(keys).toBe(2);
  });

  test('with a password is repaired when its file changes', async () => {
    const passwordFile = join(folder, 'password');
    const { source, asked } = await tryton(
      ({ method, params }) => {
        const isRight = JSON.stringify(params[1]) === '{"password":"new one"}';
        return method.endsWith('login') && !isRight ? { status: 401 } : undefined;
      },
      { password: undefined, passwordFile },
    );
    await write(passwordFile, 'old one\n');
    expect((await errorOf(readAll(source, fields))).message).toContain('(401)');
    await write(passwordFile, 'new one\n');
    expect((await readAll(source, fields)).certificate.complete).toBe(true);
    expect(asked[0]?.params).toEqual(['me', { password: 'old one' }]);
    await write(passwordFile, '\n');
    const other = await tryton(usual, { password: undefined, passwordFile });
    expect((await errorOf(readAll(other.source, fields))).message).toContain('holds none');
  });
});
