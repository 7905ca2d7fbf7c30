/**
 * PostgreSQL by `pg`. Settings apply only to the transaction, so that a pool (PgBouncer) does not
 * pass them on. Values come in the database's own notation: no driver rounds a number or a time.
 */
import { z } from 'zod';
import {
  BRIEF_MS,
  createServerConnection,
  type Holds,
  type Mode,
  type Opening,
  patienceOf,
  type Raw,
  type ServerAccess,
  type Session,
} from './database-session.ts';

const kinds: Record<number, Holds> = {
  16: 'boolean',
  17: 'bytes',
  20: 'integer',
  21: 'integer',
  23: 'integer',
  26: 'integer',
  114: 'json',
  700: 'float',
  701: 'float',
  1082: 'day',
  1114: 'time',
  1184: 'instant',
  1700: 'decimal',
  3802: 'json',
};
/** Lists of texts, whole numbers, decimals and UUIDs, which are read as JSON. */
const lists = new Set([1002, 1003, 1005, 1007, 1009, 1014, 1015, 1016, 1231, 2951]);
const TEXTS = 1009;

const started = z.tuple([z.string(), z.string()]);
const raws = z.array(z.string().nullable());
const MOST_MS = 10_000;
/** The longest pause of a reader between two pages. After that, the server ends the transaction. */
const IDLE = '15min';

/** Opens a session to read or write. Throws Invalid, Unavailable, and the signal's reason. */
export async function openPostgres(
  access: ServerAccess,
  opening: Opening,
  mode: Mode,
): Promise<Session> {
  const name = `${access.host}/${access.database}`;
  const { timeoutMs } = opening;
  const { Client: Connection, TypeOverrides } = await import('pg');
  // The parser that the driver has for lists of texts; its type is wrong.
  const parse = new TypeOverrides().getTypeParser(TEXTS);
  const parseList = (text: string): unknown => Reflect.apply(parse, undefined, [text]);
  const line = createServerConnection(name, opening);
  // Environment variables (PGPASSWORD, PGSSLMODE and others) do not affect the configuration.
  const { host, port, user, password = '', database, tls } = access;
  const config = {
    host,
    port,
    user,
    password: () => password,
    database,
    ssl: tls ? { ...tls, rejectUnauthorized: true } : false,
    application_name: 'crm-mirror',
    connectionTimeoutMillis: Math.min(timeoutMs, MOST_MS),
    query_timeout: patienceOf(timeoutMs),
  };
  const client = new Connection({ ...config, stream: () => line.socket });
  // An error between two statements is reported by the next one.
  client.on('error', () => undefined);
  const close = () => line.close(() => client.end());
  const command = (text: string) => line.ask(async () => void (await client.query(text)));
  const query = (text: string, values: readonly Raw[]) =>
    line.ask(async () => client.query(configured(text, values, parseList)));
  const rows = async (text: string, values: readonly Raw[]) =>
    (await query(text, values)).rows.map((row) => raws.parse(row));
  try {
    await line.ask(() => client.connect());
    const isReader = mode === 'read';
    await command(isReader ? 'begin isolation level repeatable read, read only' : 'begin');
    await command(settings(timeoutMs));
    const [row] = await rows(CLOCK, []);
    const [backend, now] = started.parse(row);
    line.onAbort(async () => {
      // The first connection is busy.
      const other = new Connection({ ...config, connectionTimeoutMillis: BRIEF_MS });
      other.on('error', () => undefined);
      try {
        await other.connect();
        await other.query('select pg_cancel_backend($1)', [backend]);
      } finally {
        await other.end();
      }
    });
    return {
      name,
      now: Math.floor(Number(now)),
      quote: (part) => `"${part.replaceAll('"', '""')}"`,
      place: (number) => `$${number}`,
      time: (at) => new Date(at).toISOString(),
      exact: (quoted) => quoted,
      meant(text, { holds }) {
        if (text.includes('\0')) return [];
        if (holds === 'integer') return /^-?\d{1,40}$/.test(text) ? [text] : [];
        return [holds === 'bytes' ? `\\x${text}` : text];
      },
      async columns(relation) {
        const { fields } = await query(`select * from ${relation} limit 0`, []);
        return fields.map((field) => ({
          name: field.name,
          holds: kinds[field.dataTypeID] ?? (lists.has(field.dataTypeID) ? 'json' : 'text'),
        }));
      },
      rows,
      run: async (statement, values) => (await query(statement, values)).rowCount ?? 0,
      command,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

const CLOCK = 'select pg_backend_pid(), extract(epoch from now()) * 1000';

function settings(timeoutMs: number): string {
  return [
    `set local statement_timeout = ${timeoutMs}`,
    `set local idle_in_transaction_session_timeout = '${IDLE}'`,
    "set local timezone = 'UTC'",
    "set local datestyle = 'ISO'",
    "set local intervalstyle = 'iso_8601'",
    "set local bytea_output = 'hex'",
    // Otherwise, one text that is not UTF-8 ends the whole statement.
    "select set_config('client_encoding', 'SQL_ASCII', true) " +
      "where current_setting('server_encoding') = 'SQL_ASCII'",
  ].join('; ');
}

function configured(text: string, values: readonly Raw[], parseList: (text: string) => unknown) {
  return {
    text,
    values: [...values],
    rowMode: 'array' as const,
    types: {
      getTypeParser: (type: number) => (value: string) =>
        lists.has(type) ? JSON.stringify(parseList(value)) : value,
    },
    // This protocol runs only one statement, whatever the text contains.
    queryMode: 'extended',
  };
}
