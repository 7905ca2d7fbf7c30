/**
 * A separate program in which one session reads or writes an SQLite file. Nothing interrupts a
 * statement in SQLite, so it runs in a second thread. The first one, which is never busy, kills
 * this process if a statement takes too long, and if the starting process closes the channel or
 * dies. The arguments are the file, `read` or `write`, and the time limit of a statement in
 * milliseconds. The first `Answer` says that the file is open; then one follows each `Question`.
 * All are serialized.
 */
import type { Database, Statement } from 'better-sqlite3';
import { serialize } from 'node:v8';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import type { Raw } from './database-session.ts';

export type SqliteQuestion =
  | { ask: 'rows'; text: string; values: readonly Raw[] }
  /** Returns `[name, declared type or null]` for each column of a statement. */
  | { ask: 'columns'; text: string }
  | { ask: 'run'; text: string; values: readonly Raw[] };

export type Answer = { value: unknown } | { failed: Failed };

interface Failed {
  name: string;
  message: string;
  code?: string;
}

/** The time in which a write may end by itself, so that its journal does not remain. */
const BRIEF_MS = 3_000;

/** The error of a statement that took too long, in SQLite's format. */
const late: Failed = { name: 'Error', message: 'too late', code: 'SQLITE_INTERRUPT' };

if (isMainThread) watch(process.argv[3] === 'write', Number(process.argv[4]));
else await work();

function watch(writes: boolean, timeoutMs: number): void {
  const worker = new Worker(new URL(import.meta.url), { argv: process.argv.slice(2) });
  const kill = () => void process.kill(process.pid, 'SIGKILL');
  const send = (answer: Uint8Array, done: () => void = () => undefined) =>
    process.send?.(answer, done);
  let deadline: NodeJS.Timeout | undefined;
  worker.on('message', (answer: Uint8Array) => {
    clearTimeout(deadline);
    send(answer);
  });
  process.on('message', (question) => {
    deadline = setTimeout(() => send(serialize({ failed: late }), kill), timeoutMs);
    worker.postMessage(question, []);
  });
  worker.on('exit', kill);
  // A signal to the whole process group is handled by the parent process.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => undefined);
  const leave = () => {
    if (!writes) kill();
    worker.postMessage(undefined, []);
    setTimeout(kill, BRIEF_MS);
  };
  process.on('disconnect', leave);
  if (!process.connected) leave();
}

async function work(): Promise<void> {
  const { default: Connection } = await import('better-sqlite3');
  const reply = (run: () => unknown) => {
    let answer: Answer;
    try {
      answer = { value: run() };
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      const { name, message } = error;
      answer = { failed: { name, message, ...('code' in error && { code: String(error.code) }) } };
    }
    parentPort?.postMessage(serialize(answer), []);
  };
  let db: Database | undefined;
  reply(() => {
    const [, , path, access] = process.argv;
    const readonly = access === 'read';
    db = new Connection(path, { readonly, fileMustExist: true, timeout: 0 });
    if (readonly) db.pragma('query_only = on');
  });
  const statements = new Map<string, Statement>();
  const prepared = (text: string): Statement | undefined => {
    const found = statements.get(text) ?? db?.prepare(text).safeIntegers();
    if (found) statements.set(text, found);
    return found;
  };
  const execute = (question: SqliteQuestion): unknown => {
    const statement = prepared(question.text);
    if (question.ask === 'columns') {
      return statement?.columns().map(({ name, type }) => [name, type]);
    }
    const { values } = question;
    if (question.ask === 'rows') return statement?.raw().all(...values);
    // The changes of triggers count, too, so that those behind a view do.
    const changes = () => Number(prepared('select total_changes()')?.pluck().get());
    const before = changes();
    if (statement?.reader) statement.all(...values);
    else statement?.run(...values);
    return changes() - before;
  };
  parentPort?.on('message', (question: SqliteQuestion | undefined) => {
    if (question) {
      reply(() => execute(question));
    } else {
      db?.close();
      parentPort?.close();
    }
  });
}
