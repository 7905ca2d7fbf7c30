/**
 * MySQL and MariaDB by `mysql2`. Values with more digits than a double, and times, are texts (UTC).
 */
import type { Connection, ConnectionOptions } from 'mysql2/promise';
import { z } from 'zod';
import {
  BRIEF_MS,
  createServerConnection,
  patienceOf,
  type ServerAccess,
  bytesOf,
  type Column,
  type Holds,
  type Mode,
  type Opening,
  type Raw,
  rawRows,
  type Session,
} from './database-session.ts';

/** Maps the protocol's type number to the kind of values. Other types are text or bytes. */
const kinds: Record<number, Holds> = {
  0: 'decimal',
  1: 'integer',
  2: 'integer',
  3: 'integer',
  4: 'float',
  5: 'float',
  7: 'instant',
  8: 'integer',
  9: 'integer',
  10: 'day',
  12: 'time',
  13: 'integer',
  14: 'day',
  16: 'bits',
  245: 'json',
  246: 'decimal',
};
const BINARY = 63;
const UNSIGNED = 32;
const MOST_MS = 10_000;

const started = z.tuple([z.coerce.string(), z.coerce.number(), z.string()]);
const fields = z.array(
  z.object({
    name: z.string(),
    columnType: z.number(),
    characterSet: z.number(),
    flags: z.number(),
    decimals: z.number(),
    extendedFormat: z.string().nullish(),
  }),
);

/** Opens a session to read or write. Throws Invalid, Unavailable, and the signal's reason. */
export async function openMysql(
  access: ServerAccess,
  opening: Opening,
  mode: Mode,
): Promise<Session> {
  const name = `${access.host}/${access.database}`;
  const { host, port } = access;
  const { timeoutMs } = opening;
  const { createConnection } = await import('mysql2/promise');
  const line = createServerConnection(name, opening);
  const { socket } = line;
  const config = configOf(access, timeoutMs);
  const stream = () => (host.startsWith('/') ? socket.connect(host) : socket.connect(port, host));
  let connection: Connection | undefined;
  const close = () => line.close(async () => connection?.end());
  try {
    const open = await line.ask(() => createConnection({ ...config, stream }));
    connection = open;
    open.on('error', () => undefined);
    const timeout = patienceOf(timeoutMs);
    const execute = (sql: string, values: readonly Raw[]) =>
      line.ask(() => open.execute({ sql, rowsAsArray: true, timeout }, [...values]));
    const rows = async (sql: string, values: readonly Raw[]) => {
      const [found] = await execute(sql, values);
      return rawRows.parse(found);
    };
    const command = (sql: string) =>
      line.ask(async () => void (await open.query({ sql, timeout })));
    const [row] = await rows(CLOCK, []);
    const [thread, now, version] = started.parse(row);
    const brief = { ...config, connectTimeout: BRIEF_MS };
    line.onAbort(async () => {
      const other = await createConnection(brief);
      other.on('error', () => undefined);
      try {
        await other.query(`kill query ${Number(thread)}`);
      } finally {
        await other.end();
      }
    });
    await command("set session time_zone = '+00:00'");
    const begin =
      mode === 'read'
        ? [
            'set session sql_select_limit = default',
            /mariadb/i.test(version)
              ? `set session max_statement_time = ${timeoutMs / 1000}`
              : `set session max_execution_time = ${timeoutMs}`,
            'set session transaction isolation level repeatable read',
            'set session transaction read only',
            'start transaction with consistent snapshot, read only',
          ]
        : ['start transaction'];
    for (const statement of begin) await command(statement);
    return {
      name,
      now: Math.floor(now * 1000),
      quote: (part) => `\`${part.replaceAll('`', '``')}\``,
      place: (_, column) => (column?.type === undefined ? '?' : `cast(? as ${column.type})`),
      time: (at) => new Date(at).toISOString().replace('T', ' ').replace('Z', ''),
      exact: (quoted) => `cast(${quoted} as binary)`,
      meant(text, { holds }) {
        if (holds === 'integer') return /^-?\d{1,20}$/.test(text) ? [text] : [];
        if (holds === 'decimal') return /^-?\d{1,60}(\.\d+)?$/.test(text) ? [text] : [];
        if (holds === 'float') return /^-?\d+(\.\d+)?$/.test(text) ? [Number(text)] : [];
        return holds === 'bytes' ? [bytesOf(text) ?? []].flat() : [text];
      },
      async columns(relation) {
        const [, found] = await execute(`select * from ${relation} limit 0`, []);
        return fields.parse(found).map(readColumn);
      },
      rows,
      async run(sql, values) {
        const [found] = await execute(sql, values);
        return Array.isArray(found) ? found.length : found.affectedRows;
      },
      command,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

const CLOCK = 'select connection_id(), unix_timestamp(now(3)), version()';

function configOf(access: ServerAccess, timeoutMs: number): ConnectionOptions {
  const { host, port, user, password = '', database, tls } = access;
  return {
    ...(host.startsWith('/') ? { socketPath: host } : { host, port }),
    user,
    password,
    database,
    ...(tls && { ssl: { ...tls, rejectUnauthorized: true, verifyIdentity: true } }),
    charset: 'utf8mb4',
    connectTimeout: Math.min(timeoutMs, MOST_MS),
    dateStrings: true,
    supportBigNumbers: true,
    bigNumberStrings: true,
    jsonStrings: true,
    flags: ['-LOCAL_FILES'],
  };
}

/** Returns a column, with its cast: compared as doubles, two different ids could be equal. */
function readColumn(field: z.infer<typeof fields>[number]): Column {
  const { name, columnType, characterSet, flags, decimals, extendedFormat } = field;
  const plain = characterSet === BINARY ? 'bytes' : 'text';
  const holds = extendedFormat === 'json' ? 'json' : (kinds[columnType] ?? plain);
  if (holds === 'integer') {
    return { name, holds, type: (flags & UNSIGNED) === 0 ? 'signed' : 'unsigned' };
  }
  if (holds === 'decimal') return { name, holds, type: `decimal(65, ${Math.min(decimals, 30)})` };
  if (holds === 'instant' || holds === 'time') return { name, holds, type: 'datetime(6)' };
  return holds === 'day' ? { name, holds, type: 'date' } : { name, holds };
}
