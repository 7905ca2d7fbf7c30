/**
 * The statements of a database, each compiled when it is first used: a look at the status needs a
 * dozen of the hundred and fifty there are, and compiling all of them took longer than the look.
 */
import type { Database, RunResult } from 'better-sqlite3';
import { named, onDisk } from './disk-errors.ts';

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

/**
 * A statement whose plan might depend on a value is compiled anew by SQLite at every binding,
 * which takes ten times as long as running it. Nothing here wants another plan for another value;
 * and what stands in a function, SQLite does not look at: `likely` does nothing else.
 */
function steady(sql: string): string {
  return sql.replaceAll(/'[^']*'|\?|@\w+/g, (token) =>
    token.startsWith("'") ? token : `likely(${token})`,
  );
}

export function statementsOf(db: Database): Statements {
  const path = db.name;
  function prepare<P extends unknown[] = unknown[], R = unknown>(sql: string): Statement<P, R>;
  function prepare<P extends object, R = unknown>(sql: string): Statement<[P], R>;
  function prepare(sql: string): Statement<unknown[], unknown> {
    let compiled: ReturnType<Database['prepare']> | undefined;
    const statement = () => (compiled ??= db.prepare(steady(sql)));
    return {
      // As onDisk does; asked a million times, what it is given would be made a million times.
      run(...parameters) {
        try {
          return statement().run(...parameters);
        } catch (error) {
          throw named(error, path);
        }
      },
      get: (...parameters) => onDisk(path, () => statement().get(...parameters)),
      all: (...parameters) => onDisk(path, () => statement().all(...parameters)),
      iterate: (...parameters) => statement().iterate(...parameters),
    };
  }
  return { prepare, exec: (sql) => onDisk(path, () => void db.exec(sql)) };
}
