import type { Key, KindName } from '../model/record.ts';
import { inSpan, type Span } from './spans.ts';
import type { Statements } from './statements.ts';

/**
 * Which records of the source stand under one name, also where nothing is recorded of it: whoever
 * reads one of them by itself has to read the others too. Hardly anybody has several.
 */
export interface Twins {
  /** Those that this run's reading shows, of the candidates in a span of keys. */
  note(kind: KindName, span: Span): void;
  /** Those that it does not show any more. */
  dropOld(kind: KindName): void;
  of(kind: KindName, key: Key): string[];
}

export function twinsIn(db: Statements): Twins {
  const note = db.prepare<Span & { kind: string }>(
    `insert or ignore into twin (kind, key, id)
     select s.kind, s.key, s.id from temp.candidate c
       join temp.staged s on s.kind = c.kind and s.key = c.key
     where ${inSpan('c')} and s.id <> '' and exists (
       select 1 from temp.staged t where t.kind = s.kind and t.key = s.key and t.id <> s.id)`,
  );
  const dropOld = db.prepare<{ kind: string }>(
    `delete from twin where kind = @kind and not exists (
       select 1 from temp.staged s
       where s.kind = @kind and s.key = twin.key and s.id = twin.id)`,
  );
  const of = db.prepare<[string, string], { id: string }>(
    'select id from twin where kind = ? and key = ? order by id',
  );
  return {
    note: (kind, span) => void note.run({ kind, ...span }),
    dropOld: (kind) => void dropOld.run({ kind }),
    of: (kind, key) => of.all(kind, key).map(({ id }) => id),
  };
}
