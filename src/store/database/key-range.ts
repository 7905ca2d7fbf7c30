/** Splits the keys of a table into ranges, and builds the SQL conditions that select one range. */
import type { Statements } from './prepared-statements.ts';
import type { GuardClass } from '../../domain/guard-classes.ts';
import type { RecordTypeName } from '../../domain/record.ts';

/**
 * A range of keys (or ids) in key order. A query over all records runs range by range, so that the
 * process can do other work in between.
 */
export interface KeyRange {
  /** The range starts after this key. */
  after: string;
  /**
   * The last key of the range. In the last range these are bytes, because SQLite sorts bytes after
   * texts.
   */
  upTo: string | Uint8Array;
}

/** A range of the changes that one guard counts. All changes of a person are in the same range. */
export interface Guarded extends KeyRange {
  guard: GuardClass;
}

/** Selects the rows of a guard in a range: an SQL condition with the parameters of Guarded. */
export const isGuarded = 'guard = @guard and key > @after and key <= @upTo';

/**
 * Selects the rows of `table` in a range: an SQL condition with the parameters `kind` and KeyRange.
 */
export function inRange(table: string, column: 'key' | 'id' = 'key'): string {
  const name = `${table}.${column}`;
  return `${table}.kind = @kind and ${name} > @after and ${name} <= @upTo`;
}

/** The maximum number of rows of one table in a range; rows with the same key are never split. */
const most = 5_000;
const end = new Uint8Array();

/** The range of all keys, for tables with few rows. */
export const everything: KeyRange = { after: '', upTo: end };

/**
 * Yields the ranges of keys or ids of one record type. A record without a key is in no range.
 * `size` is the number of keys in a range; use a smaller one if the work on each key is slow.
 */
export function rangesIn(db: Statements) {
  const spans = (column: 'key' | 'id', ...of: string[]) => {
    const ranges = rangesBy(db, { column, of, where: 'kind = @kind' });
    return (kind: RecordTypeName, size?: number) => ranges({ kind }, size);
  };
  return {
    /** Keys that are staged, observed or recorded. */
    ofKeys: spans('key', 'temp.staged', 'temp.observed', 'recorded'),
    /** Keys that are recorded. */
    ofRecorded: spans('key', 'recorded'),
    /** Ids of the source, from this reading and from earlier ones. */
    ofIds: spans('id', 'temp.strange', 'origin'),
    /** Keys of records that were added but are not sorted yet. */
    ofUnsorted: spans('key', 'temp.unsorted'),
    /** Ids that the platform listed. */
    ofListedIds: spans('id', 'temp.observed'),
    /** Keys noted by a decision that are not recorded yet. */
    ofNoted: spans('key', 'temp.noted'),
    /** Keys for which this run noticed a problem. */
    ofNoticed: spans('key', 'temp.noticed'),
    /** Ids in this reading that were known under another key, or under none. */
    ofStrangeIds: spans('id', 'temp.strange'),
  };
}

/**
 * Returns a function that yields the ranges of a column over several tables, for rows that match
 * `where`.
 */
export function rangesBy(
  db: Statements,
  { column, of, where }: { column: string; of: readonly string[]; where: string },
): (parameters: object, size?: number) => Generator<KeyRange> {
  const arms = of.map(
    (table) => `select * from (
      select ${column} bound from ${table} where ${where} and ${column} > @after
      order by ${column} limit 1 offset @size - 1)`,
  );
  const bound = db.value<{ after: string; size: number }, string | null>(
    `select min(bound) from (${arms.join(' union all ')})`,
  );
  return function* ranges(parameters, size = most) {
    let after = '';
    for (;;) {
      const upTo = bound({ ...parameters, after, size }) ?? end;
      yield { after, upTo };
      if (typeof upTo !== 'string') return;
      after = upTo;
    }
  };
}

/** Selects the origins whose id this reading has under the same key: an SQL condition. */
export function isStaged(origin: string): string {
  return `exists (select 1 from temp.staged s
    where s.kind = ${origin}.kind and s.key = ${origin}.key and s.id = ${origin}.id)`;
}
