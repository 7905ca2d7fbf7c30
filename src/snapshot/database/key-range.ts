import type { Statements } from './prepared-statements.ts';
import type { GuardClass } from '../../domain/guard-classes.ts';
import type { RecordTypeName } from '../../domain/record.ts';

/**
 * A part of all keys (or ids), in their order: those after `after`, up to and with `upTo`. What
 * asks for everybody asks range by range, so that nothing in the process stands still meanwhile.
 */
export interface KeyRange {
  after: string;
  /** The end of the last one comes after every text: SQLite has bytes follow texts. */
  upTo: string | Uint8Array;
}

/** A range of what one guard is for: all that is staged of one person is in the same. */
export interface Guarded extends KeyRange {
  guard: GuardClass;
}

/** Of a statement about the rows of guards: that a row is in that range. */
export const isGuarded = 'guard = @guard and key > @after and key <= @upTo';

/** Of a statement with the parameters `kind` and a range: that a row of this table is in it. */
export function inRange(table: string, column: 'key' | 'id' = 'key'): string {
  const name = `${table}.${column}`;
  return `${table}.kind = @kind and ${name} > @after and ${name} <= @upTo`;
}

export interface KeyRanges {
  /**
   * All keys that are staged, observed or recorded; a record that has none is in no range. `size`:
   * for what takes longer for each than to look at it.
   */
  ofKeys(kind: RecordTypeName, size?: number): Iterable<KeyRange>;
  /** All keys that are recorded. */
  ofRecorded(kind: RecordTypeName): Iterable<KeyRange>;
  /** All ids of the source, of this reading and of those before. */
  ofIds(kind: RecordTypeName): Iterable<KeyRange>;
  /** Keys of what was added last, and is not sorted in yet. */
  ofUnsorted(kind: RecordTypeName): Iterable<KeyRange>;
  /** All ids that were listed. */
  ofListedIds(kind: RecordTypeName): Iterable<KeyRange>;
  /** Keys of what was noted by a decision, and is not recorded yet. */
  ofNoted(kind: RecordTypeName): Iterable<KeyRange>;
  /** Keys under which this run noticed something. */
  ofNoticed(kind: RecordTypeName): Iterable<KeyRange>;
  /** Only those of this reading that stand under another key, or under none, so far. */
  ofStrangeIds(kind: RecordTypeName): Iterable<KeyRange>;
}

/** No more rows of any table are in a range, but for those of one and the same key. */
const most = 5_000;
const end = new Uint8Array();

/** The range of all keys, where they are few. */
export const everything: KeyRange = { after: '', upTo: end };

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

/** By the texts of a column, of the rows that these tables have there. */
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
