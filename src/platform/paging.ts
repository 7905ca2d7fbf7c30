/**
 * Reads a whole list page by page ("Limits" 2 and 3). `total` alone neither ends the read nor
 * continues it, because it may count a single page, and records are added and removed while a list
 * is read.
 *
 *   a page that is          and                               then
 *   empty                                                     the end
 *   without a new record    short                             the end
 *                           full, less than 4 times in a row  continue: inserts shift known records
 *                           full, the 4th time in a row       Unavailable: the pages do not advance
 *   short                   as many seen as `total` says      the end
 *                           fewer seen                        continue: the limit may be capped
 *   full                                                      continue
 */
import { Unavailable } from '../domain/errors.ts';
import type { CallOptions } from './api-call.ts';

const MOST_RECORDS = 100;
const MOST_REPEATS = 3;

/** The ways to read a list. The next page is requested only when the iteration reaches it. */
export interface Paged<Query, Page, Row> {
  /**
   * Yields the responses of the list operation one after another, including the first one if it is
   * empty. A record may be on several pages, or on none if others were deleted meanwhile; only a
   * certified listing proves absence.
   */
  pages(query?: Query & PageSize, options?: CallOptions): AsyncGenerator<Page, void, undefined>;
  /** Yields every record on those pages, each id once. */
  all(query?: Query & PageSize, options?: CallOptions): AsyncGenerator<Row, void, undefined>;
}

interface PageSize {
  /** The records per page, from 1 to 100; the default is 100. */
  limit?: number | undefined;
}

interface List<Query, Page, Row> {
  list(query: Query & { page: number; limit: number }, options?: CallOptions): Promise<Page>;
  rowsOf(page: Page): readonly Row[];
}

/** Creates the ways to read a list from its list operation. They throw the same errors. */
export function paged<
  Query extends object,
  Page extends { total?: number | undefined },
  Row extends { id: string },
>({ list, rowsOf }: List<Query, Page, Row>): Paged<Query, Page, Row> {
  const pages: Paged<Query, Page, Row>['pages'] = async function* (query, options) {
    const { limit = MOST_RECORDS } = query ?? {};
    const seen = new Set<string>();
    let repeats = 0;
    for (let page = 1; ; page += 1) {
      const listed = await list(Object.assign({}, query, { page, limit }), options);
      const rows = rowsOf(listed);
      if (rows.length > 0 || page === 1) yield listed;
      const before = seen.size;
      for (const { id } of rows) seen.add(id);
      const full = rows.length >= limit;
      repeats = seen.size > before ? 0 : repeats + 1;
      if (repeats > 0 && !full) return;
      if (repeats > MOST_REPEATS) {
        const same = `the platform lists the same records on ${MOST_REPEATS + 2} pages`;
        const message = `${same}, up to page ${page}: its pages do not turn`;
        throw new Unavailable(message, { acted: 'no' });
      }
      if (!full && seen.size >= (listed.total ?? 0)) return;
    }
  };
  async function* all(...asked: Parameters<typeof pages>): AsyncGenerator<Row, void, undefined> {
    const given = new Set<string>();
    for await (const page of pages(...asked)) {
      for (const row of rowsOf(page)) {
        if (!given.has(row.id)) yield row;
        given.add(row.id);
      }
    }
  }
  return { pages, all };
}
