import { Invalid } from '../../domain/errors.ts';
import { smallText } from '../shared/files/file-origin.ts';
import { placeOf, type SqlOptions } from './options.ts';
import type { Mode, Opening, Session } from './drivers/database-session.ts';
import { openMysql } from './drivers/mysql.ts';
import { openPostgres } from './drivers/postgres.ts';
import { openSqlite } from './drivers/sqlite.ts';
import { jsonRecords } from '../shared/record-fields.ts';
import type { Source } from '../source.ts';
import { rowReader } from './relation-pages.ts';

type Around = Omit<Opening, 'timeoutMs'>;

export type Reach = Pick<SqlOptions, 'url' | 'password' | 'ca' | 'allowPlain' | 'timeoutMs'>;

/** Opens a session, encrypted unless it stays on this machine or the options allow plain. */
export async function openSession(
  { url, password, ca, allowPlain, timeoutMs }: Reach,
  { signal, clock }: Around,
  mode: Mode = 'read',
): Promise<Session> {
  signal.throwIfAborted();
  const opening = { signal, clock, timeoutMs };
  const place = placeOf(url);
  if ('reason' in place) {
    const { reason, fix } = place;
    throw new Invalid(`url of the source ${reason}`, { fix, code: 'database-access' });
  }
  if (place.system === 'sqlite') return openSqlite(place.path, opening, mode);
  const isPlain = ca === undefined && !place.encrypted && (place.local || allowPlain);
  const authority = ca === undefined ? {} : { ca: smallText(ca) };
  const tls = isPlain ? undefined : authority;
  const access = { ...place, password: password ?? place.password, tls };
  return place.system === 'postgres'
    ? openPostgres(access, opening, mode)
    : openMysql(access, opening, mode);
}

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
): Source {
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
  const session = await openSession(reach, around);
  try {
    return await work(session);
  } finally {
    await session.close();
  }
}
