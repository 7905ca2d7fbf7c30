import type { Statements } from '../database/prepared-statements.ts';
import type { Key, Ownership, RecordedRow, RecordTypeName } from '../../domain/record.ts';
import { inRange, isStaged, type KeyRange } from '../database/key-range.ts';

/** Stores the recorded state: for each record of the mirror, what the platform last confirmed. */
export interface Recorded {
  /** Returns the row of a key, or undefined if there is none. */
  get(kind: RecordTypeName, key: Key): RecordedRow | undefined;
  /** Returns the rows with other keys under which one of these source ids was known. */
  ofOrigins(kind: RecordTypeName, ids: readonly string[], notKey: Key): RecordedRow[];
  /** Returns the other keys under which this run's reading has the source ids of a key. */
  successors(kind: RecordTypeName, key: Key): Key[];
  /** Returns whether at least one source id of a key is missing from this run's reading. */
  hasStrays(kind: RecordTypeName, key: Key): boolean;
  /** Returns every source id that a record has had while it was recorded. */
  originsOf(kind: RecordTypeName, key: Key): string[];
  /** Returns up to `count` rows after the key `after`, in key order. */
  next(kind: RecordTypeName, after: Key, count: number): RecordedRow[];
  /**
   * Returns the other keys under which the same record is or was known: by a source id from this or
   * an earlier reading, or by a contact's id on the platform. It scans all rows.
   */
  namesakes(kind: RecordTypeName, key: Key): Key[];
  /**
   * Stores the key of every source id in a range of ids, if the record is recorded. `since` is the
   * time from which the key is known, in milliseconds since the epoch.
   */
  adoptOrigins(kind: RecordTypeName, range: KeyRange, since: number): void;
  /** Returns whether no other source id was stored for this key after this one. */
  isLastOrigin(kind: RecordTypeName, id: string, key: Key): boolean;
  /** Returns the keys of a range that are recorded, or that both sides have in this run. */
  keysFound(kind: RecordTypeName, range: KeyRange): Key[];
  /** Returns the row with another key that has this platform id. */
  ofId(kind: RecordTypeName, id: string, notKey: Key): RecordedRow | undefined;
  /**
   * Returns all rows with other keys that have this platform id, or had it before they were
   * renamed.
   */
  everOfId(kind: RecordTypeName, id: string, notKey: Key): RecordedRow[];
  /** Counts the rows of a range with a platform id that is not in this run's listing. */
  countUnlisted(kind: RecordTypeName, range: KeyRange): number;
  /** Returns up to `count` of these rows in key order, skipping the first `after` rows. */
  unlisted(
    kind: RecordTypeName,
    part: { range: KeyRange; after: number; count: number },
  ): RecordedRow[];
  /** Returns every key that this source id has had, including keys of deleted records. */
  keysOfOrigin(kind: RecordTypeName, id: string): Key[];
  /** Stores a row, replacing the key's earlier one. */
  put(row: RecordedRow): void;
  /**
   * Forgets how the platform last showed a record and what was decided, and nothing else. Returns
   * whether the record is recorded.
   */
  reset(kind: RecordTypeName, key: Key): boolean;
  /** Returns up to `count` keys of reset records that were not read since. It scans all rows. */
  resets(kind: RecordTypeName, count: number): Key[];
  /** Deletes the row of a key. */
  drop(kind: RecordTypeName, key: Key): void;
  /** Returns at most `count` records with a platform id, spread evenly over all keys. */
  sample(kind: RecordTypeName, count: number): { key: Key; id: string }[];
  /** Counts the rows of a record type. */
  count(kind: RecordTypeName): number;
  /** Returns whether there are no rows of any record type. */
  isEmpty(): boolean;
}

/** A row of the table `recorded`; the staging table `noted` has these columns as well. */
export interface StoredRecord {
  kind: RecordTypeName;
  key: string;
  id: string | null;
  ownership: Ownership;
  body: string;
  shown: string | null;
  desired: string | null;
  seen_at: number;
}

/** The value of `shown` after a reset, which never equals a fingerprint. */
export const resetMark = 'reset';

