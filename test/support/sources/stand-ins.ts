/** Databases that a source of type sql is tried on: SQLite always, others where they are had. */
import Database from 'better-sqlite3';
import { createConnection } from 'mysql2/promise';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterAll } from 'vitest';
import { systemClock } from '../../../src/http/system-clock.ts';
import type { Source } from '../../../src/sources/source.ts';
import { type SqlOptions, sqlOptions } from '../../../src/sources/sql/options.ts';
import { sqlSource } from '../../../src/sources/sql/sql-source.ts';
import { anyMariadb } from '../mariadb.ts';
import { anyPostgres } from '../postgres.ts';
import { scratch, virtualClock } from './source-reading.ts';
import { drawn, playsAll, playsDraw } from '../extent.ts';

/** A connection of somebody else, who may write. */
export interface Writer {
  run(sql: string): Promise<void>;
  close(): Promise<void>;
}

export interface Stand {
  name: 'PostgreSQL' | 'MariaDB' | 'SQLite';
  url: string;
  ca: string | undefined;
  run(sql: string): Promise<void>;
  connect(): Promise<Writer>;
  /** Types of columns. */
  moment: string;
  text: string;
  /** A text that is compared without regard to case. */
  anyCase: string;
  /** The time in SQL: now, and so many seconds before. */
  ago(seconds: number): string;
}

async function sqliteStand(): Promise<Stand> {
  const path = join(await scratch(), 'crm.sqlite');
  const connect = async (): Promise<Writer> => {
    const db = new Database(path);
    db.pragma('journal_mode = wal');
    return { run: async (sql) => void db.exec(sql), close: async () => void db.close() };
  };
  return {
    name: 'SQLite',
    url: `sqlite:${path}`,
    ca: undefined,
    run: once(connect),
    connect,
    moment: 'text',
    text: 'text',
    anyCase: 'text collate nocase',
    ago: (seconds) => `strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-${seconds} seconds')`,
  };
}

async function postgresStand(): Promise<Stand | undefined> {
  const found = await anyPostgres();
  if (!found) return told('PostgreSQL', 'postgresql', 'TEST_POSTGRES_URL');
  afterAll(found.close);
  await found.run(
    "create collation any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
  );
  const connect = async (): Promise<Writer> => {
    const client = new Client({ connectionString: found.url });
    client.on('error', () => undefined);
    await client.connect();
    return { run: async (sql) => void (await client.query(sql)), close: async () => client.end() };
  };
  return {
    ...found,
    name: 'PostgreSQL',
    connect,
    moment: 'timestamptz',
    text: 'text',
    anyCase: 'text collate any_case',
    ago: (seconds) => `now() - interval '${seconds} seconds'`,
  };
}

async function mariadbStand(): Promise<Stand | undefined> {
  const found = await anyMariadb();
  if (!found) return told('MariaDB', 'mariadb-server', 'TEST_MARIADB_URL');
  afterAll(found.close);
  const connect = async (): Promise<Writer> => {
    const connection = await createConnection({ uri: found.url, multipleStatements: true });
    connection.on('error', () => undefined);
    const close = async () => connection.end().catch(() => undefined);
    return { run: async (sql) => void (await connection.query(sql)), close };
  };
  return {
    ...found,
    name: 'MariaDB',
    connect,
    moment: 'timestamp(6) null',
    text: 'varchar(100)',
    anyCase: 'varchar(100) collate utf8mb4_general_ci',
    ago: (seconds) => `now(6) - interval ${seconds} second`,
  };
}

/** All that are had; in `npm test` SQLite, which needs no server, and in `npm run test:ci` one. */
export async function stands(): Promise<[string, Stand][]> {
  const servers = [postgresStand, mariadbStand];
  const few = playsDraw ? drawn(servers, 1) : [sqliteStand];
  const makers = playsAll ? [sqliteStand, ...servers] : few;
  const all = await Promise.all(makers.map(async (make) => make()));
  return all.flatMap((stand): [string, Stand][] => (stand ? [[stand.name, stand]] : []));
}

function told(name: string, packaged: string, variable: string): undefined {
  // oxlint-disable-next-line no-console -- nobody would notice what is missing
  console.warn(
    `no ${name} for the tests, they are skipped: install ${packaged}, or set ${variable}`,
  );
  return undefined;
}

function once(connect: () => Promise<Writer>) {
  return async (sql: string): Promise<void> => {
    const writer = await connect();
    try {
      await writer.run(sql);
    } finally {
      await writer.close();
    }
  };
}

/** The options of a configuration, and what stands there instead of being there. */
export type Given = Partial<Record<keyof SqlOptions, unknown>>;

/** The source of options as they stand in a configuration; its clock is not the database's. */
export function sourceOn({ url }: Pick<Stand, 'url'>, given: Given, id = 'id'): Required<Source> {
  const source = sqlSource(sqlOptions.parse({ type: 'sql', url, ...given }), {
    clock: { ...virtualClock(), sleep: systemClock.sleep },
    id,
  });
  const none = async function* () {
    yield await Promise.reject(new Error('there are no changes without updatedAt'));
    return 'lost' as const;
  };
  const lacks = { changes: none, one: async () => undefined, still: () => false };
  return { ...lacks, ...source };
}

/** As long as a test file runs. */
let tables = 0;

/** A table of its own, with these columns and rows. */
export async function tableOn(
  stand: Stand,
  columns: string,
  rows: readonly string[] = [],
): Promise<string> {
  tables += 1;
  const name = `people_${tables}`;
  const insert =
    rows.length > 0
      ? `; insert into ${name} values ${rows.map((row) => `(${row})`).join(', ')}`
      : '';
  await stand.run(`create table ${name} (${columns})${insert}`);
  return name;
}
