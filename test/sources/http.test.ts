/** What is read over HTTP when all goes well, and what the certificate is made to depend on. */
import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import {
  crm,
  json,
  people,
  SECRET,
  sourceOf,
  status,
  type Reply,
} from '../support/sources/http-crm.ts';
import { errorOf, readAll } from '../support/sources/source-reading.ts';

const numbered = { records: 'data.list', page: { number: 'page', size: 'per', sizeValue: 2 } };
const byCursor = { records: 'results', page: { cursor: 'paging.next', param: 'after' } };
const counted = { ...numbered, total: 'data.total' };

const list = (first: number, count: number, total?: unknown) => ({
  data: { list: people(first, count), total },
});
const cursored = (first: number, count: number, next?: unknown) => ({
  results: people(first, count),
  ...(next !== undefined && { paging: { next } }),
});

async function read(options: object, ...replies: Reply[]) {
  const { url, asked } = await crm(...replies);
  const { source } = sourceOf(url, options);
  const { values, certificate, ...rest } = await readAll(source, ['id']);
  const paths = asked.map(({ path }) => path);
  return { ids: values.map(({ id }) => id), values, certificate, paths, ...rest };
}

describe('pages', () => {
  test('counted by number end with an empty one, not with a short one', async () => {
    const { ids, paths, certificate } = await read(
      numbered,
      list(1, 2),
      list(3, 1),
      list(4, 1),
      list(5, 0),
    );
    expect(ids).toEqual([1, 2, 3, 4]);
    expect(paths).toEqual([1, 2, 3, 4].map((page) => `/people?per=2&page=${page}`));
    expect(certificate.complete).toBe(true);
  });

  test('counted by number begin where the configuration says', async () => {
    const page = { number: 'p', first: 0 };
    const { paths } = await read({ ...numbered, page }, list(1, 1), list(2, 0));
    expect(paths).toEqual(['/people?p=0', '/people?p=1']);
  });

  test('linked by cursor end where there is no next one', async () => {
    for (const end of [undefined, null, '', false]) {
      const replies = [cursored(1, 2, 'a&b'), cursored(3, 0, 7), cursored(3, 1, end)];
      const { ids, paths, certificate } = await read(byCursor, ...replies);
      expect(ids).toEqual([1, 2, 3]);
      expect(paths).toEqual(['/people', '/people?after=a%26b', '/people?after=7']);
      expect(certificate.complete).toBe(true);
    }
  });

  test('linked by cursor go on after an empty first one, even if a flag says that it is the last', async () => {
    const empty = { ...cursored(1, 0, 'a'), has_more: false };
    const { ids, certificate } = await read(byCursor, empty, cursored(1, 2));
    expect({ ids, complete: certificate.complete }).toEqual({ ids: [1, 2], complete: true });
  });

  test('none: everything comes at once, as a list or with one in it', async () => {
    expect((await read({}, people(1, 3))).certificate.complete).toBe(true);
    expect((await read({ records: 'data.list' }, list(1, 3))).ids).toEqual([1, 2, 3]);
  });

  test('keep the query of the address, and every header', async () => {
    const { url, asked } = await crm(list(1, 0));
    await readAll(sourceOf(`${url}?%24top=a%20b&x=`, numbered).source);
    expect(asked[0]?.path).toBe('/people?%24top=a%20b&x=&per=2&page=1');
    expect(asked[0]?.headers).toMatchObject({ authorization: SECRET, accept: 'application/json' });
  });

  test('come in batches of 500, whatever their size', async () => {
    const { batches, ids } = await read({}, people(1, 1_201));
    expect(batches.map(({ length }) => length)).toEqual([500, 500, 201]);
    expect(new Set(ids)).toHaveLength(1_201);
  });
});

