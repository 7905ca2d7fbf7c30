/**
 * Reads columns of a table or query page by page, in the order of its key, or of the change time
 * and then the key. A page begins with the rows equal to the last one before, and leaves out those
 * already yielded: a database may treat different values as equal, by case or spaces, and a page
 * may end between them. Rows without a key come last, at most one page of them.
 */
import { Invalid } from '../../domain/errors.ts';
import { isLossy, textOf } from '../../domain/values/record-field.ts';
import { listed, quoted, hintsFor, type JsonRecords } from '../shared/record-fields.ts';
import type { SqlOptions } from './options.ts';
import type { Column, Raw, Session } from './drivers/database-session.ts';
import type { SourceRecord } from '../source.ts';
import { parseJson } from '../../domain/stored-json.ts';

interface Relation {
  from: string;
  /** Every column to read; `at` holds the positions of some of them. */
  columns: Column[];
  at: { key: number; id: number; updatedAt: number | undefined };
}

/**
 * Returns the relation with these fields; one may be a dotted path into a JSON column. `id` is the
 * column of a record's id. Throws Invalid if a column does not exist.
 */
export async function describeRelation(
  session: Session,
  { table = '', query, key: keyColumn, updatedAt }: SqlOptions,
  fields: readonly string[],
  id: string,
): Promise<Relation> {
  const from =
    query === undefined
      ? table.split('.').map(session.quote).join('.')
      : // A comment at the end of the query would swallow the text after it.
        `(\n${query.replace(/[\s;]+$/, '')}\n) ${session.quote('crm')}`;
  const all = await session.columns(from);
  const key = keyColumn ?? id;
  const named = [...fields, id, key, ...(updatedAt === undefined ? [] : [updatedAt])];
  const found = named.map((field) => {
    const parts = field.split('.');
    const names = parts.map((_, at) => parts.slice(0, parts.length - at).join('.'));
    const [exact] = names;
    const mayNest = ({ holds, type = '' }: Column) =>
      holds === 'json' || (holds === 'any' && /^jsonb?$/i.test(type));
    return names
      .map((name) => all.find((column) => [name, name.replace(/\[\]$/, '')].includes(column.name)))
      .find((column) => column && (column.name === exact || mayNest(column)));
  });
  const missing = named.filter((_, at) => found[at] === undefined);
  if (missing.length > 0) {
    const asked = [...new Set(missing)];
    const names = all.map(({ name }) => name);
    const reasons = [
      `there ${missing.length === 1 ? 'is no column' : 'are no columns'} ${listed(asked)}`,
      `columns found: ${listed(names)}`,
      ...hintsFor(asked, names),
      'correct the configuration or the query',
    ];
    throw new Invalid(`${session.name}: ${reasons.join('; ')}`);
  }
  const columns = [...new Set(found.filter((column) => column !== undefined))];
  for (const { name } of columns) {
    if (all.filter((column) => column.name === name).length === 1) continue;
    const twice = `several columns are named ${quoted(name)}`;
    throw new Invalid(`${session.name}: ${twice}`, { fix: 'give each a name of its own in query' });
  }
  const placeOf = (name: string) => {
    const at = columns.findIndex((column) => column.name === name);
    if (at >= 0) return at;
    const what = `${quoted(name)} is a part of a column, where a whole one is needed`;
    throw new Invalid(`${session.name}: ${what}`, { fix: 'give it a name of its own in query' });
  };
  return {
    from,
    columns,
    at: {
      key: placeOf(key),
      id: placeOf(id),
      updatedAt: updatedAt === undefined ? undefined : placeOf(updatedAt),
    },
  };
}

function createStatement(session: Session, { from, columns, at: places }: Relation) {
  const values: Raw[] = [];
  const columnAt = (at: number): Column => {
    const column = columns[at];
    if (!column) throw new Error('a column is read that was not chosen');
    return column;
  };
  const nameAt = (at: number) => session.quote(columnAt(at).name);
  const bindAt = (at: number, value: Raw) => session.place(values.push(value), columnAt(at));
  return {
    nameAt,
    bindAt,
    select: `select ${columns.map(({ name }) => session.quote(name)).join(', ')} from ${from}`,
    changedSince: (since: Raw) =>
      `${nameAt(places.updatedAt ?? -1)} >= ${bindAt(places.updatedAt ?? -1, since)}`,
    rows: async (text: string) => session.rows(text, values),
  };
}

interface Paged {
  session: Session;
  relation: Relation;
  pageSize: number;
  /** The value since which changes are read; undefined reads everything. */
  since: Raw | undefined;
}

/** The database's own counts, to compare with what was read. */
export interface Count {
  rows: number;
  keys: number;
  ids: number;
  different: number;
}

/** Counts the rows. If the id is the key, duplicates are not counted: the order reveals them. */
export async function countRows({ session, relation, since }: Paged): Promise<Count> {
  const { from, at } = relation;
  const { nameAt, changedSince, rows: read } = createStatement(session, relation);
  const [key, id] = [nameAt(at.key), nameAt(at.id)];
  const counted = ['count(*)', `count(${key})`];
  if (at.id !== at.key) counted.push(`count(${id})`, `count(distinct ${session.exact(id)})`);
  const where = since === undefined ? '' : `where ${changedSince(since)}`;
  const [row = []] = await read(`select ${counted.join(', ')} from ${from} ${where}`);
  const [rows = 0, keys = 0, ids = keys, different = ids] = row.map(Number);
  return { rows, keys, ids, different };
}

