/**
 * Reads the records of a query, page by page or through the Bulk API, each as a row before merges
 * and conversions are resolved. A query contains only checked names, ids, times and the condition
 * from the options.
 */
import { queryValue, pathSegment } from '../../domain/address-part.ts';
import { z } from 'zod';
import { Unavailable } from '../../domain/errors.ts';
import type { Session } from './api-session.ts';
import type { Shape, Spelling } from './field-selection.ts';
import { longId, type ObjectName } from './protocol/record-ids.ts';
import { parse } from 'csv-parse/sync';
import type { Clock } from '../../domain/clock.ts';
import { retryDelayMs, retrySchedules } from '../../domain/retry-schedules.ts';

const page = z.object({
  totalSize: z.number().int().min(0),
  done: z.boolean(),
  nextRecordsUrl: z.string().startsWith('/services/data/').optional(),
  records: z.array(z.unknown()),
});

interface QueryPage {
  rows: Row[];
  total: number;
  /** The path of the next page; undefined on the last page. */
  next: string | undefined;
}

/** Returns the first page. Deleted records are included while they are in the recycle bin. */
export async function firstPage(session: Session, query: Query): Promise<QueryPage> {
  return readPage(session, query, `/queryAll?q=${queryValue(toSoql(query))}`);
}

/** Yields all records from the first page on, and returns the number that the query reports. */
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
    at = await readPage(session, query, at.next);
  }
}

