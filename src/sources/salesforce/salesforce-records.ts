/**
 * Reads records as rows, before merges and conversions are resolved: by pages of a query, a Bulk
 * API job, or ids. A query has only checked names, ids, times and the condition from the options.
 */
import { queryValue, pathSegment } from '../../domain/address-part.ts';
import { z } from 'zod';
import { Unavailable, Invalid } from '../../domain/errors.ts';
import type { Session } from './salesforce-api.ts';
import { parse } from 'csv-parse/sync';
import type { Clock } from '../../domain/clock.ts';
import { retryDelayMs, retrySchedules } from '../../domain/retry-schedules.ts';
import { listed, quoted, hintsFor } from '../shared/record-fields.ts';
import type { Condition } from '../../domain/condition.ts';

const page = z.object({
  totalSize: z.number().int().min(0),
  done: z.boolean(),
  nextRecordsUrl: z.string().startsWith('/services/data/').optional(),
  records: z.array(z.unknown()),
});

interface QueryPage {
  rows: Row[];
  total: number;
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
    if (at.rows.length === 0 || count > first.total)
      throw odd(session, 'lists more than it counts');
    at = await readPage(session, query, at.next);
  }
}

async function readPage(session: Session, { shape }: Query, path: string): Promise<QueryPage> {
  const { value } = await session.ask({ path });
  const { data } = page.safeParse(value);
  if (!data || (!data.done && data.nextRecordsUrl === undefined))
    throw odd(session, 'answered a page that is none');
  return {
    rows: data.records.map((record) => rowOf(shape, fromJson(record))),
    total: data.totalSize,
    next: data.done ? undefined : data.nextRecordsUrl,
  };
}

interface Query {
  shape: Shape;
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
/**
 * Yields the rows of a query through the Bulk API 2.0, and returns their total number: waits for a
 * job and reads its results as CSV, in a tenth of the requests. An ordered query could not be
 * divided.
 */
export async function* bulkRows(
  session: Session,
  query: Query,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<Row[], number> {
  const { shape } = query;
  const { id, numberRecordsProcessed } = await runJob(session, query, clock, signal);
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
      throw odd(session, 'answered results of the Bulk API that are none');
    }
    // The first chunk has a header row; other chunks may have one.
    const named = new Map((lines[0] ?? []).map((name, at) => [name.toLowerCase(), at]));
    const isHeader = shape.select.every((name) => named.has(name.toLowerCase()));
    if (isHeader) columns = named;
    const header = columns;
    const cells = isHeader ? lines.slice(1) : lines;
    const stated = Number(headers['sforce-numberofrecords'] ?? cells.length);
    if (stated !== cells.length || (!header && cells.length > 0))
      throw odd(session, 'answered results of the Bulk API that are none');
    yield header
      ? cells.map((row) =>
          rowOf(shape, (name, spelling) => {
            const cell = row[header.get(name.toLowerCase()) ?? -1] ?? '';
            if (cell === '') return null;
            if (spelling === 'truth') return cell.toLowerCase() === 'true';
            return spelling === 'number' && Number.isFinite(Number(cell)) ? Number(cell) : cell;
          }),
        )
      : [];
    count += cells.length;
    locator = headers['sforce-locator'] ?? 'null';
    if (locator === 'null' || locator === '') return numberRecordsProcessed ?? count;
    if (cells.length === 0) throw odd(session, 'answered results of the Bulk API that are none');
  }
}

