import type { Statements } from './statements.ts';
import type { Key, KindName } from '../model/record.ts';

/**
 * Narrows all that was read to the records that need a decision: SQL compares fingerprints, so that
 * only the few that differ from what is recorded and settled reach the planner.
 */
export interface Narrowing {
  /**
   * After the platform was listed. `absent`: recorded records count too that the source no longer
   * names, or only as gone or out of scope.
   */
  full(kind: KindName, absent: boolean): void;
  /** What is recorded stands in for the platform. */
  fast(kind: KindName, absent: boolean): void;
  /** Only records that were read by themselves since they were decided upon last. */
  add(kind: KindName, key: Key): void;
  /** The next candidates after `after`, in the order of their keys. */
  next(kind: KindName, after: Key, count: number): Key[];
  /** Of one kind, or of all. */
  clear(kind?: KindName): void;
}

/** One row per key of the source, whatever the number of its records. */
const wanted = `select key, count(*) n, max(reason is not null) broken, max(wants) wants,
  max(fingerprint) fingerprint
  from temp.desired where kind = @kind and key is not null group by key`;

/** One row per key of the platform. */
const shown = `select key, count(*) n, max(fingerprint) fingerprint
  from temp.observed where kind = @kind group by key`;

/** What the platform refused, whatever became of it. */
const parked = `union all
  select kind, key from problem where kind = @kind and desired is not null`;

/** Recorded under a key that the source has replaced by another one. */
const moved = `union all
  select @kind, r.key from recorded r where r.kind = @kind and r.id is not null
    and not exists (select 1 from temp.desired d where d.kind = @kind and d.key = r.key)
    and exists (select 1 from origin o join temp.desired d on d.kind = o.kind and d.id = o.id
      where o.kind = @kind and o.key = r.key)`;

const differsFromSource = `d.n > 1 or d.broken or (r.key is null and d.wants)
  or (r.key is not null and r.desired is not d.fingerprint)`;

export function narrowingIn(db: Statements): Narrowing {
  const full = db.prepare(
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
     where r.kind = @kind and (@absent or r.shown is not o.fingerprint or o.n > 1)
       and not exists (select 1 from temp.desired d where d.kind = @kind and d.key = r.key
         and (not @absent or d.presence = 'present' or d.reason is not null))
     ${moved}
     ${parked}`,
  );
  const fast = db.prepare(
    `insert or ignore into temp.candidate (kind, key)
     select @kind, d.key from (${wanted}) d
       left join recorded r on r.kind = @kind and r.key = d.key
     where ${differsFromSource}
     union all
     select @kind, r.key from recorded r where r.kind = @kind and @absent
       and not exists (select 1 from temp.desired d where d.kind = @kind and d.key = r.key)
     ${parked}`,
  );
  const add = db.prepare('insert or ignore into temp.candidate (kind, key) values (?, ?)');
  const next = db.prepare<[string, string, number], { key: Key }>(
    'select key from temp.candidate where kind = ? and key > ? order by key limit ?',
  );
  const clear = db.prepare('delete from temp.candidate where @kind is null or kind = @kind');
  return {
    full: (kind, absent) => void full.run({ kind, absent: Number(absent) }),
    fast: (kind, absent) => void fast.run({ kind, absent: Number(absent) }),
    add: (kind, key) => void add.run(kind, key),
    next: (kind, after, count) => next.all(kind, after, count).map(({ key }) => key),
    clear: (kind) => void clear.run({ kind: kind ?? null }),
  };
}
