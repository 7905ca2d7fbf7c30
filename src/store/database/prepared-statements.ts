/**
 * Prepares the statements of a database. Each is compiled on first use: compiling all of them took
 * longer than a command.
 */
import type { Database } from 'better-sqlite3';
import { named, onDisk, type Wait } from './database-access.ts';

/**
 * Takes its parameters by position if P is a list, otherwise in one object by name. One that is
 * true or false is bound as 1 or 0, undefined as null, and a list as JSON text, for `json_each`.
 * Throws SqliteError, also if the SQL does not compile.
 */
type Query<P, R> = (...parameters: Bound<P>) => R;
type Decode<Row, R> = (row: Row) => R;
type Bound<P> = [P] extends [infer List extends unknown[]] ? List : [P];

/** Turns SQL into queries of one database. `decode` turns a row into what the query returns. */
export type Statements = ReturnType<typeof statementsOf>;

interface Statement<P extends unknown[], R> {
  get(...parameters: P): R | undefined;
  all(...parameters: P): R[];
  iterate(...parameters: P): IterableIterator<R>;
}

/**
 * Hides every parameter from SQLite's planner, which otherwise recompiles a statement at every
 * binding if the plan may depend on the value; that takes ten times as long as running it.
 */
function steady(sql: string): string {
  return sql.replaceAll(/'[^']*'|\?|@\w+/g, (token) =>
    token.startsWith("'") ? token : `likely(${token})`,
  );
}

/** Replaces, in this list, the parameters that SQLite does not take. */
function bind(parameters: unknown[]): unknown[] {
  for (let at = 0; at < parameters.length; at += 1) {
    const value = parameters[at];
    if (typeof value === 'boolean' || typeof value === 'object') parameters[at] = bindable(value);
  }
  return parameters;
}

function bindable(value: unknown): unknown {
  if (typeof value === 'boolean') return Number(value);
  if (Array.isArray(value)) return JSON.stringify(value);
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value;
  let copy: Record<string, unknown> | undefined;
  for (const name in value) {
    const named: unknown = Reflect.get(value, name);
    if (typeof named !== 'boolean' && !Array.isArray(named)) continue;
    copy ??= { ...value };
    copy[name] = bindable(named);
  }
  return copy ?? value;
}

export function withoutNull<Row extends object>(row: Row): Row {
  for (const name in row) if (row[name] === null) Reflect.set(row, name, undefined);
  return row;
}

/** The text of each statement, rewritten once, because a worker opens hundreds of databases. */
const steadied = new Map<string, string>();

function steadyOnce(sql: string): string {
  const text = steadied.get(sql) ?? steady(sql);
  steadied.set(sql, text);
  return text;
}

/**
 * Returns an object that prepares the statements of this database; their errors name its file.
 * `within` runs a statement, except those of `each` and `run`.
 */
export function statementsOf(db: Database, within: Wait = (work) => onDisk(db.name, work)) {
  const path = db.name;
  function prepare<P extends unknown[] = unknown[], R = unknown>(
    sql: string,
    isPlucked?: boolean,
  ): Statement<P, R>;
  function prepare(sql: string, isPlucked = false): Statement<unknown[], unknown> {
    let compiled: ReturnType<Database['prepare']> | undefined;
    const statement = () =>
      (compiled ??= isPlucked ? db.prepare(steadyOnce(sql)).pluck() : db.prepare(steadyOnce(sql)));
    return {
      get: (...parameters) => within(() => statement().get(...bind(parameters))),
      all: (...parameters) => within(() => statement().all(...bind(parameters))),
      iterate: (...parameters) => statement().iterate(...bind(parameters)),
    };
  }
  const only = <P, R>(sql: string, isPlucked = false): Query<P, R> => {
    const { get } = prepare<Bound<P>, R>(sql, isPlucked);
    return (...parameters) => {
      const found = get(...parameters);
      if (found === undefined)
        throw new TypeError(`a query that always has a row has none: ${sql}`);
      return found;
    };
  };
  return {
    one<P, R, Row = R>(sql: string, decode?: Decode<Row, R>): Query<P, R | undefined> {
      if (!decode) return prepare<Bound<P>, R>(sql).get;
      const { get } = prepare<Bound<P>, Row>(sql);
      return (...parameters) => {
        const row = get(...parameters);
        return row === undefined ? undefined : decode(row);
      };
    },
    all<P, R, Row = R>(sql: string, decode?: Decode<Row, R>): Query<P, R[]> {
      if (!decode) return prepare<Bound<P>, R>(sql).all;
      const read = prepare<Bound<P>, Row>(sql).all;
      return (...parameters) => read(...parameters).map((row) => decode(row));
    },
    /** The only row of a query that always has one, such as sums. */
    only: <P, R>(sql: string) => only<P, R>(sql),
    /** The number of a query that always has one, such as a count. */
    number: <P>(sql: string) => only<P, number>(sql, true),
    /** Returns the first column of the first row; undefined for null, too. */
    value<P, V>(sql: string): Query<P, V | undefined> {
      const { get } = prepare<Bound<P>, V>(sql, true);
      return (...parameters) => get(...parameters) ?? undefined;
    },
    /** The first column of all rows. */
    values: <P, V>(sql: string): Query<P, V[]> => prepare<Bound<P>, V>(sql, true).all,
    has<P>(sql: string): Query<P, boolean> {
      const { get } = prepare<Bound<P>>(sql);
      return (...parameters) => get(...parameters) !== undefined;
    },
    /** Yields the rows; no statement may write meanwhile. */
    each: <P, R>(sql: string): Query<P, IterableIterator<R>> => prepare<Bound<P>, R>(sql).iterate,
    /** Returns the number of changed rows. It is called a million times, hence without closures. */
    run<P>(sql: string): Query<P, number> {
      let compiled: ReturnType<Database['prepare']> | undefined;
      return (...parameters) => {
        try {
          return (compiled ??= db.prepare(steadyOnce(sql))).run(...bind(parameters)).changes;
        } catch (error) {
          throw named(error, path);
        }
      };
    },
    /** Runs statements without parameters. */
    exec: (sql: string): void => onDisk(path, () => void db.exec(sql)),
  };
}

type Transaction = <T>(work: () => T) => T;

/** Those of better-sqlite3 wrap every function anew, which takes as long as a small transaction. */
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

/** More rows per statement do not reduce the time per row. */
const atOnce = 20;

/**
 * Inserts many rows at a time, because most of the time of a single insert is spent between two
 * statements. It takes the values of `columns`, in their order, row after row.
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
