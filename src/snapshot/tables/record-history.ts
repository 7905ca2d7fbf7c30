import type { Statements } from '../database/prepared-statements.ts';
import type { Key, RecordTypeName, RecordedRow } from '../../domain/record.ts';
import { keptColumns, type KeptChange } from './change-outcomes.ts';

/** What is remembered of single records, for people to look at. */
export interface RecordHistory {
  /**
   * Every key that is recorded, or was, or that a problem, a change, or one held, is about; each
   * once.
   */
  keys(kind: RecordTypeName): IterableIterator<Key>;
  /** Every record that is recorded, by its key; nothing is written meanwhile. */
  records(kind: RecordTypeName): IterableIterator<Pick<RecordedRow, 'key' | 'body' | 'seenAt'>>;
  /** Keys of which nothing is recorded, and that a conflict is about: what is known bars them. */
  barred(kind: RecordTypeName): Key[];
  /** What was done about a record and what came of it, the newest first. */
  changes(kind: RecordTypeName, key: Key, count: number): (KeptChange & { run: string })[];
}

export function historyIn(db: Statements): RecordHistory {
  const keys = db.prepare<{ kind: string }, { key: Key }>(
    `select key from recorded where kind = @kind
     union select key from origin where kind = @kind
     union select key from problem where kind = @kind
     union select key from change where kind = @kind
     union select key from held where kind = @kind`,
  );
  const records = db.prepare<[string], { key: Key; body: string; seenAt: number }>(
    'select key, body, seen_at seenAt from recorded where kind = ? order by key',
  );
  const barred = db.prepare<{ kind: string }, { key: Key }>(
    `select distinct p.key from problem p where p.kind = @kind and p.class = 'conflict'
       and not exists (select 1 from recorded r where r.kind = p.kind and r.key = p.key)
     order by p.key`,
  );
  const changes = db.prepare<[string, string, number], KeptChange & { run: string }>(
    `select run, ${keptColumns} from change indexed by change_by_key
     where kind = ? and key = ? order by seq desc limit ?`,
  );
  return {
    *keys(kind) {
      for (const { key } of keys.iterate({ kind })) yield key;
    },
    records: (kind) => records.iterate(kind),
    barred: (kind) => barred.all({ kind }).map(({ key }) => key),
    changes: (kind, key, count) => changes.all(kind, key, count),
  };
}