describe('a certificate', () => {
  const end = list(0, 0);
  test.each<[string, object, Reply[], boolean | string]>([
    ['all that the total counts', counted, [list(1, 2, 3), list(3, 1, 3), end], true],
    ['a total in a text', counted, [list(1, 2, '2'), end], true],
    ['a total on the first page alone', counted, [list(1, 2, 3), list(3, 1), end], true],
    [
      'fewer than the total',
      counted,
      [list(1, 2, 4), list(3, 1, 4), end],
      '3 different records were read, and the CRM counts 4',
    ],
    ['a growing total, and all of it', counted, [list(1, 2, 3), list(3, 2, 4), end], true],
    ['a growing total, and less', counted, [list(1, 2, 3), list(3, 1, 4), end], 'the CRM counts 4'],
    ['a shrinking total, a gap', counted, [list(1, 2, 4), list(4, 1, 3), end], 'the CRM counts 4'],
    ['a shrinking total, all seen', counted, [list(1, 2, 3), list(3, 1, 2), end], true],
    ['one twice, one never', counted, [list(1, 2, 4), list(2, 2, 4), end], '3 different records'],
    ['one twice and none missing', counted, [list(1, 2, 3), list(2, 2, 3), end], true],
    ['a total of a page', counted, [list(1, 2, 2), list(3, 2, 2), end], 'more than the total of 2'],
    ['no total where one is named', counted, [list(1, 2), end], 'no answer tells the total'],
    ['a total that is none', counted, [list(1, 2, 'many'), end], 'no answer tells the total'],
    ['no last page, at the total', counted, [list(1, 2, 2), status(404)], true],
    ['no last page, before', counted, [list(1, 2, 3), status(404)], 'the CRM counts 3'],
    ['no last page', numbered, [list(1, 2), status(404)], 'a page that is not there (404)'],
    ['a last page that comes again, at the total', counted, [list(1, 2, 3), list(3, 1, 3)], true],
    [
      'a last page that comes again and says that there is more, at the total',
      counted,
      [list(1, 2, 3), { ...list(3, 1, 3), has_more: true }],
      true,
    ],
    ['a first page that comes again, at a total', counted, [list(1, 2, 2)], 'a page came twice'],
    [
      'a first page that comes again by cursors, at a total',
      { ...byCursor, total: 'n' },
      [{ ...cursored(1, 2, 'a'), n: 2 }],
      'a cursor came twice',
    ],
    [
      'cursors that lead in a circle, at the total',
      { ...byCursor, total: 'n' },
      [cursored(1, 2, 'a'), cursored(3, 1, 'b'), { ...cursored(3, 1, 'a'), n: 3 }],
      true,
    ],
    [
      'an answer that names a next page, at a total',
      { records: 'results', total: 'n' },
      [json({ ...cursored(1, 2), n: 2 }, 200, { link: '<x>; rel=next' })],
      'more pages follow',
    ],
    ['a page that comes again', numbered, [list(1, 2)], 'a page came twice'],
    ['a first answer without cursor', byCursor, [cursored(1, 2)], 'the first answer has no cursor'],
    ['… that says there is none', byCursor, [cursored(1, 2, null)], true],
    ['… with all of the total', { ...byCursor, total: 'n' }, [{ ...cursored(1, 2), n: 2 }], true],
    [
      'a cursor that comes again',
      byCursor,
      [cursored(1, 2, 'a'), cursored(3, 2, 'b'), cursored(5, 2, 'a')],
      'a cursor came twice',
    ],
    ['next page', {}, [json(people(1, 2), 200, { link: '<x>; rel="next"' })], 'more pages follow'],
    ['an earlier page', {}, [json(people(1, 2), 200, { link: '<x>; rel="prev"' })], true],
    [
      'a record that is none',
      {},
      [[{ id: 1 }, 'ann@x.y', null]],
      '2 records cannot be read, the first at page 1, record 2',
    ],
  ])('for %s', async (_, options, replies, expected) => {
    const { certificate } = await read(options, ...replies);
    const found = certificate.complete || certificate.why;
    if (expected === true) expect(found).toBe(true);
    else expect(found).toEqual(expect.stringContaining(String(expected)));
    if (!certificate.complete) expect(certificate.fix).not.toBe('');
  });

  test('is not given to cursors that never end', async () => {
    let count = 0;
    const { certificate, paths } = await read(byCursor, (response: ServerResponse) =>
      json(cursored(1, 2, (count += 1)))(response),
    );
    expect(paths).toHaveLength(21);
    expect(certificate).toMatchObject({
      complete: false,
      why: '20 pages in a row brought nothing new',
    });
  });

  test('is a new one each time, and holds for a quarter of an hour', async () => {
    const { url } = await crm(people(1, 1));
    const { source, clock } = sourceOf(url);
    const first = (await readAll(source)).certificate.reading;
    expect([first, 'http-0'].map((reading) => source.still?.(reading))).toEqual([true, false]);
    await clock.sleep(15 * 60_000 - 1);
    expect(source.still?.(first)).toBe(true);
    await clock.sleep(1);
    expect(source.still?.(first)).toBe(false);
    const second = (await readAll(source)).certificate.reading;
    expect(second).not.toBe(first);
    expect([first, second].map((reading) => source.still?.(reading))).toEqual([false, true]);
  });
});

describe('records', () => {
  test('are passed on as they are; a field that one lacks and others have is empty', async () => {
    const given = [{ id: 1, a: { b: ['x'] } }, { id: 2 }];
    const { url } = await crm(given);
    const { values } = await readAll(sourceOf(url).source, ['id', 'a.b']);
    expect(values).toEqual([given[0], { id: 2, 'a.b': null }]);
  });

  test('keep the digits of large ids, and small numbers as they are', async () => {
    const text = '[{"id":90071992547409931,"n":1.5},{"id":90071992547409932,"n":1e3}]';
    const { ids, certificate } = await read({}, (response: ServerResponse) => response.end(text));
    expect(ids).toEqual(['90071992547409931', '90071992547409932']);
    expect(certificate.complete).toBe(true);
  });

  test('with a NUL character are broken', async () => {
    const { broken } = await read({}, [{ id: 1 }, { id: 2, x: { y: ['a\0'] } }]);
    expect(broken).toMatchObject([{ where: 'page 1, record 2', broken: 'holds a NUL character' }]);
  });

  test('nested too deeply are read, with and without an id', async () => {
    const deep = '['.repeat(50_000) + ']'.repeat(50_000);
    const text = `[{"id":1,"x":${deep},"y":"\\u0000"},{"x":${deep}},{"id":3}]`;
    const { records, certificate } = await read({}, (response: ServerResponse) =>
      response.end(text),
    );
    expect(records).toHaveLength(3);
    expect(certificate.complete).toBe(false);
  });

  test('without a requested field fail the reading, which lists the existing fields', async () => {
    const { url } = await crm([{ id: 1, properties: { email: 'ann@x.y' } }]);
    const error = await errorOf(readAll(sourceOf(url).source, ['id', 'properties.emial']));
    expect(error.message).toMatch(
      /^127\.0\.0\.1:\d+: no record has "properties\.emial"; fields of the first one: "id", "properties\.email"; correct/,
    );
    expect(error.name).toBe('Invalid');
  });

  test('may be none at all', async () => {
    const { url } = await crm([]);
    expect((await readAll(sourceOf(url).source, ['id'])).certificate.complete).toBe(true);
  });
});
