/**
 * A file of SQLite, opened read-only. One page at a time it holds up everything else here, and who
 * writes the file waits for the end of the reading, unless it keeps a write-ahead log (WAL).
 */
import Database from 'better-sqlite3';
import { z } from 'zod';
import { Invalid } from '../../model/errors.ts';
import { opened } from '../file.ts';
import { failureOf } from './failure.ts';
import { bytesOf, type Column, type Opening, type Raw, type Session } from './session.ts';
import type { Writing } from './writing.ts';

const RETRY_MS = 50;

const raws = z.array(
  z.array(z.union([z.string(), z.number(), z.bigint(), z.instanceof(Uint8Array), z.null()])),
);

export async function openSqlite(
  path: string,
  { signal, timeoutMs, clock }: Opening,
): Promise<Session> {
  await assertFile(path);
  const guarded = <T>(work: () => T): T => {
    signal.throwIfAborted();
    try {
      return work();
    } catch (error) {
      throw failureOf(error, path);
    }
  };
  const db = guarded(() => new Database(path, { readonly: true, fileMustExist: true, timeout: 0 }));
  const end = () => void db.close();
  signal.addEventListener('abort', end, { once: true });
  const close = async () => {
    signal.removeEventListener('abort', end);
    end();
  };
  const statements = new Map<string, Database.Statement>();
  const prepared = (text: string): Database.Statement => {
    const found = statements.get(text) ?? db.prepare(text).raw().safeIntegers();
    statements.set(text, found);
    return found;
  };
  try {
    guarded(() => db.pragma('query_only = on'));
    const waiting = { path, clock, signal, timeoutMs };
    const [[now] = []] = await unlocked(() => raws.parse(prepared(CLOCK).all()), waiting);
    guarded(() => db.exec('begin'));
    // What is read first fixes the state.
    await unlocked(() => db.prepare('select 1 from sqlite_schema').get(), waiting);
    return {
      name: path,
      now: Number(now) * 1000,
      quote: (part) => `"${part.replaceAll('"', '""')}"`,
      place: () => '?',
      exact: (quoted) => `cast(${quoted} as blob)`,
      meant,
      columns: async (relation) =>
        guarded(() => columnsOf(db.prepare(`select * from ${relation} limit 0`))),
      async rows(statement, values) {
        const rows = guarded(() => raws.parse(prepared(statement).all(...values)));
        // Others have their turn, who may want to abort this.
        await clock.sleep(0, signal);
        return rows;
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Whoever writes there is waited for; nobody else writes until this is over. */
export async function writeSqlite(
  path: string,
  { signal, timeoutMs, clock }: Opening,
): Promise<Writing> {
  await assertFile(path);
  const doing = async (work: () => void): Promise<void> => {
    signal.throwIfAborted();
    try {
      work();
    } catch (error) {
      throw failureOf(error, path);
    }
  };
  let db: Database.Database | undefined;
  await doing(() => void (db = new Database(path, { fileMustExist: true, timeout: 0 })));
  const close = async () => void db?.close();
  try {
    await unlocked(() => db?.exec('begin immediate'), { path, clock, signal, timeoutMs });
    return {
      place: () => '?',
      time: (at) => new Date(at).toISOString(),
      run: (text, values) =>
        doing(() => {
          const statement = db?.prepare(text);
          if (statement?.reader) statement.all(...values);
          else statement?.run(...values);
        }),
      command: (text) => doing(() => void db?.exec(text)),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

const CLOCK = "select unixepoch('now')";

interface Waiting extends Opening {
  path: string;
}

/** SQLite says of a file that cannot be opened only that. */
async function assertFile(path: string): Promise<void> {
  const handle = await opened(path);
  const stats = await handle.stat();
  await handle.close();
  if (stats.isFile()) return;
  throw new Invalid(
    `${path}: this is no regular file → name a file of SQLite in url of the source`,
  );
}

/** Once nobody writes there. */
async function unlocked<T>(look: () => T, { path, clock, signal, timeoutMs }: Waiting): Promise<T> {
  const until = clock.monotonic() + timeoutMs;
  for (;;) {
    try {
      return look();
    } catch (error) {
      const isLocked =
        error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY');
      if (!isLocked || clock.monotonic() >= until) throw failureOf(error, path);
    }
    await clock.sleep(RETRY_MS, signal);
  }
}

function columnsOf(statement: Database.Statement): Column[] {
  const columns = statement.columns();
  const names = new Set(columns.map(({ name }) => name));
  return columns.map(({ name, type }) => {
    // A second column of one name is given a number, and the first one is taken without a word.
    const own = name.replace(/:\d+$/, '');
    return { name: names.has(own) ? own : name, holds: 'any', ...(type !== null && { type }) };
  });
}

/** A value of any type may stand in any column, and none is equal to one of another type. */
function meant(text: string): Raw[] {
  const number = /^-?(0|[1-9]\d{0,17})$/.test(text) ? [BigInt(text)] : [];
  return [text, ...number, bytesOf(text) ?? []].flat();
}
