/** The records of a query, page by page. */
import { z } from 'zod';
import { Unavailable } from '../../domain/errors.ts';
import type { Session } from './api-session.ts';
import { fromJson, rowOf, type Row } from './query-row.ts';
import { textOf, type Query } from './soql-query.ts';

const page = z.object({
  totalSize: z.number().int().min(0),
  done: z.boolean(),
  nextRecordsUrl: z.string().startsWith('/services/data/').optional(),
  records: z.array(z.unknown()),
});

export interface QueryPage {
  rows: Row[];
  /** How many records the query has in all. */
  total: number;
  /** Where the next page is; undefined: this is the last one. */
  next: string | undefined;
}

/** The deleted are among them, for as long as they are in the recycle bin. */
export async function firstPage(session: Session, query: Query): Promise<QueryPage> {
  return pageAt(session, query, `/queryAll?q=${encodeURIComponent(textOf(query))}`);
}

/** All records of a query from its first page on; answers how many it says there are. */
export async function* rowsFrom(
  session: Session,
  query: Query,
  first: QueryPage,
): AsyncGenerator<Row[], number> {
  let count = 0;
  for (let at = first; ;) {
    yield at.rows;
    count += at.rows.length;
    if (at.next === undefined) return first.total;
    if (at.rows.length === 0 || count > first.total) {
      const what = `${session.host} lists more than it counts → read it again`;
      throw new Unavailable(what, { acted: 'maybe' });
    }
    at = await pageAt(session, query, at.next);
  }
}

async function pageAt(session: Session, { shape }: Query, path: string): Promise<QueryPage> {
  const { value } = await session.ask({ path });
  const { data } = page.safeParse(value);
  if (!data || (!data.done && data.nextRecordsUrl === undefined)) {
    const what = `${session.host} answered a page that is none → read it again`;
    throw new Unavailable(what, { acted: 'maybe' });
  }
  return {
    rows: data.records.map((record) => rowOf(shape, fromJson(record))),
    total: data.totalSize,
    next: data.done ? undefined : data.nextRecordsUrl,
  };
}