/** Runs a job to its end. Throws Unavailable if it fails; pages may still be read then. */
async function runJob(
  session: Session,
  { shape, where = [] }: Query,
  clock: Clock,
  signal: AbortSignal,
): Promise<z.infer<typeof job>> {
  const query = toSoql({ shape, where });
  const json = { operation: 'queryAll', query, columnDelimiter: 'COMMA', lineEnding: 'LF' };
  let { value } = await session.ask({ path: '/jobs/query', json });
  const until = clock.monotonic() + MOST_WAIT_MS;
  for (let tries = 1; ; tries += 1) {
    const { data } = job.safeParse(value);
    if (!data) throw odd(session, 'answered results of the Bulk API that are none');
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

function odd({ host }: Session, what: string): Unavailable {
  return new Unavailable(`${host} ${what}`, { fix: 'read it again', acted: 'maybe' });
}

/** How a value is represented in a format that contains only text. */
type Spelling = 'truth' | 'number' | 'text';

export interface Shape {
  object: ObjectName;
  fields: ReadonlyMap<string, Spelling | undefined>;
  select: readonly string[];
}

/** A field that every response contains but no record has. */
const ANSWERED = 'attributes.type';
const fieldName = /^[A-Za-z]\w{0,80}(?:\.[A-Za-z]\w{0,80}){0,5}$/;
const needed = ['Id', 'IsDeleted', 'MasterRecordId', 'IsConverted', 'ConvertedContactId'];

const described = z.object({
  fields: z.array(
    z.object({ name: z.string(), type: z.string(), relationshipName: z.string().nullish() }),
  ),
});
type Described = z.infer<typeof described>['fields'];

/** Returns the shapes of objects. Throws Invalid for a field that none of them has. */
export async function describeShapes(
  session: Session,
  objects: readonly ObjectName[],
  fields: readonly string[],
): Promise<Shape[]> {
  const names = fields.filter((field) => field !== ANSWERED);
  for (const name of names) {
    if (fieldName.test(name)) continue;
    const what = `${quoted(name)} is no name of a Salesforce field`;
    throw new Invalid(what, { fix: 'write it as Setup does' });
  }
  const found: [ObjectName, Described][] = [];
  for (const object of objects) {
    const { value } = await session.ask({ path: `/sobjects/${pathSegment(object)}/describe` });
    found.push([object, described.safeParse(value).data?.fields ?? []]);
  }
  const missing = names.filter((name) => found.every(([, there]) => !spellingOf(name, there)));
  if (missing.length > 0) {
    const all = found.flatMap(([, there]) =>
      there.flatMap(({ name, relationshipName }) =>
        relationshipName ? [name, `${relationshipName}.Name`] : name,
      ),
    );
    const hints = hintsFor(missing, all);
    const more = hints.length > 0 ? hints : [`fields found: ${listed([...new Set(all)])}`];
    const verb = objects.length > 1 ? 'have' : 'has';
    const what = `${objects.join(' and ')} ${verb} no field ${missing.map(quoted).join(', ')}`;
    const fix = 'correct the configuration, or let the user see the field';
    throw new Invalid(`${session.host}: ${[what, ...more].join('; ')}`, { fix });
  }
  return found.map(([object, there]) => {
    const spellings = new Map(names.map((name) => [name, spellingOf(name, there)]));
    const own = needed.filter((name) => there.some((field) => field.name === name));
    const select = new Set([...own, ...names.filter((name) => spellings.get(name))]);
    return { object, fields: spellings, select: [...select] };
  });
}

const unreadable = ['base64', 'address', 'location', 'complexvalue'];

export async function salesforceFields(session: Session, object: ObjectName): Promise<string[]> {
  const { value } = await session.ask({ path: `/sobjects/${pathSegment(object)}/describe` });
  const { fields = [] } = described.safeParse(value).data ?? {};
  return fields.filter(({ type }) => !unreadable.includes(type)).map(({ name }) => name);
}

/** Returns how a field is represented. Only the first step of a path is checked. */
function spellingOf(name: string, there: Described): Spelling | undefined {
  const [first, ...rest] = name.split('.');
  if (rest.length > 0)
    return there.some((field) => field.relationshipName === first) ? 'text' : undefined;
  const field = there.find((one) => one.name === name);
  if (!field) return undefined;
  if (field.type === 'boolean') return 'truth';
  return ['int', 'long', 'double', 'currency', 'percent'].includes(field.type) ? 'number' : 'text';
}

/**
 * Record ids have 15 characters in which case matters, or three more that encode the case. This
 * source uses the long form.
 */
const spelled = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ012345';

type ObjectName = 'Contact' | 'Lead';

const prefixes: Readonly<Record<string, ObjectName>> = { '003': 'Contact', '00Q': 'Lead' };

/** Returns the long form of an id, or undefined if the text is not a record id. */
export function longId(text: string): string | undefined {
  if (!/^[0-9A-Za-z]{15}(?:[0-9A-Za-z]{3})?$/.test(text)) return undefined;
  const short = text.slice(0, 15);
  // The case of five characters is one more, one bit each; a set bit means a capital.
  const cases = [0, 5, 10].map((from) => {
    const bits = short
      .slice(from, from + 5)
      .split('')
      .map((char, at) => (/[A-Z]/.test(char) ? 2 ** at : 0));
    return spelled.charAt(bits.reduce((sum, bit) => sum + bit, 0));
  });
  const long = short + cases.join('');
  return text.length === 15 || text === long ? long : undefined;
}

/** Returns the object of a long id, or undefined if this source does not read that object. */
export function objectOf(id: string): ObjectName | undefined {
  return prefixes[id.slice(0, 3)];
}

/** Limits the ids in one query, because an address may have 16 KB. */
const IDS_AT_ONCE = 250;

/** A field that may state an opt-out. If `says` gives unknown, the record is not trusted. */
export interface OptOutField {
  field: string;
  says(value: unknown): 'yes' | 'no' | 'unknown';
}

export type Reader = ReturnType<typeof createReader>;

/** `optOuts` may state an opt-out from all mail, and `optsOut` states one if it is true. */
export function createReader({
  session,
  shapes,
  where,
  ...rest
}: {
  session: Session;
  shapes: readonly Shape[];
  fields: readonly string[];
  optOuts: readonly OptOutField[];
  optsOut: Condition | undefined;
  where: string | undefined;
}) {
  const find = async (shape: Shape, field: string, ids: readonly string[]): Promise<Row[]> => {
    const found: Row[] = [];
    for (let from = 0; from < ids.length; from += IDS_AT_ONCE) {
      const some = ids.slice(from, from + IDS_AT_ONCE).map((id) => `'${id}'`);
      const query = { shape, where: [`${field} IN (${some.join(', ')})`, where] };
      const pages = rowsFrom(session, query, await firstPage(session, query));
      for await (const rows of pages) found.push(...rows);
    }
    return found;
  };
  const ofObject = (ids: readonly string[], object: ObjectName) =>
    ids.filter((id) => objectOf(id) === object);
  return {
    session,
    shapes,
    ...rest,
    where,
    async lookUp(ids: readonly string[]): Promise<Row[]> {
      const found: Row[] = [];
      for (const shape of shapes)
        found.push(...(await find(shape, 'Id', ofObject(ids, shape.object))));
      return found;
    },
    /** Returns the records merged into one of these, and the leads converted to one of them. */
    async lookUpThose(ids: readonly string[]): Promise<Row[]> {
      const found: Row[] = [];
      const contacts = ofObject(ids, 'Contact');
      const isWithContacts = shapes.some(({ object }) => object === 'Contact');
      for (const shape of shapes) {
        found.push(...(await find(shape, 'MasterRecordId', ofObject(ids, shape.object))));
        if (shape.object === 'Lead' && isWithContacts)
          found.push(...(await find(shape, 'ConvertedContactId', contacts)));
      }
      return found;
    },
  };
}
