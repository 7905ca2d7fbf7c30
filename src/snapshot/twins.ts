import type { Key, KindName } from '../model/record.ts';
import { inSpan, type Span } from './spans.ts';
import type { Statements } from './statements.ts';

/**
 * Which records of the source stand under one name, where origins do not tell: of several, and of
 * one that wants nothing and has nothing recorded. Whoever reads one of them by itself has to read
 * the others too: one may want her out, and be older than the one that wants her in.
 */
export interface Twins {
  /** Those that this run's reading shows, in a span of keys. */
  note(kind: KindName, span: Span): void;
  /** Those that it does not show any more. */
  dropOld(kind: KindName): void;
  /** Whoever stood under this name. */
  drop(kind: KindName, key: Key): void;
  of(kind: KindName, key: Key): string[];
  /** Under which names this record stands. */
  namesOf(kind: KindName, id: string): Key[];
}

export function twinsIn(db: Statements): Twins {
  const note = db.prepare<Span & { kind: string }>(
    `insert or ignore into twin (kind, key, id)
     select s.kind, s.key, s.id from temp.desired s
     where ${inSpan('s')} and s.id <> '' and (
       exists (
         select 1 from temp.staged t where t.kind = s.kind and t.key = s.key and t.id <> s.id)
       or ((not s.wants or s.reason is not null) and not exists (
         select 1 from recorded r where r.kind = s.kind and r.key = s.key)))`,
  );
  const dropOld = db.prepare<{ kind: string }>(
    `delete from twin where kind = @kind and not exists (
       select 1 from temp.staged s
       where s.kind = @kind and s.key = twin.key and s.id = twin.id)`,
  );
  const of = db.prepare<[string, string], { id: string }>(
    'select id from twin where kind = ? and key = ? order by id',
  );
  const names = db.prepare<[string, string], { key: Key }>(
    'select key from twin indexed by twin_by_id where kind = ? and id = ?',
  );
  const drop = db.prepare('delete from twin where kind = ? and key = ?');
  return {
    note: (kind, span) => void note.run({ kind, ...span }),
    dropOld: (kind) => void dropOld.run({ kind }),
    drop: (kind, key) => void drop.run(kind, key),
    namesOf: (kind, id) => names.all(kind, id).map(({ key }) => key),
    of: (kind, key) => of.all(kind, key).map(({ id }) => id),
  };
}
