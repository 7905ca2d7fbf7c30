/**
 * A relation page by page, in the order of its key, or of changes and then the key.
 *
 * A page begins with what is equal to the last row of the one before, and that row is left out: a
 * database may take values for equal that are not, by case or spaces, and its page ends between
 * them. Where a whole page has been seen, it goes on behind it. Rows without a key come last, as
 * many as one page holds.
 */
import { type Relation, statementFor } from './relation-query.ts';
import type { Raw, Session } from './drivers/read-session.ts';

export interface Paged {
  session: Session;
  relation: Relation;
  pageSize: number;
  /** Only what has changed since; undefined: everything. */
  since: Raw | undefined;
}

/** How a page begins: with what is equal to the last row, or behind that. */
type From = '>=' | '>';

/** How many there are, to be held against what was read. */
export interface Count {
  rows: number;
  /** Rows with a key, rows with an id, and how many different ids they have. */
  keys: number;
  ids: number;
  different: number;
}

/** Where the id is the key it counts nothing twice: that shows in its order. */
export async function countOf({ session, relation, since }: Paged): Promise<Count> {
  const { from, at } = relation;
  const key = nameAt(session, relation, at.key);
  const id = nameAt(session, relation, at.id);
  const counted = ['count(*)', `count(${key})`];
  if (at.id !== at.key) counted.push(`count(${id})`, `count(distinct ${session.exact(id)})`);
  const statement = statementFor(session);
  const where =
    since === undefined ? '' : `where ${changed({ session, relation }, since, statement)}`;
  const text = `select ${counted.join(', ')} from ${from} ${where}`;
  const [row = []] = await session.rows(text, statement.values);
  const [rows = 0, keys = 0, ids = keys, different = ids] = row.map(Number);
  return { rows, keys, ids, different };
}

/** Ends with a page that is not full. */
export async function* pagesOf(paged: Paged): AsyncGenerator<Raw[][], undefined> {
  const { session, pageSize } = paged;
  const limit = pageSize + 1;
  let seen = new Set<string>();
  let last: Raw[] | undefined;
  for (let from: From = '>='; ;) {
    const { text, values } = pageAfter(paged, { last, from, limit });
    const rows = await session.rows(text, values);
    const marks = rows.map((row) => row.join('\0'));
    const fresh = rows.filter((_, at) => !seen.has(marks[at] ?? ''));
    if (fresh.length > 0) yield fresh;
    if (rows.length < limit) return undefined;
    from = fresh.length > 0 ? '>=' : '>';
    seen = new Set(marks);
    last = rows.at(-1);
  }
}

/** Those without a key, which have no place in the order. */
export async function keylessOf(paged: Paged): Promise<Raw[][]> {
  const { session, relation, since, pageSize } = paged;
  const statement = statementFor(session);
  const conditions = [`${nameAt(session, relation, relation.at.key)} is null`];
  if (since !== undefined) conditions.push(changed(paged, since, statement));
  const text = `${selectOf(paged)} where ${conditions.join(' and ')} limit ${pageSize}`;
  return session.rows(text, statement.values);
}

/** The rows whose column is equal to one of these values. */
export async function rowsWith(
  { session, relation }: Pick<Paged, 'session' | 'relation'>,
  at: number,
  values: readonly Raw[],
): Promise<Raw[][]> {
  const column = columnAt(relation, at);
  const statement = statementFor(session);
  const places = values.map((value) => statement.bind(value, column));
  const where = `${session.quote(column.name)} in (${places.join(', ')})`;
  const text = `${selectOf({ session, relation })} where ${where} limit ${MOST_EQUAL}`;
  return session.rows(text, statement.values);
}

/** More are not told apart by case or spaces. */
const MOST_EQUAL = 100;

interface After {
  last: readonly Raw[] | undefined;
  from: From;
  limit: number;
}

function pageAfter(paged: Paged, { last, from, limit }: After) {
  const { session, relation, since } = paged;
  const { at } = relation;
  const key = nameAt(session, relation, at.key);
  const statement = statementFor(session);
  const upTo = (place: number) => statement.bind(last?.[place] ?? null, columnAt(relation, place));
  const conditions = [`${key} is not null`];
  if (since === undefined || at.updatedAt === undefined) {
    if (last) conditions.push(`${key} ${from} ${upTo(at.key)}`);
    const text = `${selectOf(paged)} where ${conditions.join(' and ')} order by ${key} limit ${limit}`;
    return { text, values: statement.values };
  }
  const time = nameAt(session, relation, at.updatedAt);
  if (last) {
    conditions.push(`${time} >= ${upTo(at.updatedAt)}`);
    conditions.push(`(${time} > ${upTo(at.updatedAt)} or ${key} ${from} ${upTo(at.key)})`);
  } else conditions.push(changed(paged, since, statement));
  const order = `order by ${time}, ${key} limit ${limit}`;
  return {
    text: `${selectOf(paged)} where ${conditions.join(' and ')} ${order}`,
    values: statement.values,
  };
}

function changed(
  { session, relation }: Pick<Paged, 'session' | 'relation'>,
  since: Raw,
  statement: ReturnType<typeof statementFor>,
): string {
  const column = columnAt(relation, relation.at.updatedAt ?? -1);
  return `${session.quote(column.name)} >= ${statement.bind(since, column)}`;
}

function selectOf({ session, relation }: Pick<Paged, 'session' | 'relation'>): string {
  const names = relation.columns.map(({ name }) => session.quote(name));
  return `select ${names.join(', ')} from ${relation.from}`;
}

function nameAt(session: Session, relation: Relation, at: number): string {
  return session.quote(columnAt(relation, at).name);
}

function columnAt({ columns }: Relation, at: number) {
  const column = columns[at];
  if (!column) throw new Error('a column is read that was not chosen');
  return column;
}