/** Prepares the statements about the recorded state. */
export function recordedIn(db: Statements): Recorded {
  const get = db.prepare<[string, string], StoredRecord>(
    'select * from recorded where kind = ? and key = ?',
  );
  const ofOrigin = db.prepare<[string, string, string], StoredRecord>(
    `select r.* from origin o join recorded r on r.kind = o.kind and r.key = o.key
     where o.kind = ? and o.id = ? and o.key <> ?`,
  );
  const origins = db.prepare<[string, string], { id: string }>(
    'select id from origin where kind = ? and key = ? order by id',
  );
  const next = db.prepare<[string, string, number], StoredRecord>(
    'select * from recorded where kind = ? and key > ? order by key limit ?',
  );
  const isLater = db.prepare<[string, string, string], { one: 1 }>(
    `select 1 one from origin first join origin o indexed by origin_by_key
       on o.kind = first.kind and o.key = first.key and o.since > first.since
     where first.kind = ? and first.id = ? and first.key = ? limit 1`,
  );
  const adoptOrigins = db.prepare<KeyRange & { kind: string; since: number }>(
    `insert or ignore into origin (kind, id, key, since)
     select s.kind, s.id, s.key, @since from temp.strange s
       join recorded r on r.kind = s.kind and r.key = s.key
     where ${inRange('s', 'id')}`,
  );
  const put = db.prepare<StoredRecord>(
    `insert or replace into recorded (kind, key, id, ownership, body, shown, desired, seen_at)
     values (@kind, @key, @id, @ownership, @body, @shown, @desired, @seen_at)`,
  );
  const drop = db.prepare('delete from recorded where kind = ? and key = ?');
  return {
    ...ofIdsIn(db),
    ...rangesIn(db),
    ...namesakesIn(db),
    ...unlistedIn(db),
    ...resetsIn(db),
    ...countsIn(db),
    get: (kind, key) => fromStored(get.get(kind, key)),
    ofOrigins: (kind, ids, notKey) =>
      ids.flatMap((id) => ofOrigin.all(kind, id, notKey)).flatMap((row) => fromStored(row) ?? []),
    originsOf: (kind, key) => origins.all(kind, key).map(({ id }) => id),
    next: (kind, after, most) =>
      next.all(kind, after, most).flatMap((row) => fromStored(row) ?? []),
    adoptOrigins: (kind, range, since) => void adoptOrigins.run({ kind, ...range, since }),
    isLastOrigin: (kind, id, key) => isLater.get(kind, id, key) === undefined,
    put: (row) => void put.run(toStored(row)),
    drop: (kind, key) => void drop.run(kind, key),
  };
}

function countsIn(db: Statements): Pick<Recorded, 'sample' | 'count' | 'isEmpty'> {
  const sample = db.prepare<{ kind: string; most: number }, { key: Key; id: string }>(
    `select min(key) key, id from (
       select key, id, ntile(cast(@most as integer)) over (order by key) part
       from recorded where kind = @kind and id is not null)
     group by part`,
  );
  const any = db.prepare('select 1 from recorded limit 1');
  const count = db.prepare<[string], { n: number }>(
    'select count(*) n from recorded where kind = ?',
  );
  return {
    sample: (kind, most) => sample.all({ kind, most }),
    count: (kind) => count.get(kind)?.n ?? 0,
    isEmpty: () => any.get() === undefined,
  };
}

/** Prepares the statements that find rows by a platform id. */
function ofIdsIn(db: Statements): Pick<Recorded, 'ofId' | 'everOfId'> {
  const ofId = db.prepare<[string, string, string], StoredRecord>(
    `select * from recorded indexed by recorded_by_id
     where kind = ? and id = ? and key <> ? limit 1`,
  );
  const everOfId = db.prepare<{ kind: string; id: string; notKey: string }, StoredRecord>(
    `select r.* from recorded r indexed by recorded_by_id
     where r.kind = @kind and r.id = @id and r.key <> @notKey
     union
     select r.* from renamed n cross join recorded r on r.kind = n.kind and r.key = n.key
     where n.kind = @kind and n.id = @id and n.key <> @notKey
     order by key`,
  );
  return {
    ofId: (kind, id, notKey) => fromStored(ofId.get(kind, id, notKey)),
    everOfId: (kind, id, notKey) =>
      everOfId.all({ kind, id, notKey }).flatMap((row) => fromStored(row) ?? []),
  };
}

