import { expect, test } from 'vitest';
import fc from 'fast-check';
import { type Platform, paged } from '../../src/platform/api-client.ts';
import {
  ann,
  answering,
  collect,
  domain,
  fails,
  template,
} from '../support/platform/connected-client.ts';

interface Page {
  rows: { id: string }[];
  total?: number | undefined;
}

/** Walks over what `list` gives, at most `most` pages. */
async function walk(list: (query: { page: number; limit: number }) => Page, limit: number) {
  const asked: number[] = [];
  const { pages, all } = paged<object, Page, { id: string }>({
    list: async (query) => {
      asked.push(query.page);
      return list(query);
    },
    rowsOf: ({ rows }) => rows,
  });
  const ids: string[] = [];
  for await (const row of all({ limit })) ids.push(row.id);
  return { ids, asked, pages };
}

const rows = (from: number, count: number) =>
  Array.from({ length: count }, (_, at) => ({ id: String(from + at) }));
/** A list that stands still, its total told as `total` says. */
const still =
  (count: number, total: (rows: number) => number | undefined) =>
  ({ page, limit }: { page: number; limit: number }): Page => {
    const from = (page - 1) * limit;
    const shown = rows(from, Math.max(0, Math.min(limit, count - from)));
    return { rows: shown, total: total(shown.length) };
  };

test('every record comes once, whatever the total says', async () => {
  const totals = fc.constantFrom('true', 'page', 'none', 'zero', 'huge');
  await fc.assert(
    fc.asyncProperty(
      fc.nat(30),
      fc.integer({ min: 1, max: 7 }),
      totals,
      async (count, limit, told) => {
        const total = (shown: number) =>
          ({ true: count, page: shown, none: undefined, zero: 0, huge: 1e9 })[told];
        const { ids, asked } = await walk(still(count, total), limit);
        expect(ids).toEqual(rows(0, count).map(({ id }) => id));
        expect(asked.length).toBeLessThanOrEqual(Math.floor(count / limit) + 2);
        // One request more than there are pages only where that is the only way to know.
        if (told === 'true') expect(asked).toHaveLength(Math.floor(count / limit) + 1);
      },
    ),
  );
});

test('a platform may give fewer records than requested', async () => {
  const capped = ({ page }: { page: number }): Page => ({
    rows: rows((page - 1) * 2, page > 3 ? 0 : 2),
    total: 6,
  });
  expect((await walk(capped, 5)).ids).toHaveLength(6);
});

test('records that move to later pages come once', async () => {
  let shift = 0;
  const growing = ({ page, limit }: { page: number; limit: number }): Page => {
    const list = rows(-shift, 20 + shift);
    shift += limit;
    return { rows: list.slice((page - 1) * limit, page * limit), total: list.length };
  };
  const once = (query: { page: number; limit: number }) =>
    query.page > 3 ? still(20, () => 20)(query) : growing(query);
  const { ids } = await walk(once, 5);
  expect(new Set(ids).size).toBe(ids.length);
});

test('pages that do not advance end with the reason', async () => {
  const asked: number[] = [];
  const same = ({ page }: { page: number }): Page => {
    asked.push(page);
    return { rows: rows(0, 3), total: 1000 };
  };
  const error = await fails(walk(same, 3));
  expect(error).toMatchObject({ name: 'Unavailable', acted: 'no' });
  expect(String(error)).toContain('its pages do not turn');
  expect(asked).toEqual([1, 2, 3, 4, 5]);
});

test('a short page without anything new is the end', async () => {
  const same = (): Page => ({ rows: rows(0, 3), total: 1000 });
  expect(await walk(same, 5)).toMatchObject({ ids: ['0', '1', '2'], asked: [1, 2] });
});

test('the first page is given even when empty, and nothing is requested ahead', async () => {
  const { run, requests } = await answering({ body: { templates: [template], total: 100 } });
  await run(async ({ templates }) => {
    for await (const page of templates.pages({ limit: 1 })) {
      expect(page.templates).toHaveLength(1);
      break;
    }
  });
  expect(requests).toHaveLength(1);
  const { run: runEmpty } = await answering({ body: { domains: [], total: 0 } });
  const pages = await runEmpty(({ domains }) => collect(domains.pages()));
  expect(pages).toEqual([{ domains: [], total: 0 }]);
});

const walks: [string, (to: Platform) => Promise<unknown[]>, object, string][] = [
  [
    'contacts',
    (to) => collect(to.contacts.all({ search: 'Ann@', status: 'blocked' })),
    { contacts: [ann], total: 1 },
    '/api/contacts/list?page=1&limit=100&search=ann%40&status=blocked',
  ],
  [
    'templates',
    (to) => collect(to.templates.all({ limit: 7 })),
    { templates: [template], total: 1 },
    '/api/template/v1/list?page=1&limit=7',
  ],
  [
    'domains',
    (to) => collect(to.domains.all()),
    { domains: [domain], total: 1 },
    '/api/domain/v1/list?page=1&limit=100',
  ],
];
test.each(walks)('%s', async (_, use, body, path) => {
  const { run, requests } = await answering({ body });
  expect(await run(use)).toHaveLength(1);
  expect(requests.map(({ path }) => path)).toEqual([path]);
});
