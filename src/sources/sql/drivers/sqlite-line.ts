/** The way to the process in which a session of SQLite runs: asked one thing at a time. */
import { type ChildProcess, fork } from 'node:child_process';
import { extname } from 'node:path';
import { deserialize } from 'node:v8';
import { z } from 'zod';
import { Unavailable } from '../../../domain/errors.ts';
import type { Opening } from './read-session.ts';
import type { SqliteQuestion } from './sqlite-process.ts';

export interface SqliteLine {
  /**
   * The value of the answer. Throws what SQLite says as an error with its `code`, Unavailable when
   * the process ended, and the signal's reason when aborted; nothing waits for a statement then.
   */
  ask(question: SqliteQuestion): Promise<unknown>;
  /** Never throws. Nothing of the process is left afterwards. */
  close(): Promise<void>;
}

const failed = z.object({ name: z.string(), message: z.string(), code: z.string().optional() });
const answers = z.union([z.object({ failed }), z.object({ value: z.unknown() })]);

/** As TypeScript or as it was built. */
const program = new URL(`sqlite-process${extname(import.meta.url)}`, import.meta.url);

/** Starts the process, which opens the file. Throws as `ask` does. */
export async function startSqlite(
  path: string,
  access: 'read' | 'write',
  { signal, timeoutMs }: Opening,
): Promise<SqliteLine> {
  signal.throwIfAborted();
  const child = fork(program, [path, access, String(timeoutMs)], {
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    execArgv: [],
  });
  const { answer, ended, end } = answersOf(child, path, access);
  const leave = () => {
    if (signal.aborted) end(signal.reason);
    if (child.connected) child.disconnect();
  };
  signal.addEventListener('abort', leave, { once: true });
  const close = async () => {
    signal.removeEventListener('abort', leave);
    child.ref();
    leave();
    await ended;
  };
  try {
    await answer();
  } catch (error) {
    await close();
    throw error;
  }
  return { ask: answer, close };
}

/**
 * `answer` waits for the next one, to a question or that the file is opened; once `end` was called
 * it throws what it was given.
 */
function answersOf(child: ChildProcess, path: string, access: 'read' | 'write') {
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
  const answer = async (question?: SqliteQuestion): Promise<unknown> => {
    if (over) throw over.why;
    waiting = Promise.withResolvers();
    // Between two questions it keeps no process alive whose reader went away.
    child.ref();
    child.channel?.ref();
    // Where it cannot be sent, the end of the process is heard of.
    if (question) child.send(question, () => undefined);
    try {
      return valueOf(await waiting.promise);
    } finally {
      waiting = undefined;
      child.unref();
      child.channel?.unref();
    }
  };
  return { answer, ended: ended.promise, end };
}

function valueOf(answer: unknown): unknown {
  const said = answers.parse(answer);
  if ('value' in said) return said.value;
  const { name, message, code } = said.failed;
  const error = name === 'TypeError' ? new TypeError(message) : new Error(message);
  throw Object.assign(error, { name }, code !== undefined && { code });
}
