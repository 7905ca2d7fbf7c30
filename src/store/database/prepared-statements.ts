/**
 * Prepares the statements of a database. Each is compiled on first use: `status` needs a dozen of
 * the hundred and fifty, and compiling all of them took longer than the command.
 */
import type { Database, RunResult } from 'better-sqlite3';
import { named, onDisk } from './database-access.ts';

/**
 * Runs SQL with its parameters: by position if P is a list, otherwise in one object by name. Throws
 * SqliteError, also if the SQL does not compile.
 */
type Query<P, R> = (...parameters: Bound<P>) => R;
type Bound<P> = [P] extends [infer List extends unknown[]] ? List : [P];

/** Turns SQL into functions that run it on one database. */
export interface Statements {
  /** Returns the first row. */
  one<P, R>(sql: string): Query<P, R | undefined>;
  /** Returns all rows. */
  all<P, R>(sql: string): Query<P, R[]>;
  /** Returns the first column of the first row. */
  value<P, V>(sql: string): Query<P, V | undefined>;
  /** Returns the first column of all rows. */
  values<P, V>(sql: string): Query<P, V[]>;
  /** Returns whether there is a row. */
  has<P>(sql: string): Query<P, boolean>;
  /** Yields the rows; no statement may write meanwhile. */
  each<P, R>(sql: string): Query<P, IterableIterator<R>>;
  /** Returns the number of rows that the statement has changed. */
  run<P>(sql: string): Query<P, number>;
  prepare<P extends unknown[] = unknown[], R = unknown>(sql: string): Statement<P, R>;
  prepare<P extends object, R = unknown>(sql: string): Statement<[P], R>;
  /** Runs statements without parameters. */
  exec(sql: string): void;
}

/** A prepared statement. Each method throws SqliteError, also if the statement does not compile. */
interface Statement<P extends unknown[], R> {
  run(...parameters: P): RunResult;
  get(...parameters: P): R | undefined;
  all(...parameters: P): R[];
  iterate(...parameters: P): IterableIterator<R>;
}

/**
 * Hides every parameter from SQLite's planner. SQLite recompiles a statement at every binding if
 * the plan may depend on the value, which takes ten times as long as running it, and no statement
 * here benefits from that. The planner ignores function arguments, and `likely` returns its
 * argument.
 */
function steady(sql: string): string {
  return sql.replaceAll(/'[^']*'|\?|@\w+/g, (token) =>
    token.startsWith("'") ? token : `likely(${token})`,
  );
}

/** The text of each statement, rewritten once, because a worker opens hundreds of databases. */
const steadied = new Map<string, string>();

function steadyOnce(sql: string): string {
  const text = steadied.get(sql) ?? steady(sql);
  steadied.set(sql, text);
  return text;
}

/** Returns an object that prepares the statements of this database; their errors name its file. */
export function statementsOf(db: Database): Statements {
  const path = db.name;
  function prepare<P extends unknown[] = unknown[], R = unknown>(
    sql: string,
    isPlucked?: boolean,
  ): Statement<P, R>;
  function prepare<P extends object, R = unknown>(sql: string): Statement<[P], R>;
  function prepare(sql: string, isPlucked = false): Statement<unknown[], unknown> {
    let compiled: ReturnType<Database['prepare']> | undefined;
    const compile = () => {
      const statement = db.prepare(steadyOnce(sql));
      return isPlucked ? statement.pluck() : statement;
    };
    const statement = () => (compiled ??= compile());
    return {
      run: (...parameters) => onDisk(path, () => statement().run(...parameters)),
      get: (...parameters) => onDisk(path, () => statement().get(...parameters)),
      all: (...parameters) => onDisk(path, () => statement().all(...parameters)),
      iterate: (...parameters) => statement().iterate(...parameters),
    };
  }
  return {
    one: <P, R>(sql: string): Query<P, R | undefined> => prepare<Bound<P>, R>(sql).get,
    all: <P, R>(sql: string): Query<P, R[]> => prepare<Bound<P>, R>(sql).all,
    value: <P, V>(sql: string): Query<P, V | undefined> => prepare<Bound<P>, V>(sql, true).get,
    values: <P, V>(sql: string): Query<P, V[]> => prepare<Bound<P>, V>(sql, true).all,
    has: <P>(sql: string): Query<P, boolean> => {
      const { get } = prepare<Bound<P>>(sql);
      return (...parameters) => get(...parameters) !== undefined;
    },
    each: <P, R>(sql: string): Query<P, IterableIterator<R>> => prepare<Bound<P>, R>(sql).iterate,
    // This does not use onDisk, because it is called a million times, and would create a closure
    // each time.
    run: <P>(sql: string): Query<P, number> => {
      let compiled: ReturnType<Database['prepare']> | undefined;
      return (...parameters) => {
        try {
          return (compiled ??= db.prepare(steadyOnce(sql))).run(...parameters).changes;
        } catch (error) {
          throw named(error, path);
        }
      };
    },
    prepare,
    exec: (sql) => onDisk(path, () => void db.exec(sql)),
  };
}

/** Runs work in a transaction of its own, all or nothing. */
type Transaction = <T>(work: () => T) => T;

/**
 * Returns the two kinds of transactions. Those of better-sqlite3 wrap every function anew, which
 * takes as long as a small transaction.
 */
export function transactionsOf(db: Database): Record<'deferred' | 'immediate', Transaction> {
  const { run } = statementsOf(db);
  const commit = run<[]>('commit');
  const rollback = run<[]>('rollback');
  const beginning = (how: string): Transaction => {
    const begin = run<[]>(`begin ${how}`);
    return (work) => {
      begin();
      try {
        const done = work();
        if (done instanceof Promise) throw new TypeError('a transaction cannot await a promise');
        commit();
        return done;
      } catch (error) {
        // After some errors, such as a full disk, SQLite has rolled back by itself.
        if (db.inTransaction) rollback();
        throw error;
      }
    };
  };
  return { deferred: beginning('deferred'), immediate: beginning('immediate') };
}

/** The number of rows per statement; a larger number does not reduce the time per row. */
const atOnce = 20;

/**
 * Returns a function that inserts many rows at a time, because most of the time of a single insert
 * is spent between two statements. It takes the values of `columns`, in their order, row after row.
 * `into` is the beginning of the statement, such as `insert into temp.unsorted`.
 */
export function manyIn(
  { run }: Statements,
  into: string,
  columns: readonly string[],
): (values: readonly unknown[]) => void {
  const row = `(${columns.map(() => '?').join(', ')})`;
  const statement = (rows: number) =>
    run<unknown[]>(`${into} (${columns.join(', ')}) values ${Array(rows).fill(row).join(', ')}`);
  const [many, one] = [statement(atOnce), statement(1)];
  const ofOne = columns.length;
  const ofMany = ofOne * atOnce;
  return (values) => {
    const even = values.length - (values.length % ofMany);
    for (let at = 0; at < even; at += ofMany) many(...values.slice(at, at + ofMany));
    for (let at = even; at < values.length; at += ofOne) {
      one(...values.slice(at, at + ofOne));
    }
  };
}
