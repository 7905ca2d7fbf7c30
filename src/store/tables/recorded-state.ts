import type { Statements } from '../database/prepared-statements.ts';
import type { Key, Ownership, RecordedRow, RecordTypeName } from '../../domain/record.ts';
import { inRange, isStaged, type KeyRange } from '../database/key-range.ts';

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

/** Stores the recorded state: for each record of the mirror, what the platform last confirmed. */
export function recordedIn(db: Statements) {
  const get = db.one<[kind: string, key: string], StoredRecord>(
    'select * from recorded where kind = ? and key = ?',
  );
  const next = db.all<[kind: string, after: string, most: number], StoredRecord>(
    'select * from recorded where kind = ? and key > ? order by key limit ?',
  );
  const put = db.run<StoredRecord>(
    `insert or replace into recorded (kind, key, id, ownership, body, shown, desired, seen_at)
     values (@kind, @key, @id, @ownership, @body, @shown, @desired, @seen_at)`,
  );
  const reset = db.run<[kind: string, key: string]>(
    `update recorded set shown = '${resetMark}', desired = null where kind = ? and key = ?`,
  );
  const sample = db.all<{ kind: string; most: number }, { key: Key; id: string }>(
    `select min(key) key, id from (
       select key, id, ntile(cast(@most as integer)) over (order by key) part
       from recorded where kind = @kind and id is not null)
     group by part`,
  );
  const count = db.value<[kind: string], number>('select count(*) from recorded where kind = ?');
  const any = db.has<[]>('select 1 from recorded limit 1');
  return {
    ...originsIn(db),
    ...platformIdsIn(db),
    /** Returns the row of a key, or undefined if there is none. */
    get(kind: RecordTypeName, key: Key): RecordedRow | undefined {
      const row = get(kind, key);
      return row && fromStored(row);
    },
    /** Returns up to `most` rows after the key `after`, in key order. */
    next: (kind: RecordTypeName, after: Key, most: number) =>
      next(kind, after, most).map(fromStored),
    /** Stores a row, replacing the key's earlier one. */
    put: (row: RecordedRow) => put(toStored(row)),
    /**
     * Forgets how the platform last showed a record and what was decided, and nothing else. Returns
     * whether the record is recorded.
     */
    reset: (kind: RecordTypeName, key: Key) => reset(kind, key) > 0,
    /** Returns up to `most` keys of reset records that were not read since. It scans all rows. */
    resets: db.values<[RecordTypeName, most: number], Key>(
      `select key from recorded where kind = ? and shown = '${resetMark}' order by key limit ?`,
    ),
    /** Deletes the row of a key. */
    drop: db.run<[RecordTypeName, Key]>('delete from recorded where kind = ? and key = ?'),
    /** Returns at most `most` records with a platform id, spread evenly over all keys. */
    sample: (kind: RecordTypeName, most: number) => sample({ kind, most }),
    /** Counts the rows of a record type. */
    count: (kind: RecordTypeName) => count(kind) ?? 0,
    /** Returns whether there are no rows of any record type. */
    isEmpty: () => !any(),
  };
}

