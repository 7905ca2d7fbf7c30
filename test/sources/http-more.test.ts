/** What a response says about the rest of its list: no list that goes on is taken for complete. */
import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { crm, json, people, sourceOf, status, type Reply } from '../support/sources/http-crm.ts';
import { readAll } from '../support/sources/source-reading.ts';

const two = people(1, 2);
const text = (body: string) => (response: ServerResponse) => response.end(body);

async function certificateOf(options: object, ...replies: Reply[]) {
  const { url, asked } = await crm(...replies);
  const { certificate } = await readAll(sourceOf(url, options).source, ['id']);
  return { ...certificate, paths: asked.map(({ path }) => path) };
}

describe('without page, an answer of two people is not complete', () => {
  test.each<[sign: string, body: Record<string, unknown>, fix: RegExp, records?: string]>([
    ['has_more is true', { has_more: true }, /^add page, .* \{ number: page \}$/],
    ['hasMore is true', { hasMore: 'true' }, /number: page/],
    ['has_more is 1', { has_more: 1 }, /number: page/],
    ['more is 14', { more: 14 }, /number: page/],
    ['more_records is true', { more_records: true }, /number: page/],
    ['info.more_records is true', { info: { more_records: true } }, /number: page/],
    ['list_info.has_more_rows is true', { list_info: { has_more_rows: true } }, /number: page/],
    ['pageInfo.hasNextPage is true', { pageInfo: { hasNextPage: true } }, /number: page/],
    ['IsTruncated is true', { IsTruncated: true }, /number: page/],
    ['incomplete_results is true', { incomplete_results: true }, /number: page/],
    ['last is false', { last: false }, /number: page/],
    ['isLast is false', { isLast: 'false' }, /number: page/],
    ['is_last_page is false', { is_last_page: false }, /number: page/],
    ['done is false', { done: false }, /number: page/],
    ['next is true', { next: true }, /number: page/],
    ['next names one', { next: 'abc' }, /page: \{ cursor: next, param: cursor \}/],
    ['next_page names one', { next_page: 2 }, /\{ cursor: next_page, param: page \}/],
    ['next_cursor names one', { next_cursor: 'x' }, /\{ cursor: next_cursor, param: cursor \}/],
    ['cursor names one', { cursor: 'x' }, /\{ cursor: cursor, param: cursor \}/],
    ['nextPageToken names one', { nextPageToken: 'x' }, /cursor: nextPageToken, param: pageToken/],
    ['next names one', { next: 'https://x.y/p?page=2&a=b' }, /page: \{ number: page \}/],
    ['links.next names one', { links: { next: '/p?after=x' } }, /cursor: links.next, param: after/],
    [
      '_links.next names one',
      { _links: { next: { href: '/p?s=x' } } },
      /_links.next.href, param: s/,
    ],
    ['links names one', { links: [{ rel: 'self' }, { rel: 'next', href: 'x' }] }, /number: page/],
    [
      'paging.next names one',
      { paging: { next: { after: 'x' } } },
      /paging.next.after, param: after/,
    ],
    [
      '@odata.nextLink names one',
      { '@odata.nextLink': '/p?skip=2' },
      /@odata.nextLink, param: skip/,
    ],
    ['nextRecordsUrl names one', { nextRecordsUrl: '/p/01-2' }, /number: page/],
    ['meta.cursor.next names one', { meta: { cursor: { next: 'x' } } }, /meta.cursor.next/],
    [
      'total is 3, and 2 records came',
      { total: 3 },
      /number: page.*; if total counts something else/,
    ],
    ['count is 3, and 2', { count: '3' }, /number: page/],
    ['totalSize is 3, and 2', { totalSize: 3 }, /number: page/],
    ['total_items is 3, and 2', { total_items: 3 }, /number: page/],
    ['meta.total is 3, and 2', { meta: { total: '3' } }, /number: page/],
    ['@odata.count is 3, and 2', { '@odata.count': 3 }, /number: page/],
    ['recordsFiltered is 3, and 2', { recordsTotal: 9, recordsFiltered: 3 }, /number: page/],
    ['page.totalElements is 3, and 2', { page: { totalElements: 3, size: 2 } }, /number: page/],
    ['total_pages is 2, and 1 page came', { total_pages: 2 }, /number: page/],
    ['last_page is 2, and 1 page came', { current_page: 1, last_page: '2' }, /number: page/],
    ['data.total is 3, and 2', { data: { list: two, total: 3 } }, /number: page/, 'data.list'],
    [
      'data.meta.has_more is true',
      { data: { list: two, meta: { has_more: true } } },
      /./,
      'data.list',
    ],
    ['total is 3, and 2', { total: 3, data: { list: two } }, /number: page/, 'data.list'],
    ['hits.total is 3, and 2', { hits: { list: two, total: { value: 3 } } }, /./, 'hits.list'],
    [
      'additional_data.pagination.more_items_in_collection is true',
      { additional_data: { pagination: { more_items_in_collection: true, next_start: 2 } } },
      /cursor: additional_data.pagination.next_start, param: start/,
    ],
  ])('if %s in %j', async (sign, body, fix, records = 'list') => {
    const found = await certificateOf({ records }, { list: two, ...body });
    expect(found).toMatchObject({
      complete: false,
      why: expect.stringContaining(`the answer says that more pages follow: ${sign}`),
      fix: expect.stringMatching(fix),
    });
  });

  test.each([
    ['link', '<https://x.y/p?page=2>; rel="next"', /\{ number: page \}/],
    ['link', '<https://x.y/p?page=1>; rel="first", </p?cursor=a>; rel="next"', /number: page/],
    ['x-total-count', '3', /number: page/],
    ['x-next-page', '2', /number: page/],
    ['x-wp-totalpages', '2', /number: page/],
    ['content-range', 'items 0-1/3', /number: page/],
  ])('if the header %s is %s', async (name, value, fix) => {
    const found = await certificateOf({}, json(two, 200, { [name]: value }));
    expect(found).toMatchObject({
      complete: false,
      why: expect.stringContaining(`the header ${name}`),
      fix: expect.stringMatching(fix),
    });
  });
});