/** Yields the pages. The last one is not full. */
export async function* readPages(paged: Paged): AsyncGenerator<Raw[][], undefined> {
  const { session, relation, pageSize } = paged;
  const limit = pageSize + 1;
  let seen = new Set<string>();
  let last: Raw[] | undefined;
  for (let from: '>=' | '>' = '>='; ;) {
    const rows = await readPage(paged, last, from, limit);
    const marks = rows.map((row) => row.join('\0'));
    const fresh = rows.filter((_, at) => !seen.has(marks[at] ?? ''));
    if (fresh.length > 0) yield fresh;
    if (rows.length < limit) return undefined;
    from = fresh.length > 0 ? '>=' : '>';
    seen = new Set(marks);
    last = rows.at(-1);
    if (isLossy(last?.[relation.at.key])) {
      const fix = 'name as key a column of numbers or plain letters';
      throw new Invalid(`${session.name}: the key of a row is not UTF-8`, { fix });
    }
  }
}

/** Returns the rows without a key, which have no position in the order. */
export async function keylessRows(paged: Paged): Promise<Raw[][]> {
  const { session, relation, since, pageSize } = paged;
  const { nameAt, changedSince, select, rows } = createStatement(session, relation);
  const conditions = [`${nameAt(relation.at.key)} is null`];
  if (since !== undefined) conditions.push(changedSince(since));
  return rows(`${select} where ${conditions.join(' and ')} limit ${pageSize}`);
}

/** Limits how many values can be equal by case or spaces; in practice there are never more. */
const MOST_EQUAL = 100;

/** Returns the rows whose id equals one of these values. */
export async function rowsWith(
  session: Session,
  relation: Relation,
  values: readonly Raw[],
): Promise<Raw[][]> {
  const { id } = relation.at;
  const { nameAt, bindAt, select, rows } = createStatement(session, relation);
  const places = values.map((value) => bindAt(id, value));
  return rows(`${select} where ${nameAt(id)} in (${places.join(', ')}) limit ${MOST_EQUAL}`);
}

/** Reads the page that begins with the rows equal to the last one (`>=`), or behind them. */
async function readPage(
  { session, relation, since }: Paged,
  last: readonly Raw[] | undefined,
  from: '>=' | '>',
  limit: number,
): Promise<Raw[][]> {
  const { at } = relation;
  const { nameAt, bindAt, changedSince, select, rows } = createStatement(session, relation);
  const key = nameAt(at.key);
  const upTo = (place: number) => bindAt(place, last?.[place] ?? null);
  const conditions = [`${key} is not null`];
  let order = key;
  if (since === undefined || at.updatedAt === undefined) {
    if (last) conditions.push(`${key} ${from} ${upTo(at.key)}`);
  } else {
    const time = nameAt(at.updatedAt);
    order = `${time}, ${key}`;
    if (last) {
      conditions.push(`${time} >= ${upTo(at.updatedAt)}`);
      conditions.push(`(${time} > ${upTo(at.updatedAt)} or ${key} ${from} ${upTo(at.key)})`);
    } else conditions.push(changedSince(since));
  }
  return rows(`${select} where ${conditions.join(' and ')} order by ${order} limit ${limit}`);
}

/** Creates the converter of rows into records, with key and id as texts, or ''. */
export function rowReader(
  { columns, at }: Relation,
  json: JsonRecords,
  zone: string | undefined,
): (row: readonly Raw[], where: string) => { record: SourceRecord; key: string; id: string } {
  const escaped = String.raw`\u0000`;
  /** Returns whether a value may contain a NUL, directly or within JSON. */
  const mayHoldNul = (raw: Raw) =>
    typeof raw === 'string' && (raw.includes('\0') || raw.includes(escaped));
  return (row, where) => {
    const values = columns.map((column, place) => {
      const raw = row[place] ?? null;
      const { holds, type = '' } = column;
      if (raw === null) return null;
      if (raw instanceof Uint8Array) {
        const digits = Buffer.from(raw).toString('hex');
        return holds === 'bits' ? String(BigInt(`0x0${digits}`)) : digits;
      }
      const text = String(raw);
      if (typeof raw !== 'string') return shortest(text);
      if (holds === 'any') {
        // SQLite only knows the declared type of a column.
        if (/^(datetime|timestamp)/i.test(type)) return moment(text, suffix(zone ?? 'UTC'));
        return /^jsonb?$/i.test(type) ? (parseJson(text) ?? text) : text;
      }
      if (holds === 'boolean') return text === 't' || text === 'true';
      if (holds === 'decimal' || holds === 'float') return shortest(text);
      if (holds === 'instant') return isNever(text) ? null : moment(text, 'Z');
      if (holds === 'time') return isNever(text) ? null : moment(text, suffix(zone));
      if (holds === 'day') return isNever(text) ? null : text;
      if (holds === 'json') return parseJson(text) ?? text;
      if (holds === 'bytes') return text.replace(/^\\x/, '');
      return text;
    });
    const value = Object.fromEntries(columns.map(({ name }, place) => [name, values[place]]));
    return {
      record: json.recordOf(value, where, row.some(mayHoldNul) ? escaped : ''),
      key: textOf(values[at.key]) ?? '',
      id: textOf(values[at.id]) ?? '',
    };
  };
}

const time = /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d(?:\.\d+)?)(Z|\+00(?::?00)?)?$/;

function moment(text: string, zone: string): string {
  const [, day, hours, own] = time.exec(text) ?? [];
  return day === undefined ? text : `${day}T${hours}${own === undefined ? zone : 'Z'}`;
}

const suffix = (zone: string | undefined): string => (zone === 'UTC' ? 'Z' : (zone ?? ''));

const isNever = (text: string): boolean => text.startsWith('0000-00-00') || text === 'infinity';

function shortest(text: string): string {
  return /^-?\d+\.\d+$/.test(text) ? text.replace(/\.?0+$/, '') : text;
}
