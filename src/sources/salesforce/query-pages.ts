/**
 * Reads the records of a query page by page. A query contains only checked names, ids, times and
 * the condition from the options.
 */
import { queryValue } from '../../domain/address-part.ts';
import { z } from 'zod';
import { Unavailable } from '../../domain/errors.ts';
import type { Session } from './api-session.ts';
import { fromJson, type Row, rowOf } from './query-row.ts';
import type { Shape } from './field-selection.ts';

const page = z.object({
  totalSize: z.number().int().min(0),
  done: z.boolean(),
  nextRecordsUrl: z.string().startsWith('/services/data/').optional(),
  records: z.array(z.unknown()),
});

/** One page of a query. */
export interface QueryPage {
  rows: Row[];
  /** The total number of records of the query. */
  total: number;
  /** The path of the next page; undefined on the last page. */
  next: string | undefined;
}

/**
 * Returns the first page of a query. Deleted records are included while they are in the recycle
 * bin.
 */
export async function firstPage(session: Session, query: Query): Promise<QueryPage> {
  return pageAt(session, query, `/queryAll?q=${queryValue(textOf(query))}`);
}

/**
 * Yields all records of a query starting with its first page, and returns the number that the query
 * reports.
 */
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
      const what = `${session.host} lists more than it counts`;
      throw new Unavailable(what, { fix: 'read it again', acted: 'maybe' });
    }
    at = await pageAt(session, query, at.next);
  }
}

async function pageAt(session: Session, { shape }: Query, path: string): Promise<QueryPage> {
  const { value } = await session.ask({ path });
  const { data } = page.safeParse(value);
  if (!data || (!data.done && data.nextRecordsUrl === undefined)) {
    const what = `${session.host} answered a page that is none`;
    throw new Unavailable(what, { fix: 'read it again', acted: 'maybe' });
  }
  return {
    rows: data.records.map((record) => rowOf(shape, fromJson(record))),
    total: data.totalSize,
    next: data.done ? undefined : data.nextRecordsUrl,
  };
}

/** A query for one object. */
export interface Query {
  shape: Shape;
  /** Conditions that must all be true. */
  where?: readonly (string | undefined)[];
  order?: string;
}

/** Returns the query in SOQL. */
export function textOf({ shape, where = [], order }: Query): string {
  const conditions = where.filter((one) => one !== undefined).map((one) => `(${one})`);
  return [
    `SELECT ${shape.select.join(', ')} FROM ${shape.object}`,
    ...(conditions.length > 0 ? [`WHERE ${conditions.join(' AND ')}`] : []),
    ...(order === undefined ? [] : [`ORDER BY ${order}`]),
  ].join(' ');
}

/** Returns the condition that a field equals one of these long ids. */
export function isOneOf(field: string, ids: readonly string[]): string {
  return `${field} IN (${ids.map((id) => `'${id}'`).join(', ')})`;
}
