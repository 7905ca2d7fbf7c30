/**
 * Splits the keys of a table, and a plan, into parts, and builds the SQL conditions that select one
 * part. Work on all of them runs part by part, so that the process can do other work in between.
 */
import type { Statements } from './prepared-statements.ts';
import type { GuardClass } from '../../domain/guard-classes.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';

/** A range of keys (or ids) in key order. */
export interface KeyRange {
  /** The range starts after this key. */
  after: string;
  /**
   * The last key of the range. In the last range these are bytes, because SQLite sorts bytes after
   * texts.
   */
  upTo: string | Uint8Array;
}

export interface RecordName {
  kind: RecordTypeName;
  key: Key;
}

export interface RecordRange extends KeyRange {
  kind: RecordTypeName;
}

/** A range of the changes that one guard counts. All changes of a person are in the same range. */
export interface Guarded extends KeyRange {
  guard: GuardClass;
}

export const isGuarded = 'guard = @guard and key > @after and key <= @upTo';

/** The rows of `table` in a range: an SQL condition with the parameters of RecordRange. */
export function inRange(table: string, column: 'key' | 'id' = 'key'): string {
  const name = `${table}.${column}`;
  return `${table}.kind = @kind and ${name} > @after and ${name} <= @upTo`;
}

/** The most rows in a range (those with the same key are never split), in a chunk, or at a time. */
export const most = 5_000;
const end = new Uint8Array();

/** The range of all keys, for tables with few rows. */
export const everything: KeyRange = { after: '', upTo: end };

/**
 * Yields the ranges of keys or ids of one record type. A record without a key is in no range.
 * `size` is the number of keys in a range.
 */
export function rangesIn(db: Statements) {
  const ranges = (column: 'key' | 'id', ...of: string[]) => {
    const inTables = rangesBy(db, { column, of, where: 'kind = @kind' });
    return (kind: RecordTypeName, size?: number): Generator<RecordRange> =>
      inTables({ kind }, size);
  };
  return {
    ofKeys: ranges('key', 'temp.staged', 'temp.observed', 'recorded'),
    ofRecorded: ranges('key', 'recorded'),
    /** The keys of this reading, and those that are recorded and were not found unchanged. */
    ofRest: ranges('key', 'temp.staged', 'temp.rest'),
    /** Ids of the source, from this reading and from earlier ones. */
    ofIds: ranges('id', 'temp.strange', 'origin'),
    ofUnsorted: ranges('key', 'temp.unsorted'),
    ofListedIds: ranges('id', 'temp.observed'),
    ofNoted: ranges('key', 'temp.noted'),
    ofNoticed: ranges('key', 'temp.noticed'),
    ofStrangeIds: ranges('id', 'temp.strange'),
    ofProblems: ranges('key', 'problem'),
    ofStated: ranges('key', 'temp.staged', 'stated'),
  };
}

/** Yields the ranges of a column over several tables. Each range has the parameters, too. */
export function rangesBy(
  db: Statements,
  { column, of, where }: { column: string; of: readonly string[]; where: string },
): <P extends object>(parameters: P, size?: number) => Generator<P & KeyRange> {
  const arms = of.map(
    (table) => `select * from (
      select ${column} bound from ${table} where ${where} and ${column} > @after
      order by ${column} limit 1 offset @size - 1)`,
  );
  const bound = db.value<{ after: string; size: number }, string>(
    `select min(bound) from (${arms.join(' union all ')})`,
  );
  return function* (parameters, size = most) {
    for (let after: string | undefined = ''; after !== undefined;) {
      const upTo: string | undefined = bound({ ...parameters, after, size });
      yield { ...parameters, after, upTo: upTo ?? end };
      after = upTo;
    }
  };
}

/** Selects the recorded rows `r` of a range, without people whose records are unchanged. */
export const restRecorded = `temp.rest u cross join recorded r on r.kind = u.kind and r.key = u.key
  where ${inRange('u')}`;

/** Selects the origins whose id this reading has under the same key. */
export function isStaged(origin: string): string {
  return `exists (select 1 from temp.staged s
    where s.kind = ${origin}.kind and s.key = ${origin}.key and s.id = ${origin}.id)`;
}

export interface Place {
  phase: number;
  kind: string;
  key: string;
  /** Distinguishes the changes of one record and phase. */
  seq: number;
}

export interface Stretch extends Place, After {}

interface After {
  afterPhase: number;
  afterKind: string;
  afterKey: string;
  afterSeq: number;
}

export const inStretch = `
  (phase, kind, key, seq) > (@afterPhase, @afterKind, @afterKey, @afterSeq)
  and (phase, kind, key, seq) <= (@phase, @kind, @key, @seq)`;

const beginning: Place = { phase: -1, kind: '', key: '', seq: 0 };
const endOfPlan: Place = { phase: Number.MAX_SAFE_INTEGER, kind: '', key: '', seq: 0 };

export const whole: Stretch = { ...behind(beginning), ...endOfPlan };

type Chunks<P> = (parameters: P, from?: Place) => Generator<Stretch>;

/**
 * Yields the chunks of the changes that `clause` (from … where …) selects, in plan order, which an
 * index must have. `from` is the place after which the first one begins.
 */
export function stretchesOf<P extends object>(db: Statements, clause: string): Chunks<P> {
  const bound = db.one<After, Place>(
    `select phase, kind, key, seq ${clause}
       and (phase, kind, key, seq) > (@afterPhase, @afterKind, @afterKey, @afterSeq)
     order by phase, kind, key, seq limit 1 offset ${most - 1}`,
  );
  return function* (parameters, from = beginning) {
    for (let after: Place | undefined = from; after !== undefined;) {
      const upTo: Place | undefined = bound({ ...parameters, ...behind(after) });
      yield { ...behind(after), ...(upTo ?? endOfPlan) };
      after = upTo;
    }
  };
}

function behind({ phase, kind, key, seq }: Place): After {
  return { afterPhase: phase, afterKind: kind, afterKey: key, afterSeq: seq };
}