async function readPage(session: Session, { shape }: Query, path: string): Promise<QueryPage> {
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

interface Query {
  shape: Shape;
  /** Conditions that must all be true. */
  where?: readonly (string | undefined)[];
  order?: string;
}

function toSoql({ shape, where = [], order }: Query): string {
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

/** A record with the fields needed to resolve merges. */
export interface Row {
  id: string;
  object: ObjectName;
  isDeleted: boolean;
  /** The id of the remaining record, if this one was merged into it. */
  master: string | undefined;
  /** Whether the lead was converted, and the id of the contact that it became. */
  isConverted: boolean;
  contact: string | undefined;
  /** Every requested field, under its name in the configuration; null if it is empty or missing. */
  values: Record<string, unknown>;
}

type Reads = (name: string, spelling: Spelling) => unknown;

/** Returns the row for a record. Throws Unavailable for a record without an id. */
function rowOf({ object, fields }: Shape, read: Reads): Row {
  const id = idIn(read('Id', 'text'));
  if (id === undefined) {
    throw new Unavailable('Salesforce answered a record without its Id', { acted: 'maybe' });
  }
  const values = [...fields].map(([name, spelling]): [string, unknown] => {
    if (name === 'Id') return [name, id];
    const value = spelling && read(name, spelling);
    if (typeof value !== 'string') return [name, value ?? null];
    // Salesforce writes times with +0000 instead of Z.
    return [name, value.replace(/^(\d{4}-\d\d-\d\dT[\d:.]+)\+0000$/, '$1Z')];
  });
  return {
    id,
    object,
    isDeleted: read('IsDeleted', 'truth') === true,
    master: idIn(read('MasterRecordId', 'text')),
    isConverted: read('IsConverted', 'truth') === true,
    contact: idIn(read('ConvertedContactId', 'text')),
    values: Object.fromEntries(values),
  };
}

/** Reads fields from JSON. Each step of a path is a nested field, in Salesforce's spelling. */
function fromJson(record: unknown): Reads {
  const stepInto = (value: unknown, name: string): unknown => {
    if (typeof value !== 'object' || value === null) return undefined;
    if (Object.hasOwn(value, name)) return Reflect.get(value, name);
    const other = Object.keys(value).find((key) => key.toLowerCase() === name.toLowerCase());
    return other === undefined ? undefined : Reflect.get(value, other);
  };
  return (name) => name.split('.').reduce(stepInto, record);
}

function fromText(columns: ReadonlyMap<string, number>, cells: readonly string[]): Reads {
  return (name, spelling) => {
    const cell = cells[columns.get(name.toLowerCase()) ?? -1] ?? '';
    if (cell === '') return null;
    if (spelling === 'truth') return cell.toLowerCase() === 'true';
    return spelling === 'number' && Number.isFinite(Number(cell)) ? Number(cell) : cell;
  };
}

function idIn(value: unknown): string | undefined {
  return typeof value === 'string' ? longId(value) : undefined;
}

/** Keeps a response below 16 MiB. */
const CHUNK_RECORDS = 5_000;
const MOST_WAIT_MS = 4 * 60 * 60_000;

const job = z.object({
  id: z.string().regex(/^\w{15,18}$/),
  state: z.string(),
  numberRecordsProcessed: z.number().int().min(0).optional(),
});
interface Bulk {
  session: Session;
  clock: Clock;
  signal: AbortSignal;
}

/**
 * Yields the rows of a query through the Bulk API 2.0, and returns their total number. This waits
 * for a job and reads its results as CSV, some thousands at a time, and takes a tenth of the
 * requests. The query has no order, because Salesforce could not divide the work of an ordered one.
 */
export async function* bulkRows(bulk: Bulk, query: Query): AsyncGenerator<Row[], number> {
  const { session } = bulk;
  const { shape } = query;
  const { id, numberRecordsProcessed } = await runJob(bulk, query);
  let columns: Map<string, number> | undefined;
  let count = 0;
  for (let locator = ''; ;) {
    const more = locator === '' ? '' : `&locator=${queryValue(locator)}`;
    const results = `/jobs/query/${pathSegment(id)}/results`;
    const path = `${results}?maxRecords=${queryValue(String(CHUNK_RECORDS))}${more}`;
    const { text, headers } = await session.ask({ path, text: 'text/csv' });
    let lines: string[][];
    try {
      // Every row must have the width of the first.
      lines = parse(text, { bom: true });
    } catch {
      throw odd(session);
    }
    // The first chunk has a header row; other chunks may have one.
    const named = new Map((lines[0] ?? []).map((name, at) => [name.toLowerCase(), at]));
    const isHeader = shape.select.every((name) => named.has(name.toLowerCase()));
    if (isHeader) columns = named;
    const header = columns;
    const cells = isHeader ? lines.slice(1) : lines;
    const stated = Number(headers['sforce-numberofrecords'] ?? cells.length);
    if (stated !== cells.length || (!header && cells.length > 0)) throw odd(session);
    yield header ? cells.map((row) => rowOf(shape, fromText(header, row))) : [];
    count += cells.length;
    locator = headers['sforce-locator'] ?? 'null';
    if (locator === 'null' || locator === '') return numberRecordsProcessed ?? count;
    if (cells.length === 0) throw odd(session);
  }
}

/** Runs a job to its end. Throws Unavailable if it fails; pages may still be read then. */
async function runJob(
  { session, clock, signal }: Bulk,
  { shape, where = [] }: Query,
): Promise<z.infer<typeof job>> {
  const query = toSoql({ shape, where });
  const body = { operation: 'queryAll', query, columnDelimiter: 'COMMA', lineEnding: 'LF' };
  let { value } = await session.ask({ path: '/jobs/query', body });
  const until = clock.monotonic() + MOST_WAIT_MS;
  for (let tries = 1; ; tries += 1) {
    const { data } = job.safeParse(value);
    if (!data) throw odd(session);
    if (data.state === 'JobComplete') return data;
    const isOver = data.state === 'Failed' || data.state === 'Aborted';
    if (isOver || clock.monotonic() >= until) {
      const what = isOver ? `ended as ${data.state}` : 'was not done after 4 hours';
      const fix = 'set bulkAbove of the source higher, to read page by page, or narrow where';
      const why = `${session.host}: the job of the Bulk API ${what}`;
      throw new Unavailable(why, { fix, acted: 'maybe' });
    }
    await clock.sleep(retryDelayMs(retrySchedules.bulkJob, tries), signal);
    ({ value } = await session.ask({ path: `/jobs/query/${pathSegment(data.id)}` }));
  }
}

function odd(session: Session): Unavailable {
  const what = `${session.host} answered results of the Bulk API that are none`;
  return new Unavailable(what, { fix: 'read it again', acted: 'maybe' });
}