function namesakesIn(db: Statements): Pick<Recorded, 'namesakes' | 'keysFound' | 'keysOfOrigin'> {
  const keysOf = db.prepare<[string, string], { key: Key }>(
    'select key from origin where kind = ? and id = ? order by key',
  );
  const namesakes = db.prepare<{ kind: string; key: string }, { key: string }>(
    `with named (id) as (
       select id from origin indexed by origin_by_key where kind = @kind and key = @key
       union select id from temp.staged where kind = @kind and key = @key and id <> '')
     select key from origin where kind = @kind and key <> @key and id in named
     union select key from temp.stands where kind = @kind and key not in (@key, '') and id in named
     union
     select r.key from recorded r, json_each(r.body, '$.contacts') c
     where r.kind = @kind and r.key <> @key and c.value ->> 'id' in (
       select c.value ->> 'id' from recorded r, json_each(r.body, '$.contacts') c
       where r.kind = @kind and r.key = @key)
     order by key`,
  );
  const found = db.prepare<KeyRange & { kind: string }, { key: string }>(
    `select r.key from recorded r where ${inRange('r')}
     union
     select o.key from temp.observed o indexed by observed_by_key
     where ${inRange('o')} and exists (
       select 1 from temp.staged s where s.kind = o.kind and s.key = o.key)`,
  );
  return {
    keysOfOrigin: (kind, id) => keysOf.all(kind, id).map(({ key }) => key),
    namesakes: (kind, key) => namesakes.all({ kind, key }).map((row) => row.key),
    keysFound: (kind, range) => found.all({ kind, ...range }).map(({ key }) => key),
  };
}

/** Prepares the statements that compare the source ids of a row with this run's reading. */
function rangesIn(db: Statements): Pick<Recorded, 'successors' | 'hasStrays'> {
  // With plain joins SQLite would scan all ids for every key.
  const successors = db.prepare<{ kind: string; key: string }, { key: string }>(
    `with was (id) as (
       select id from origin indexed by origin_by_key where kind = @kind and key = @key)
     select s.key from was cross join temp.strange s on s.kind = @kind and s.id = was.id
     where s.key not in (@key, '')
     union
     select o.key from was cross join origin o on o.kind = @kind and o.id = was.id
     where o.key <> @key and ${isStaged('o')}
     order by key`,
  );
  const stray = db.prepare(
    `select 1 from origin o indexed by origin_by_key
     where o.kind = ? and o.key = ? and not exists (
       select 1 from temp.stands s where s.kind = o.kind and s.id = o.id) limit 1`,
  );
  return {
    successors: (kind, key) => successors.all({ kind, key }).map((row) => row.key),
    hasStrays: (kind, key) => stray.get(kind, key) !== undefined,
  };
}

function resetsIn(db: Statements): Pick<Recorded, 'reset' | 'resets'> {
  const reset = db.prepare<[string, string]>(
    `update recorded set shown = '${resetMark}', desired = null where kind = ? and key = ?`,
  );
  const resets = db.prepare<[string, number], { key: Key }>(
    `select key from recorded where kind = ? and shown = '${resetMark}' order by key limit ?`,
  );
  return {
    reset: (kind, key) => reset.run(kind, key).changes > 0,
    resets: (kind, count) => resets.all(kind, count).map(({ key }) => key),
  };
}

function unlistedIn(db: Statements): Pick<Recorded, 'countUnlisted' | 'unlisted'> {
  const those = `from recorded r where ${inRange('r')} and r.id is not null
    and not exists (select 1 from temp.observed o where o.kind = r.kind and o.id = r.id)`;
  const count = db.prepare<KeyRange & { kind: string }, { n: number }>(
    `select count(*) n ${those}`,
  );
  const rows = db.prepare<KeyRange & { kind: string; from: number; most: number }, StoredRecord>(
    `select r.* ${those} order by r.key limit @most offset @from`,
  );
  return {
    countUnlisted: (kind, range) => count.get({ kind, ...range })?.n ?? 0,
    unlisted: (kind, { range, after: from, count: most }) =>
      rows.all({ kind, ...range, from, most }).flatMap((row) => fromStored(row) ?? []),
  };
}

/** Returns a row in the form of the table, with null for undefined. */
export function toStored({ seenAt, id, shown, desired, ...row }: RecordedRow): StoredRecord {
  return {
    ...row,
    id: id ?? null,
    shown: shown ?? null,
    desired: desired ?? null,
    seen_at: seenAt,
  };
}

function fromStored(row: StoredRecord | undefined): RecordedRow | undefined {
  if (!row) return undefined;
  const { seen_at: seenAt, id, shown, desired, ...rest } = row;
  return {
    ...rest,
    id: id ?? undefined,
    shown: shown ?? undefined,
    desired: desired ?? undefined,
    seenAt,
  };
}
