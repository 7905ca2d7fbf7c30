/**
 * Opens an SQLite file in a separate process, with which a statement ends that takes too long or
 * has to stop. A program that writes to the file waits for the end of the read, unless it has a
 * WAL.
 */
import { access, constants, stat } from 'node:fs/promises';
import { z } from 'zod';
import { codeOf, Invalid, Unavailable } from '../../../domain/errors.ts';
import { unreadable } from '../../shared/files/file-origin.ts';
import {
  failureOf,
  bytesOf,
  type Column,
  type Mode,
  type Opening,
  type Raw,
  rawRows,
  type Session,
} from './database-session.ts';
import { fork } from 'node:child_process';
import { extname } from 'node:path';
import { deserialize } from 'node:v8';
import type { SqliteQuestion } from './sqlite-process.ts';
import { retrySchedules } from '../../../domain/retry-schedules.ts';

const described = z.array(z.tuple([z.string(), z.string().nullable()]));

/** Opens a session; a writer waits for others. Throws Invalid, Unavailable, the signal's reason. */
export async function openSqlite(path: string, opening: Opening, mode: Mode): Promise<Session> {
  await assertFile(path);
  const { signal } = opening;
  const ask = async <T>(work: () => Promise<T>): Promise<T> => {
    signal.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      throw failureOf(error, path);
    }
  };
  const line = await ask(() => startSqlite(path, mode, opening));
  const rows = async (text: string, values: readonly Raw[]) =>
    rawRows.parse(await line.ask({ ask: 'rows', text, values }));
  const run = async (text: string, values: readonly Raw[] = []) =>
    Number(await line.ask({ ask: 'run', text, values }));
  try {
    if (mode === 'write') await untilUnlocked(() => run('begin immediate'), path, opening);
    const [[now] = []] = await untilUnlocked(() => rows(CLOCK, []), path, opening);
    if (mode === 'read') {
      await ask(() => run('begin'));
      // The first query fixes the state that is read.
      await untilUnlocked(() => rows('select 1 from sqlite_schema limit 1', []), path, opening);
    }
    return {
      name: path,
      now: Number(now) * 1000,
      quote: (part) => `"${part.replaceAll('"', '""')}"`,
      place: () => '?',
      time: (at) => new Date(at).toISOString(),
      exact: (quoted) => `cast(${quoted} as blob)`,
      // Any column may hold any type, and values of different types are never equal.
      meant(text) {
        const number = /^-?(0|[1-9]\d{0,17})$/.test(text) ? [BigInt(text)] : [];
        return [text, ...number, bytesOf(text) ?? []].flat();
      },
      columns: (relation) =>
        ask(async () => {
          const text = `select * from ${relation} limit 0`;
          const found = described.parse(await line.ask({ ask: 'columns', text }));
          const names = new Set(found.map(([name]) => name));
          return found.map(([name, type]): Column => {
            // SQLite appends a number to a second column with one name, and silently uses the
            // first.
            const own = name.replace(/:\d+$/, '');
            const shown = names.has(own) ? own : name;
            return { name: shown, holds: 'any', ...(type !== null && { type }) };
          });
        }),
      rows: (statement, values) => ask(() => rows(statement, values)),
      run: (statement, values) => ask(() => run(statement, values)),
      command: (text) => ask(async () => void (await run(text))),
      close: line.close,
    };
  } catch (error) {
    await line.close();
    throw error;
  }
}

const CLOCK = "select unixepoch('now')";

/**
 * Throws Invalid if there is no readable file, of which SQLite says little. The file is not opened
 * here, because closing it would release this process's locks on it.
 */
async function assertFile(path: string): Promise<void> {
  try {
    const stats = await stat(path);
    if (stats.isFile()) return await access(path, constants.R_OK);
  } catch (error) {
    throw unreadable(path, error);
  }
  throw new Invalid(`${path}: this is no regular file`, {
    fix: 'name a file of SQLite in url of the source',
    code: 'database-access',
  });
}

/** Repeats `look` until no other program writes to the file. */
async function untilUnlocked<T>(
  look: () => Promise<T>,
  path: string,
  { clock, signal, timeoutMs }: Opening,
): Promise<T> {
  const until = clock.monotonic() + timeoutMs;
  for (;;) {
    try {
      return await look();
    } catch (error) {
      signal.throwIfAborted();
      if (!codeOf(error).startsWith('SQLITE_BUSY') || clock.monotonic() >= until)
        throw failureOf(error, path);
    }
    await clock.sleep(retrySchedules.lockedDatabase.firstMs, signal);
  }
}

const failed = z.object({ name: z.string(), message: z.string(), code: z.string().optional() });

const answers = z.union([z.object({ failed }), z.object({ value: z.unknown() })]);

const program = new URL(`sqlite-process${extname(import.meta.url)}`, import.meta.url);

/**
 * Starts the process, which opens the file and answers one question at a time. Throws, as `ask`
 * does, SQLite's errors with their `code`, Unavailable if the process ended, and the signal's
 * reason at once. `close` leaves nothing behind and never throws.
 */
async function startSqlite(path: string, access: Mode, { signal, timeoutMs }: Opening) {
  signal.throwIfAborted();
  const child = fork(program, [path, access, String(timeoutMs)], {
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    execArgv: [],
  });
  const ended = Promise.withResolvers<void>();
  let waiting: PromiseWithResolvers<unknown> | undefined;
  let over: { why: unknown } | undefined;
  const end = (why: unknown) => {
    over ??= { why };
    waiting?.reject(over.why);
  };
  child.on('message', (bytes) => {
    waiting?.resolve(bytes instanceof Uint8Array ? deserialize(bytes) : undefined);
  });
  child.on('error', (error) => {
    end(error);
    if (child.pid === undefined) ended.resolve();
  });
  child.on('exit', (code, by) => {
    const why = `${path}: the process that reads or writes it ended (${by ?? code})`;
    end(new Unavailable(why, { acted: access === 'read' ? 'no' : 'maybe' }));
    ended.resolve();
  });
  const ask = async (question?: SqliteQuestion): Promise<unknown> => {
    if (over) throw over.why;
    waiting = Promise.withResolvers();
    // Between two questions, an abandoned reader must not keep the process alive.
    child.ref();
    child.channel?.ref();
    // If sending fails, the process has ended, which is noticed elsewhere.
    if (question) child.send(question, () => undefined);
    try {
      const reply = answers.parse(await waiting.promise);
      if ('value' in reply) return reply.value;
      const { name, message, code } = reply.failed;
      const error = name === 'TypeError' ? new TypeError(message) : new Error(message);
      throw Object.assign(error, { name }, code !== undefined && { code });
    } finally {
      waiting = undefined;
      child.unref();
      child.channel?.unref();
    }
  };
  const leave = () => {
    if (signal.aborted) end(signal.reason);
    if (child.connected) child.disconnect();
  };
  signal.addEventListener('abort', leave, { once: true });
  const close = async () => {
    signal.removeEventListener('abort', leave);
    child.ref();
    leave();
    await ended.promise;
  };
  try {
    await ask();
  } catch (error) {
    await close();
    throw error;
  }
  return { ask, close };
}
