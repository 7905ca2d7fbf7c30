/** Splits the keys of a table into ranges, and writes the conditions of SQL that select one. */
import type { Statements } from './prepared-statements.ts';
import type { GuardClass } from '../../domain/guard-classes.ts';
import type { RecordTypeName } from '../../domain/record.ts';

/**
 * A range of keys (or ids) in their order. A query over all records goes range by range, so that
 * the process does other work in between.
 */
export interface KeyRange {
  /** The range begins behind this key. */
  after: string;
  /** The last key of the range; bytes in the last range, since SQLite sorts bytes behind texts. */
  upTo: string | Uint8Array;
}

/** A range of the changes that one guard counts; all changes of a person are in one range. */
export interface Guarded extends KeyRange {
  guard: GuardClass;
}

/** Selects the rows of a guard in a range: a condition of SQL with the parameters of Guarded. */
export const isGuarded = 'guard = @guard and key > @after and key <= @upTo';

/** Selects the rows of `table` in a range: a condition with the parameters `kind` and KeyRange. */
export function inRange(table: string, column: 'key' | 'id' = 'key'): string {
  const name = `${table}.${column}`;
  return `${table}.kind = @kind and ${name} > @after and ${name} <= @upTo`;
}

/** Yields the ranges of keys or ids of one record type. */
export interface KeyRanges {
  /**
   * Keys that are staged, observed or recorded; a record without a key is in no range. `size` is
   * the number of keys in a range, smaller where the work on each takes long.
   */
  ofKeys(kind: RecordTypeName, size?: number): Iterable<KeyRange>;
  /** Keys that are recorded. */
  ofRecorded(kind: RecordTypeName): Iterable<KeyRange>;
  /** Ids of the source, of this reading and of earlier ones. */
  ofIds(kind: RecordTypeName): Iterable<KeyRange>;
  /** Keys of records that were added and are not sorted in yet. */
  ofUnsorted(kind: RecordTypeName): Iterable<KeyRange>;
  /** Ids that the platform listed. */
  ofListedIds(kind: RecordTypeName): Iterable<KeyRange>;
  /** Keys that a decision has noted and that are not recorded yet. */
  ofNoted(kind: RecordTypeName): Iterable<KeyRange>;
  /** Keys for which this run noticed a problem. */
  ofNoticed(kind: RecordTypeName): Iterable<KeyRange>;
  /** Ids of this reading that have been known under another key, or under none. */
  ofStrangeIds(kind: RecordTypeName): Iterable<KeyRange>;
}

/** The most rows of a table in one range; rows of one key are never split. */
const most = 5_000;
const end = new Uint8Array();

/** The range of all keys, for tables with few rows. */
export const everything: KeyRange = { after: '', upTo: end };

/** Prepares the ranges of every table. */
export function rangesIn(db: Statements): KeyRanges {
  const keys = spansOf(db, { column: 'key', of: ['temp.staged', 'temp.observed', 'recorded'] });
  const recorded = spansOf(db, { column: 'key', of: ['recorded'] });
  const ids = spansOf(db, { column: 'id', of: ['temp.strange', 'origin'] });
  const strange = spansOf(db, { column: 'id', of: ['temp.strange'] });
  const unsorted = spansOf(db, { column: 'key', of: ['temp.unsorted'] });
  const noted = spansOf(db, { column: 'key', of: ['temp.noted'] });
  const noticed = spansOf(db, { column: 'key', of: ['temp.noticed'] });
  const listed = spansOf(db, { column: 'id', of: ['temp.observed'] });
  return {
    ofKeys: keys,
    ofRecorded: recorded,
    ofIds: ids,
    ofListedIds: listed,
    ofStrangeIds: strange,
    ofUnsorted: unsorted,
    ofNoted: noted,
    ofNoticed: noticed,
  };
}

function spansOf(db: Statements, by: { column: string; of: readonly string[] }) {
  const ranges = rangesBy(db, { ...by, where: 'kind = @kind' });
  return (kind: RecordTypeName, size?: number) => ranges({ kind }, size);
}

/** Returns what yields the ranges of a column over several tables, for rows that match `where`. */
export function rangesBy(
  db: Statements,
  { column, of, where }: { column: string; of: readonly string[]; where: string },
): (parameters: object, size?: number) => Generator<KeyRange> {
  const arms = of.map(
    (table) => `select * from (
      select ${column} bound from ${table} where ${where} and ${column} > @after
      order by ${column} limit 1 offset @size - 1)`,
  );
  const bound = db.prepare<{ after: string; size: number }, { bound: string | null }>(
    `select min(bound) bound from (${arms.join(' union all ')})`,
  );
  return function* ranges(parameters, size = most) {
    let after = '';
    for (;;) {
      const upTo = bound.get({ ...parameters, after, size })?.bound ?? end;
      yield { after, upTo };
      if (typeof upTo !== 'string') return;
      after = upTo;
    }
  };
}

/** Selects the origins whose id this reading has under the same key: a condition of SQL. */
export function isStaged(origin: string): string {
  return `exists (select 1 from temp.staged s
    where s.kind = ${origin}.kind and s.key = ${origin}.key and s.id = ${origin}.id)`;
}
