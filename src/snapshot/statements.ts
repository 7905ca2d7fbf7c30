/**
 * The statements of a database, each compiled when it is first used: a look at the status needs a
 * dozen of the hundred and fifty there are, and compiling all of them took longer than the look.
 */
import type { Database, RunResult } from 'better-sqlite3';
import { onDisk } from './disk.ts';

/** Parameters by position, or one object of named ones. */
export interface Statements {
  prepare<P extends unknown[] = unknown[], R = unknown>(sql: string): Statement<P, R>;
  prepare<P extends object, R = unknown>(sql: string): Statement<[P], R>;
  exec(sql: string): void;
}

/** Throws SqliteError, for what does not compile as well. */
interface Statement<P extends unknown[], R> {
  run(...parameters: P): RunResult;
  get(...parameters: P): R | undefined;
  all(...parameters: P): R[];
  iterate(...parameters: P): IterableIterator<R>;
}

export function statementsOf(db: Database): Statements {
  function prepare<P extends unknown[] = unknown[], R = unknown>(sql: string): Statement<P, R>;
  function prepare<P extends object, R = unknown>(sql: string): Statement<[P], R>;
  function prepare(sql: string): Statement<unknown[], unknown> {
    let compiled: ReturnType<Database['prepare']> | undefined;
    const statement = () => (compiled ??= db.prepare(sql));
    return {
      run: (...parameters) => onDisk(db.name, () => statement().run(...parameters)),
      get: (...parameters) => onDisk(db.name, () => statement().get(...parameters)),
      all: (...parameters) => onDisk(db.name, () => statement().all(...parameters)),
      iterate: (...parameters) => statement().iterate(...parameters),
    };
  }
  return { prepare, exec: (sql) => onDisk(db.name, () => void db.exec(sql)) };
}
