import type { Key, RecordTypeName } from '../../domain/record.ts';
import { inRange, type KeyRange } from '../database/key-range.ts';
import type { Statements } from '../database/prepared-statements.ts';

/**
 * Stores ids of source records by key if the table `origin` does not show them: those of several
 * records with one key, and of records that are not recorded. If one record of a key is read, the
 * others must be read too, because another record may state an opt-out or may be gone, even if it
 * is older than the record that opts in.
 */
export interface Duplicates {
  /**
   * Notes the duplicates that this run has read in a range of keys. `read` skips records that
   * request something, because most of those are about to be recorded. `done` skips none.
   */
  note(kind: RecordTypeName, range: KeyRange, when: 'read' | 'done'): void;
  /** Drops the duplicates that this run has not read, and those that origins now show. */
  dropOld(kind: RecordTypeName): void;
  /** Drops the duplicates of a key. */
  drop(kind: RecordTypeName, key: Key): void;
  /** Returns the ids of the records with a key. */
  of(kind: RecordTypeName, key: Key): string[];
  /** Counts the ids and keys that several records of the staged reading share. */
  count(kind: RecordTypeName): DuplicateCounts;
  /** Returns the keys of the records with an id. */
  namesOf(kind: RecordTypeName, id: string): Key[];
}

/** The number of ids and keys that several records of a reading share. */
export interface DuplicateCounts {
  /** Ids that several records with one key have. */
  ids: number;
  /** Ids that records with different keys have. All of these records are invalid. */
  sharedIds: number;
  /** Keys that several records have, whatever their ids. */
  keys: number;
}

/** Prepares the statements about duplicates. */
export function duplicatesIn(db: Statements): Duplicates {
  const note = db.prepare<KeyRange & { kind: string; done: number }>(
    `insert or ignore into twin (kind, key, id)
     select s.kind, s.key, s.id from temp.desired s
     where ${inRange('s')} and s.id <> '' and (
       exists (
         select 1 from temp.staged t where t.kind = s.kind and t.key = s.key and t.id <> s.id)
       or ((@done or not s.wants or s.reason is not null) and not exists (
         select 1 from recorded r where r.kind = s.kind and r.key = s.key)))`,
  );
  const dropOld = db.prepare<{ kind: string }>(
    `delete from twin where kind = @kind and (
       not exists (
         select 1 from temp.staged s
         where s.kind = @kind and s.key = twin.key and s.id = twin.id)
       or exists (
         select 1 from origin o where o.kind = @kind and o.key = twin.key and o.id = twin.id)
       and not exists (
         select 1 from temp.staged t
         where t.kind = @kind and t.key = twin.key and t.id <> twin.id))`,
  );
  const of = db.prepare<[string, string], { id: string }>(
    'select id from twin where kind = ? and key = ? order by id',
  );
  const names = db.prepare<[string, string], { key: Key }>(
    'select key from twin indexed by twin_by_id where kind = ? and id = ?',
  );
  const drop = db.prepare('delete from twin where kind = ? and key = ?');
  // A record that is also staged under another key is counted under its own.
  const shares = (those: string) => `select count(*) from (
    select 1 from temp.staged where kind = @kind and not again and ${those}
    group by key, id having count(distinct place) > 1)`;
  const count = db.prepare<{ kind: string }, DuplicateCounts>(
    `select (${shares("id <> '' and id not in (select id from temp.shared where kind = @kind)")}) ids,
       (select count(*) from temp.shared where kind = @kind) sharedIds,
       (select count(*) from (
         select 1 from temp.staged where kind = @kind and key <> '' and not again
         group by key having count(distinct place) > 1)) keys`,
  );
  return {
    count: (kind) => count.get({ kind }) ?? { ids: 0, sharedIds: 0, keys: 0 },
    note: (kind, range, when) => void note.run({ kind, ...range, done: Number(when === 'done') }),
    dropOld: (kind) => void dropOld.run({ kind }),
    drop: (kind, key) => void drop.run(kind, key),
    namesOf: (kind, id) => names.all(kind, id).map(({ key }) => key),
    of: (kind, key) => of.all(kind, key).map(({ id }) => id),
  };
}