describe('without page, an answer of two people is complete', () => {
  test.each<[string, Record<string, unknown>, string?]>([
    ['flags that say the end', { has_more: false, more_records: 'false', last: true, done: true }],
    ['no next place', { next: null, next_page: '', next_cursor: 0, links: { next: null } }],
    ['a next place that is empty', { paging: { next: {} }, _links: { next: { href: '' } } }],
    ['a next place beside an end flag', { has_more: false, next_cursor: 'for the next sync' }],
    ['a cursor beside an empty next', { cursor: 'mine', next_cursor: null }],
    ['the cursors of the page', { paging: { cursors: { before: 'a', after: 'b' } } }],
    ['totals that came', { total: 2, count: '2', meta: { total_count: 2, total_pages: 1 } }],
    ['a total of no record', { total: 0, count: 0 }],
    ['the total before the filter', { recordsTotal: 9, recordsFiltered: 2 }],
    ['a total of another thing', { billing: { total: 900 }, companies: { count: 7, more: true } }],
    ['a flag of another thing', { account: { has_more: true }, user: { next: 'x' } }],
    ['fields of a record', { list: two.map((one) => ({ ...one, total: 9, has_more: true })) }],
    ['sizes of a page', { limit: 100, per_page: 50, size: 20, page: 1, number: 0, offset: 0 }],
    ['other words', { next_run: 'noon', nextSyncToken: 'x', lastModified: false, total_time: 9 }],
    ['a sibling of the holder', { data: { list: two, other: { total: 9 } } }, 'data.list'],
  ])('with %s', async (_, body, records = 'list') => {
    const found = await certificateOf({ records }, { list: two, ...body });
    expect(found).toMatchObject({ complete: true });
  });

  test('with twice the same id, at the total', async () => {
    const list = [...two, { id: 2, email: 'other@x.y' }];
    expect(await certificateOf({ records: 'list' }, { list, total: 3 })).toMatchObject({
      complete: true,
    });
  });

  test('with a total of something else, if the right one is named', async () => {
    const options = { records: 'list', total: 'found.people' };
    const body = { list: two, total: 9, found: { people: 2 } };
    expect(await certificateOf(options, body)).toMatchObject({ complete: true });
  });
});

