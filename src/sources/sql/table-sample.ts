/** Lists the tables of a database and reads the first rows of one, without writing. */
import { jsonRecords } from '../shared/json-records.ts';
import type { Source } from '../source.ts';
import { placeOf } from './drivers/database-address.ts';
import type { Session } from './drivers/database-session.ts';
import { type Around, open, type Reach } from './open-session.ts';
import { rowReader } from './row-record.ts';

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

const isAddress = (value: unknown): boolean =>
  typeof value === 'string' && /^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(value.trim());

const mostCompared = 100_000;

/** Returns the one of these tables with the most email addresses; undefined: none holds any. */
export async function tableWithMost(
  reach: Reach,
  names: readonly string[],
  around: Around,
): Promise<string | undefined> {
  return withSession(reach, around, async (session) => {
    let [best, most]: [string | undefined, number] = [undefined, 0];
    for (const name of names) {
      const statement = `select * from ${session.quote(name)} limit ${mostCompared}`;
      const rows = await session.rows(statement, []);
      const addresses = rows.filter((row) => row.some(isAddress)).length;
      if (addresses > most) [best, most] = [name, addresses];
    }
    return best;
  });
}

/** Returns the source of the first rows of a table, which are complete if they are fewer. */
export function firstRows(
  reach: Reach,
  { table, most }: { table: string; most: number },
  around: Around,
): Pick<Source, 'read'> {
  return {
    async *read() {
      yield await withSession(reach, around, async (session) => {
        const from = table.split('.').map(session.quote).join('.');
        const columns = await session.columns(from);
        const relation = { from, columns, at: { key: 0, id: 0, updatedAt: undefined } };
        const read = rowReader(relation, jsonRecords([]), undefined);
        const names = columns.map(({ name }) => session.quote(name)).join(', ');
        const rows = await session.rows(`select ${names} from ${from} limit ${most}`, []);
        return rows.map((row, at) => read(row, `row ${at + 1}`).record);
      });
      return { complete: true, reading: '' };
    },
  };
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
