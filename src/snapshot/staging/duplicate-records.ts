import type { Key, RecordTypeName } from '../../domain/record.ts';
import { inRange, type KeyRange } from '../database/key-range.ts';
import type { Statements } from '../database/prepared-statements.ts';

/**
 * Which records of the source stand under one name, where origins do not tell: of several, and of
 * one that has nothing recorded. Whoever reads one of them by itself has to read the others too:
 * one may want her out, or have left, and be older than the one that wants her in.
 */
export interface Duplicates {
  /**
   * Those that this run's reading shows, in a range of keys. When it has been read, who wants
   * something is left out: most of those are about to be recorded. When all is done, who is not.
   */
  note(kind: RecordTypeName, range: KeyRange, when: 'read' | 'done'): void;
  /** Those that it does not show any more, and those whose origin tells by now. */
  dropOld(kind: RecordTypeName): void;
  /** Whoever stood under this name. */
  drop(kind: RecordTypeName, key: Key): void;
  of(kind: RecordTypeName, key: Key): string[];
  /** Under which names this record stands. */
  namesOf(kind: RecordTypeName, id: string): Key[];
}

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
  return {
    note: (kind, range, when) => void note.run({ kind, ...range, done: Number(when === 'done') }),
    dropOld: (kind) => void dropOld.run({ kind }),
    drop: (kind, key) => void drop.run(kind, key),
    namesOf: (kind, id) => names.all(kind, id).map(({ key }) => key),
    of: (kind, key) => of.all(kind, key).map(({ id }) => id),
  };
}