describe('with page', () => {
  const records = 'list';
  const numbered = { records, page: { number: 'p' } };
  const byCursor = { records, page: { cursor: 'next', param: 'after' } };
  const page = (first: number, count: number, more: object) => ({
    list: people(first, count),
    ...more,
  });

  test.each<[string, object, Reply[], true | string]>([
    [
      'totals that count all pages',
      numbered,
      [
        page(1, 2, { total: 3, total_pages: 2 }),
        page(3, 1, { total: 3 }),
        page(4, 0, { total: 3 }),
      ],
      true,
    ],
    [
      'a total of a page',
      numbered,
      [page(1, 2, { count: 2 }), page(3, 2, { count: 2 }), page(5, 0, { count: 0 })],
      true,
    ],
    [
      'an empty page before the total',
      numbered,
      [page(1, 2, { total: 5 }), page(3, 0, { total: 5 })],
      'total is 5, and 2 records came',
    ],
    [
      'pages that repeat a record, up to the total',
      numbered,
      [page(1, 2, { total: 4 }), page(2, 2, { total: 4 }), page(9, 0, { total: 4 })],
      'total is 4, and 3 records came',
    ],
    [
      'an empty page in the middle',
      numbered,
      [page(1, 2, { has_more: true }), page(3, 0, { has_more: true })],
      'has_more is true',
    ],
    [
      'an empty page that merely counts on',
      numbered,
      [page(1, 2, { next_page: 2 }), page(3, 0, { next_page: 3 })],
      true,
    ],
    [
      'a cursor that ended, and a flag that says more',
      byCursor,
      [page(1, 2, { next: 'a', has_more: true }), page(3, 2, { has_more: true })],
      'has_more is true',
    ],
    [
      'a cursor that ended, and another that did not',
      byCursor,
      [page(1, 2, { next: 'a' }), page(3, 2, { links: { next: '/p?after=b' } })],
      'links.next names one',
    ],
    [
      'the wrong cursor, with a total of the page',
      { ...byCursor, total: 'count' },
      [page(1, 2, { count: 2, next_cursor: 'a', has_more: true })],
      'has_more is true',
    ],
    [
      'a cursor after the last page, too, and a flag of the end',
      byCursor,
      [page(1, 2, { next: 'a', has_more: true }), page(3, 0, { next: 'b', has_more: false })],
      true,
    ],
    [
      'fewer pages than are counted',
      byCursor,
      [page(1, 2, { next: 'a' }), page(3, 2, { meta: { total_pages: 3 } })],
      'meta.total_pages is 3, and 2 pages came',
    ],
  ])('for %s', async (_, options, replies, expected) => {
    const found = await certificateOf(options, ...replies);
    if (expected === true) expect(found).toMatchObject({ complete: true });
    else {
      const why = expect.stringContaining(expected);
      expect(found).toMatchObject({ complete: false, why, fix: expect.stringContaining('page') });
    }
  });

  test('a cursor may stand in the address of the next page', async () => {
    const options = { records, page: { cursor: 'links.next', param: 'after' } };
    const next = { links: { next: 'https://x.y/people?after=a%26b&size=2' } };
    const found = await certificateOf(options, page(1, 2, next), page(3, 1, { links: {} }));
    expect(found.paths).toEqual(['/people', '/people?after=a%26b']);
    expect(found.complete).toBe(true);
  });
});

describe('the end of a list', () => {
  const numbered = { records: 'data.list', page: { number: 'p' } };
  const first = { data: { list: two } };
  const cursored = { records: 'data.list', page: { cursor: 'next', param: 'after' } };
  const total = { ...numbered, total: 'n' };
  const begun = { data: { list: two }, next: 'x' };
  test.each<[string, object, Reply[]]>([
    ['an empty list after the last page', numbered, [first, { data: { list: [] }, errors: [] }]],
    ['an empty list for nobody', numbered, [{ data: { list: [] }, error: null }]],
    ['no list after all that the total counts', total, [{ ...first, n: 2 }, { data: null }]],
    ['204 after all that the total counts', total, [{ ...first, n: 2 }, status(204)]],
  ])('may be %s', async (_, options, replies) => {
    const found = await certificateOf(options, ...replies);
    expect(found).toMatchObject({ complete: true });
    expect(found.paths).toHaveLength(replies.length);
  });

  test.each<[string, object, Reply[]]>([
    ['204', numbered, [first, status(204)]],
    ['null', numbered, [first, text('null')]],
    ['null in place of the list', numbered, [first, { data: { list: null } }]],
    ['an empty object', numbered, [first, {}]],
    ['an empty object around the list', numbered, [first, { data: {} }]],
    ['an empty object in place of a plain list', { page: { number: 'p' } }, [two, {}]],
    ['an empty object in place of a cursor and a list', cursored, [begun, {}]],
    ['null in place of both', cursored, [begun, { data: { list: null }, next: null }]],
    ['no list before all that the total counts', total, [{ ...first, n: 3 }, { data: {} }]],
    ['an error beside an empty list', numbered, [first, { error: 'busy', data: { list: [] } }]],
    [
      '… whatever the total',
      total,
      [
        { ...first, n: 2 },
        { errors: [{}, 'x'], data: { list: [] } },
      ],
    ],
    ['… with a cursor', cursored, [begun, { data: { list: [], error: { code: 7 } }, next: null }]],
  ])('is not %s', async (_, options, replies) => {
    const found = await certificateOf(options, ...replies);
    expect(found).toMatchObject({ complete: false });
    expect(found.paths).toHaveLength(2);
  });

  test.each<[string, object, Reply]>([
    ['204', {}, status(204)],
    ['null', {}, text('null')],
    ['a list that is null', numbered, { data: { list: null } }],
    ['an error beside an empty list', numbered, { error: 'busy', data: { list: [] } }],
  ])('on the first page is not %s, which is refused', async (_, options, reply) => {
    await expect(certificateOf(options, reply)).rejects.toMatchObject({ name: 'Invalid' });
  });

  test.each<[string, Reply[]]>([
    ['an object with something else', [first, { error: 'busy' }]],
    ['a text', [first, text('"busy"')]],
  ])('is not %s', async (_, replies) => {
    const found = await certificateOf(numbered, ...replies);
    expect(found).toMatchObject({ complete: false, why: expect.stringContaining('at page 2') });
  });
});
