/**
 * Reads the records of a query through the Bulk API 2.0: waits for a job and reads its results as
 * CSV, some thousands at a time. This takes a tenth of the requests.
 *
 *   UploadComplete, InProgress → check again later
 *   JobComplete                → read the results
 *   Failed, Aborted            → Unavailable; the same query may still be read page by page
 */
import { pathSegment, queryValue } from '../../domain/address-part.ts';
import { parse } from 'csv-parse/sync';
import { z } from 'zod';
import type { Clock } from '../../domain/clock.ts';
import { Unavailable } from '../../domain/errors.ts';
import { fromText, type Row, rowOf } from './query-row.ts';
import type { Session } from './api-session.ts';
import { retryDelayMs, retrySchedules } from '../../domain/retry-schedules.ts';
import { type Query, textOf } from './query-pages.ts';

/** Keeps a response below 16 MiB. */
const CHUNK_RECORDS = 5_000;
const MOST_WAIT_MS = 4 * 60 * 60_000;

const job = z.object({
  id: z.string().regex(/^\w{15,18}$/),
  state: z.string(),
  numberRecordsProcessed: z.number().int().min(0).optional(),
});
type Job = z.infer<typeof job>;

/** The parts that a job needs. */
export interface Bulk {
  session: Session;
  clock: Clock;
  signal: AbortSignal;
}

/**
 * Yields the rows of a query and returns their total number. The query has no order, because
 * Salesforce could not divide the work of an ordered query.
 */
export async function* bulkRows(bulk: Bulk, query: Query): AsyncGenerator<Row[], number> {
  const { session } = bulk;
  const { id, numberRecordsProcessed } = await finished(bulk, await madeFor(query, session));
  const chunks = chunksOf(session, query, id);
  let count = 0;
  for (let locator: string | undefined = ''; locator !== undefined;) {
    const { rows, next } = await chunks(locator);
    yield rows;
    count += rows.length;
    if (rows.length === 0 && next !== undefined) throw odd(session);
    locator = next;
  }
  return numberRecordsProcessed ?? count;
}

async function madeFor({ shape, where = [] }: Query, session: Session): Promise<Job> {
  const query = textOf({ shape, where });
  const format = { columnDelimiter: 'COMMA', lineEnding: 'LF' };
  const body = { operation: 'queryAll', query, ...format };
  return jobIn((await session.ask({ path: '/jobs/query', body })).value, session);
}

async function finished({ session, clock, signal }: Bulk, made: Job): Promise<Job> {
  const until = clock.monotonic() + MOST_WAIT_MS;
  let current = made;
  for (let tries = 1; ; tries += 1) {
    if (current.state === 'JobComplete') return current;
    const isOver = current.state === 'Failed' || current.state === 'Aborted';
    if (isOver || clock.monotonic() >= until) {
      const what = isOver ? `ended as ${current.state}` : 'was not done after 4 hours';
      const fix = 'set bulkAbove of the source higher, to read page by page, or narrow where';
      throw new Unavailable(`${session.host}: the job of the Bulk API ${what}`, {
        fix,
        acted: 'maybe',
      });
    }
    await clock.sleep(retryDelayMs(retrySchedules.bulkJob, tries), signal);
    current = jobIn(
      (await session.ask({ path: `/jobs/query/${pathSegment(made.id)}` })).value,
      session,
    );
  }
}

function jobIn(value: unknown, session: Session): Job {
  const { data } = job.safeParse(value);
  if (data) return data;
  throw odd(session);
}

interface Chunk {
  rows: Row[];
  /** The locator of the next chunk. */
  next: string | undefined;
}

/**
 * Returns a function that reads the chunk at a locator, starting with ''. The first chunk has a
 * header row; other chunks may have one.
 */
function chunksOf(session: Session, { shape }: Query, id: string) {
  let columns: Map<string, number> | undefined;
  return async (locator: string): Promise<Chunk> => {
    const more = locator === '' ? '' : `&locator=${queryValue(locator)}`;
    const path = `/jobs/query/${pathSegment(id)}/results?maxRecords=${queryValue(String(CHUNK_RECORDS))}${more}`;
    const { text, headers } = await session.ask({ path, text: 'text/csv' });
    const lines = linesOf(text, session);
    const named = new Map((lines[0] ?? []).map((name, at) => [name.toLowerCase(), at]));
    const isHeader = shape.select.every((name) => named.has(name.toLowerCase()));
    const header = isHeader ? named : columns;
    const cells = isHeader ? lines.slice(1) : lines;
    const told = Number(headers['sforce-numberofrecords'] ?? cells.length);
    if (told !== cells.length || (!header && cells.length > 0)) throw odd(session);
    columns = header;
    const next = headers['sforce-locator'] ?? 'null';
    return {
      rows: header ? cells.map((row) => rowOf(shape, fromText(header, row))) : [],
      next: next === 'null' || next === '' ? undefined : next,
    };
  };
}

/** Parses CSV. Every row must have the width of the first. */
function linesOf(text: string, session: Session): string[][] {
  try {
    return parse(text, { bom: true });
  } catch {
    throw odd(session);
  }
}

function odd(session: Session): Unavailable {
  const what = `${session.host} answered results of the Bulk API that are none`;
  return new Unavailable(what, { fix: 'read it again', acted: 'maybe' });
}
