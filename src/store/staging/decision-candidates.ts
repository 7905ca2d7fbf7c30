import type { Statements } from '../database/prepared-statements.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';
import { inRange, type RecordRange, restRecorded } from '../database/key-range.ts';

/** Selects one row for each key in the source. */
const wanted = `select key, count(*) n, max(reason is not null) broken, max(wants) wants,
  max(fingerprint) fingerprint
  from temp.desired where ${inRange('desired')} group by key`;

/** Selects one row for each key on the platform. */
const shown = `select key, count(*) n, max(fingerprint) fingerprint
  from temp.observed where ${inRange('observed')} group by key`;

/** Selects those of some recorded rows whose key the source has replaced with another. */
const movedIn = (people: string): string => `union all
  select @kind, r.key from ${people} and r.id is not null
    and not exists (select 1 from temp.staged s where s.kind = @kind and s.key = r.key)
    and exists (select 1 from origin o indexed by origin_by_key
      where o.kind = @kind and o.key = r.key and exists (
        select 1 from temp.stands s where s.kind = @kind and s.id = o.id))`;

/** Selects the people that were requested from the source, with their former keys. */
const askedFor = `select kind, key from temp.staged where kind = @kind and key <> ''
  union
  select r.kind, r.key from temp.staged s
    cross join origin o on o.kind = s.kind and o.id = s.id and o.key <> s.key
    cross join recorded r on r.kind = o.kind and r.key = o.key
  where s.kind = @kind and s.key <> '' and r.id is not null and not exists (
    select 1 from temp.staged t where t.kind = o.kind and t.key = o.key)`;

const differsFromSource = `d.n > 1 or d.broken or (r.key is null and d.wants)
  or (r.key is not null and r.desired is not d.fingerprint)`;

const all = `recorded r where ${inRange('r')}`;

const fastIn = (people: string): string => `insert or ignore into temp.candidate (kind, key)
  select @kind, d.key from (${wanted}) d
    left join recorded r on r.kind = @kind and r.key = d.key
  where ${differsFromSource}
  union all
  select @kind, r.key from ${people} and @absent
    and not exists (select 1 from temp.staged s where s.kind = @kind and s.key = r.key)
  ${movedIn(people)}`;

type Narrowed = RecordRange & { absent: boolean };

/** Selects the records that need a decision: those that differ from their recorded state. */
export function candidatesIn(db: Statements) {
  const clear = db.run<[kind: RecordTypeName | undefined]>(
    'delete from temp.candidate where kind = ifnull(?, kind)',
  );
  return {
    /**
     * Adds the candidates of a range after the platform was listed. With `absent`, recorded records
     * that are no longer in the source, or only as gone or out of scope, are candidates, too.
     */
    full: db.run<Narrowed>(
      `insert or ignore into temp.candidate (kind, key)
       select @kind, d.key from (${wanted}) d
         left join recorded r on r.kind = @kind and r.key = d.key
         left join (${shown}) o on o.key = d.key
       where ${differsFromSource}
         or (r.key is null and o.key is not null)
         or (r.key is not null and (r.shown is not o.fingerprint or o.n > 1))
       union all
       select @kind, r.key from recorded r
         left join (${shown}) o on o.key = r.key
       where ${inRange('r')} and (@absent or r.shown is not o.fingerprint or o.n > 1)
         and not exists (select 1 from temp.desired d where d.kind = @kind and d.key = r.key
           and (not @absent or d.presence = 'present' or d.reason is not null))
       ${movedIn(all)}`,
    ),
    /** Adds the candidates of a range, using the recorded state instead of a listing. */
    fast: db.run<Narrowed>(fastIn(all)),
    /** The same, without the records that were found unchanged. */
    fastOfRest: db.run<Narrowed>(fastIn(restRecorded)),
    /** Adds the keys that an incremental reading of the source covered, and their former keys. */
    named: db.run<{ kind: RecordTypeName }>(
      `insert or ignore into temp.candidate (kind, key) ${askedFor}`,
    ),
    /** Adds the records for which the platform refused a change. */
    parked: db.run<[RecordTypeName]>(
      `insert or ignore into temp.candidate (kind, key)
       select kind, key from problem where kind = ? and desired is not null`,
    ),
    add: db.run<[RecordTypeName, Key]>(
      'insert or ignore into temp.candidate (kind, key) values (?, ?)',
    ),
    has: db.has<[RecordTypeName, Key]>('select 1 from temp.candidate where kind = ? and key = ?'),
    next: db.values<[RecordTypeName, after: Key, count: number], Key>(
      'select key from temp.candidate where kind = ? and key > ? order by key limit ?',
    ),
    /** Drops the candidates of one record type, or of all. */
    clear: (kind?: RecordTypeName) => clear(kind),
  };
}
