/**
 * A file of SQLite, opened read-only, in a process of its own: a statement that takes too long or
 * is to stop is ended with that process, and nothing else waits for it here. Who writes the file
 * waits for the end of the reading, unless it keeps a write-ahead log (WAL).
 */
import { access, constants, stat } from 'node:fs/promises';
import { z } from 'zod';
import { Invalid } from '../../../domain/errors.ts';
import { unreadable } from '../../shared/files/file-bytes.ts';
import { failureOf } from './database-failure.ts';
import { bytesOf, type Column, type Opening, type Raw, type Session } from './read-session.ts';
import { startSqlite } from './sqlite-line.ts';
import type { Writing } from './write-session.ts';
import { retrySchedules } from '../../../domain/retry-schedules.ts';

const raws = z.array(
  z.array(z.union([z.string(), z.number(), z.bigint(), z.instanceof(Uint8Array), z.null()])),
);
const described = z.array(z.tuple([z.string(), z.string().nullable()]));

export async function openSqlite(path: string, opening: Opening): Promise<Session> {
  await assertFile(path);
  const ask = asking(path, opening.signal);
  const line = await ask(() => startSqlite(path, 'read', opening));
  const rows = async (text: string, values: readonly Raw[]) =>
    raws.parse(await line.ask({ ask: 'rows', text, values }));
  const waiting = { path, ...opening };
  try {
    const [[now] = []] = await unlocked(() => rows(CLOCK, []), waiting);
    await ask(() => line.ask({ ask: 'run', text: 'begin', values: [] }));
    // What is read first fixes the state.
    await unlocked(() => rows('select 1 from sqlite_schema limit 1', []), waiting);
    return {
      name: path,
      now: Number(now) * 1000,
      quote: (part) => `"${part.replaceAll('"', '""')}"`,
      place: () => '?',
      exact: (quoted) => `cast(${quoted} as blob)`,
      meant,
      columns: (relation) =>
        ask(async () => {
          const text = `select * from ${relation} limit 0`;
          return columnsOf(described.parse(await line.ask({ ask: 'columns', text })));
        }),
      rows: (statement, values) => ask(() => rows(statement, values)),
      close: line.close,
    };
  } catch (error) {
    await line.close();
    throw error;
  }
}

/** Whoever writes there is waited for; nobody else writes until this is over. */
export async function writeSqlite(path: string, opening: Opening): Promise<Writing> {
  await assertFile(path);
  const ask = asking(path, opening.signal);
  const line = await ask(() => startSqlite(path, 'write', opening));
  const run = async (text: string, values: readonly Raw[] = []) =>
    void (await line.ask({ ask: 'run', text, values }));
  try {
    await unlocked(() => run('begin immediate'), { path, ...opening });
    return {
      place: () => '?',
      time: (at) => new Date(at).toISOString(),
      run: (text, values) => ask(() => run(text, values)),
      command: (text) => ask(() => run(text)),
      close: line.close,
    };
  } catch (error) {
    await line.close();
    throw error;
  }
}

const CLOCK = "select unixepoch('now')";

interface Waiting extends Opening {
  path: string;
}

/**
 * SQLite says of a file that cannot be opened only that. It is not opened for that here: to close
 * it would release what this process has locked in it.
 */
async function assertFile(path: string): Promise<void> {
  try {
    const stats = await stat(path);
    if (stats.isFile()) return await access(path, constants.R_OK);
  } catch (error) {
    throw unreadable(path, error);
  }
  throw new Invalid(
    `${path}: this is no regular file → name a file of SQLite in url of the source`,
  );
}

/** What went wrong as one of the errors; the signal's reason once it is aborted. */
function asking(path: string, signal: AbortSignal) {
  return async <T>(work: () => Promise<T>): Promise<T> => {
    signal.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      throw failureOf(error, path);
    }
  };
}

/** Once nobody writes there. */
async function unlocked<T>(
  look: () => Promise<T>,
  { path, clock, signal, timeoutMs }: Waiting,
): Promise<T> {
  const until = clock.monotonic() + timeoutMs;
  for (;;) {
    try {
      return await look();
    } catch (error) {
      signal.throwIfAborted();
      if (!isLocked(error) || clock.monotonic() >= until) throw failureOf(error, path);
    }
    await clock.sleep(retrySchedules.lockedDatabase.firstMs, signal);
  }
}

function isLocked(error: unknown): boolean {
  return error instanceof Error && 'code' in error && String(error.code).startsWith('SQLITE_BUSY');
}

function columnsOf(described: readonly [name: string, type: string | null][]): Column[] {
  const names = new Set(described.map(([name]) => name));
  return described.map(([name, type]) => {
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
