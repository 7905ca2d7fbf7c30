import { type Statements, withoutNull } from '../database/prepared-statements.ts';
import type { Key, RecordedRow, RecordTypeName } from '../../domain/record.ts';
import { inRange, isStaged, type RecordName, type RecordRange } from '../database/key-range.ts';

/** The columns of the tables `recorded` and `noted`, and how they are read and written. */
export const recordedColumns = 'kind, key, id, ownership, body, shown, desired, seen_at';
export const recordedValues = '@kind, @key, @id, @ownership, @body, @shown, @desired, @seenAt';
const columnsOf = (table: string): string =>
  `${recordedColumns.replaceAll(/\w+/g, `${table}.$&`)} "seenAt"`;

/** The value of `shown` after a reset, which never equals a fingerprint. */
export const resetMark = 'reset';

/** The recorded state: for each record of the mirror, what the platform last confirmed. */
export function recordedIn(db: Statements) {
  return {
    ...originsIn(db),
    ...platformIdsIn(db),
    get: db.one<[RecordTypeName, Key], RecordedRow>(
      `select ${columnsOf('recorded')} from recorded where kind = ? and key = ?`,
      withoutNull,
    ),
    next: db.all<[RecordTypeName, after: Key, most: number], RecordedRow>(
      `select ${columnsOf('recorded')} from recorded where kind = ? and key > ? order by key limit ?`,
      withoutNull,
    ),
    put: db.run<RecordedRow>(
      `insert or replace into recorded (${recordedColumns}) values (${recordedValues})`,
    ),
    /** Forgets how the platform last showed a record and what was decided, and nothing else. */
    reset: db.run<[RecordTypeName, Key]>(
      `update recorded set shown = '${resetMark}', desired = null where kind = ? and key = ?`,
    ),
    /** The reset records that were not read since. It scans all rows. */
    resets: db.values<[RecordTypeName, most: number], Key>(
      `select key from recorded where kind = ? and shown = '${resetMark}' order by key limit ?`,
    ),
    drop: db.run<[RecordTypeName, Key]>('delete from recorded where kind = ? and key = ?'),
    /** Records with a platform id, spread evenly over all keys. */
    sample: db.all<{ kind: RecordTypeName; most: number }, { key: Key; id: string }>(
      `select min(key) key, id from (
         select key, id, ntile(cast(@most as integer)) over (order by key) part
         from recorded where kind = @kind and id is not null)
       group by part`,
    ),
    count: db.number<[RecordTypeName]>('select count(*) from recorded where kind = ?'),
    hasAny: db.has<[]>('select 1 from recorded limit 1'),
  };
}

function originsIn(db: Statements) {
  return {
    ofOrigin: db.all<[RecordTypeName, id: string, notKey: Key], RecordedRow>(
      `select ${columnsOf('r')} from origin o join recorded r on r.kind = o.kind and r.key = o.key
       where o.kind = ? and o.id = ? and o.key <> ?`,
      withoutNull,
    ),
    /**
     * Returns the other keys under which this run's reading has the source ids of a key. With plain
     * joins SQLite would scan all ids for every key.
     */
    successors: db.values<RecordName, Key>(
      `with was (id) as (
         select id from origin indexed by origin_by_key where kind = @kind and key = @key)
       select s.key from was cross join temp.strange s on s.kind = @kind and s.id = was.id
       where s.key not in (@key, '')
       union
       select o.key from was cross join origin o on o.kind = @kind and o.id = was.id
       where o.key <> @key and ${isStaged('o')}
       order by key`,
    ),
    hasStrays: db.has<[RecordTypeName, Key]>(
      `select 1 from origin o indexed by origin_by_key
       where o.kind = ? and o.key = ? and not exists (
         select 1 from temp.stands s where s.kind = o.kind and s.id = o.id) limit 1`,
    ),
    originsOf: db.values<[RecordTypeName, Key], string>(
      'select id from origin where kind = ? and key = ? order by id',
    ),
    /**
     * Returns the other keys under which the same record is or was known: by a source id from this
     * or an earlier reading, or by a contact's id on the platform. It scans all rows.
     */
    namesakes: db.values<RecordName, Key>(
      `with named (id) as (
         select id from origin indexed by origin_by_key where kind = @kind and key = @key
         union select id from temp.staged where kind = @kind and key = @key and id <> '')
       select key from origin where kind = @kind and key <> @key and id in named
       union
       select key from temp.stands where kind = @kind and key not in (@key, '') and id in named
       union
       select r.key from recorded r, json_each(r.body, '$.contacts') c
       where r.kind = @kind and r.key <> @key and c.value ->> 'id' in (
         select c.value ->> 'id' from recorded r, json_each(r.body, '$.contacts') c
         where r.kind = @kind and r.key = @key)
       order by key`,
    ),
    /** Stores the key of every source id in a range of ids, if the record is recorded. */
    adoptOrigins: db.run<RecordRange & { since: number }>(
      `insert or ignore into origin (kind, id, key, since)
       select s.kind, s.id, s.key, @since from temp.strange s
         join recorded r on r.kind = s.kind and r.key = s.key
       where ${inRange('s', 'id')}`,
    ),
    /** Whether another source id was stored for this key after this one. */
    hasLaterOrigin: db.has<[RecordTypeName, id: string, Key]>(
      `select 1 from origin first join origin o indexed by origin_by_key
         on o.kind = first.kind and o.key = first.key and o.since > first.since
       where first.kind = ? and first.id = ? and first.key = ? limit 1`,
    ),
    /** Returns the keys of a range that are recorded, or that both sides have in this run. */
    keysFound: db.values<RecordRange, Key>(
      `select r.key from recorded r where ${inRange('r')}
       union
       select o.key from temp.observed o indexed by observed_by_key
       where ${inRange('o')} and exists (
         select 1 from temp.staged s where s.kind = o.kind and s.key = o.key)`,
    ),
    /** With the keys of deleted records. */
    keysOfOrigin: db.values<[RecordTypeName, id: string], Key>(
      'select key from origin where kind = ? and id = ? order by key',
    ),
  };
}

function platformIdsIn(db: Statements) {
  const unlisted = `from recorded r where ${inRange('r')} and r.id is not null
    and not exists (select 1 from temp.observed o where o.kind = r.kind and o.id = r.id)`;
  return {
    ofId: db.one<[RecordTypeName, id: string, notKey: Key], RecordedRow>(
      `select ${columnsOf('recorded')} from recorded indexed by recorded_by_id
       where kind = ? and id = ? and key <> ? limit 1`,
      withoutNull,
    ),
    /** The rows with other keys that have this platform id, or had it before a renaming. */
    everOfId: db.all<{ kind: RecordTypeName; id: string; notKey: Key }, RecordedRow>(
      `select ${columnsOf('r')} from recorded r indexed by recorded_by_id
       where r.kind = @kind and r.id = @id and r.key <> @notKey
       union
       select ${columnsOf('r')} from renamed n
         cross join recorded r on r.kind = n.kind and r.key = n.key
       where n.kind = @kind and n.id = @id and n.key <> @notKey
       order by key`,
      withoutNull,
    ),
    countUnlisted: db.number<RecordRange>(`select count(*) ${unlisted}`),
    unlisted: db.all<RecordRange & { from: number; most: number }, RecordedRow>(
      `select ${columnsOf('r')} ${unlisted} order by r.key limit @most offset @from`,
      withoutNull,
    ),
  };
}