/** Finds rows and keys by the ids of the source. */
function originsIn(db: Statements) {
  const ofOrigin = db.all<[kind: string, id: string, notKey: string], StoredRecord>(
    `select r.* from origin o join recorded r on r.kind = o.kind and r.key = o.key
     where o.kind = ? and o.id = ? and o.key <> ?`,
  );
  // With plain joins SQLite would scan all ids for every key.
  const successors = db.values<{ kind: string; key: string }, Key>(
    `with was (id) as (
       select id from origin indexed by origin_by_key where kind = @kind and key = @key)
     select s.key from was cross join temp.strange s on s.kind = @kind and s.id = was.id
     where s.key not in (@key, '')
     union
     select o.key from was cross join origin o on o.kind = @kind and o.id = was.id
     where o.key <> @key and ${isStaged('o')}
     order by key`,
  );
  const isLater = db.has<[kind: string, id: string, key: string]>(
    `select 1 from origin first join origin o indexed by origin_by_key
       on o.kind = first.kind and o.key = first.key and o.since > first.since
     where first.kind = ? and first.id = ? and first.key = ? limit 1`,
  );
  const adopt = db.run<KeyRange & { kind: string; since: number }>(
    `insert or ignore into origin (kind, id, key, since)
     select s.kind, s.id, s.key, @since from temp.strange s
       join recorded r on r.kind = s.kind and r.key = s.key
     where ${inRange('s', 'id')}`,
  );
  const namesakes = db.values<{ kind: string; key: string }, Key>(
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
  const found = db.values<KeyRange & { kind: string }, Key>(
    `select r.key from recorded r where ${inRange('r')}
     union
     select o.key from temp.observed o indexed by observed_by_key
     where ${inRange('o')} and exists (
       select 1 from temp.staged s where s.kind = o.kind and s.key = o.key)`,
  );
  return {
    /** Returns the rows with other keys under which one of these source ids was known. */
    ofOrigins: (kind: RecordTypeName, ids: readonly string[], notKey: Key) =>
      ids.flatMap((id) => ofOrigin(kind, id, notKey)).map(fromStored),
    /** Returns the other keys under which this run's reading has the source ids of a key. */
    successors: (kind: RecordTypeName, key: Key) => successors({ kind, key }),
    /** Returns whether at least one source id of a key is missing from this run's reading. */
    hasStrays: db.has<[RecordTypeName, Key]>(
      `select 1 from origin o indexed by origin_by_key
       where o.kind = ? and o.key = ? and not exists (
         select 1 from temp.stands s where s.kind = o.kind and s.id = o.id) limit 1`,
    ),
    /** Returns every source id that a record has had while it was recorded. */
    originsOf: db.values<[RecordTypeName, Key], string>(
      'select id from origin where kind = ? and key = ? order by id',
    ),
    /**
     * Returns the other keys under which the same record is or was known: by a source id from this
     * or an earlier reading, or by a contact's id on the platform. It scans all rows.
     */
    namesakes: (kind: RecordTypeName, key: Key) => namesakes({ kind, key }),
    /**
     * Stores the key of every source id in a range of ids, if the record is recorded. `since` is
     * the time from which the key is known, in milliseconds since the epoch.
     */
    adoptOrigins: (kind: RecordTypeName, range: KeyRange, since: number) =>
      adopt({ kind, ...range, since }),
    /** Returns whether no other source id was stored for this key after this one. */
    isLastOrigin: (kind: RecordTypeName, id: string, key: Key) => !isLater(kind, id, key),
    /** Returns the keys of a range that are recorded, or that both sides have in this run. */
    keysFound: (kind: RecordTypeName, range: KeyRange) => found({ kind, ...range }),
    /** Returns every key that this source id has had, including keys of deleted records. */
    keysOfOrigin: db.values<[RecordTypeName, id: string], Key>(
      'select key from origin where kind = ? and id = ? order by key',
    ),
  };
}

/** Finds rows by the ids of the platform. */
function platformIdsIn(db: Statements) {
  const ofId = db.one<[kind: string, id: string, notKey: string], StoredRecord>(
    `select * from recorded indexed by recorded_by_id
     where kind = ? and id = ? and key <> ? limit 1`,
  );
  const everOfId = db.all<{ kind: string; id: string; notKey: string }, StoredRecord>(
    `select r.* from recorded r indexed by recorded_by_id
     where r.kind = @kind and r.id = @id and r.key <> @notKey
     union
     select r.* from renamed n cross join recorded r on r.kind = n.kind and r.key = n.key
     where n.kind = @kind and n.id = @id and n.key <> @notKey
     order by key`,
  );
  const those = `from recorded r where ${inRange('r')} and r.id is not null
    and not exists (select 1 from temp.observed o where o.kind = r.kind and o.id = r.id)`;
  const count = db.value<KeyRange & { kind: string }, number>(`select count(*) ${those}`);
  const unlisted = db.all<KeyRange & { kind: string; from: number; most: number }, StoredRecord>(
    `select r.* ${those} order by r.key limit @most offset @from`,
  );
  return {
    /** Returns the row with another key that has this platform id. */
    ofId(kind: RecordTypeName, id: string, notKey: Key): RecordedRow | undefined {
      const row = ofId(kind, id, notKey);
      return row && fromStored(row);
    },
    /**
     * Returns all rows with other keys that have this platform id, or had it before they were
     * renamed.
     */
    everOfId: (kind: RecordTypeName, id: string, notKey: Key) =>
      everOfId({ kind, id, notKey }).map(fromStored),
    /** Counts the rows of a range with a platform id that is not in this run's listing. */
    countUnlisted: (kind: RecordTypeName, range: KeyRange) => count({ kind, ...range }) ?? 0,
    /** Returns up to `count` of these rows in key order, skipping the first `after` rows. */
    unlisted: (
      kind: RecordTypeName,
      { range, after: from, count: most }: { range: KeyRange; after: number; count: number },
    ) => unlisted({ kind, ...range, from, most }).map(fromStored),
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

function fromStored({ seen_at: seenAt, id, shown, desired, ...row }: StoredRecord): RecordedRow {
  return {
    ...row,
    id: id ?? undefined,
    shown: shown ?? undefined,
    desired: desired ?? undefined,
    seenAt,
  };
}
