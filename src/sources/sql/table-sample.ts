/** Lists the tables of a database and reads the first rows of one, without writing. */
import { jsonRecords } from '../shared/json-records.ts';
import type { SourceRecord } from '../source.ts';
import { placeOf } from './drivers/database-address.ts';
import type { Session } from './drivers/database-session.ts';
import { type Around, open, type Reach } from './open-session.ts';
import { rowReader } from './row-record.ts';
import Database from 'better-sqlite3';
import { Invalid } from '../../domain/errors.ts';

/** Selects the schema of each table and view, null for the usual one, and its name. */
const tables = {
  sqlite: `select null, name from sqlite_schema
    where type in ('table', 'view') and name not like 'sqlite_%' order by 2`,
  mysql: `select null, table_name from information_schema.tables
    where table_schema = database() order by 2`,
  postgres: `select table_schema, table_name from information_schema.tables
    where table_schema not in ('pg_catalog', 'information_schema') order by 1, 2`,
};

/** Returns the names of the tables and views, with their schema unless it is the usual one. */
export async function listTables(reach: Reach, around: Around): Promise<string[]> {
  const place = placeOf(reach.url);
  const system = 'system' in place ? place.system : 'sqlite';
  return withSession(reach, around, async (session) => {
    const rows = await session.rows(tables[system], []);
    return rows.map(([schema, name]) => {
      const isUsual = schema === null || String(schema) === 'public';
      return isUsual ? String(name) : `${String(schema)}.${String(name)}`;
    });
  });
}

export async function sampleTable(
  reach: Reach,
  { table, most }: { table: string; most: number },
  around: Around,
): Promise<SourceRecord[]> {
  return withSession(reach, around, async (session) => {
    const from = table.split('.').map(session.quote).join('.');
    const columns = await session.columns(from);
    const relation = { from, columns, at: { key: 0, id: 0, updatedAt: undefined } };
    const read = rowReader(relation, jsonRecords([]), undefined);
    const names = columns.map(({ name }) => session.quote(name)).join(', ');
    const rows = await session.rows(`select ${names} from ${from} limit ${most}`, []);
    return rows.map((row, at) => read(row, `row ${at + 1}`).record);
  });
}

async function withSession<T>(
  reach: Reach,
  around: Around,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  const session = await open(reach, around);
  try {
    return await work(session);
  } finally {
    await session.close();
  }
}

const mostRows = 100_000;

type Row = Record<string, unknown>;

const isAddress = (value: unknown): boolean =>
  typeof value === 'string' && /^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(value.trim());

/**
 * Returns the table of a SQLite file with the most email addresses, and at most 100,000 of its
 * rows. Throws Invalid if no table holds an address.
 */
export function sampleSqlite(path: string) {
  const db = openFile(path);
  try {
    const names = db
      .prepare<[], { name: string }>(
        `select name from sqlite_schema where type in ('table', 'view') and name not like 'sqlite_%'`,
      )
      .all();
    const samples = names.map(({ name: table }) => {
      const quoted = `"${table.replaceAll('"', '""')}"`;
      const select = db.prepare<[number], Row>(`select * from ${quoted} limit ?`);
      const rows = select.all(mostRows).map((value, at) => ({ where: `row ${at + 1}`, value }));
      const withAddress = rows.filter(({ value }) => Object.values(value).some(isAddress));
      return { sample: { table, rows }, addresses: withAddress.length };
    });
    const [best] = samples.toSorted((a, b) => b.addresses - a.addresses);
    if (best && best.addresses > 0) return best.sample;
    throw new Invalid(`${path}: no table holds email addresses`, { fix: 'name another file' });
  } finally {
    db.close();
  }
}

function openFile(path: string): Database.Database {
  try {
    const db = new Database(path, { readonly: true, fileMustExist: true });
    db.prepare('select count(*) from sqlite_schema').get();
    return db;
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    throw new Invalid(`${path}: the file cannot be read as a SQLite database`, {
      fix: 'name the right file, and make it readable',
    });
  }
}
