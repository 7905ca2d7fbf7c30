/** Reads back what a run changed, for `undo`. */
import type { Key, RecordTypeName } from '../../domain/record.ts';
import type { DoneChange } from '../../domain/change.ts';
import type { Statements } from '../database/prepared-statements.ts';

/** The acknowledged changes of earlier runs. */
export interface RunChanges {
  /** Returns the next keys after `after`, in key order, of which a run has changed a record. */
  keys(of: RunPart, after: Key, count: number): Key[];
  /** Returns the changes that a run made to a record, oldest first. */
  of(run: RunPart, key: Key): DoneChange[];
}

interface RunPart {
  run: string;
  kind: RecordTypeName;
}

interface StoredDone extends Omit<DoneChange, 'target' | 'before' | 'later'> {
  target: string | null;
  before: string | null;
  later: string | null;
}

/** Prepares the statements. */
export function runChangesIn(db: Statements): RunChanges {
  const those = `run = @run and kind = @kind and state = 'acked'`;
  const keys = db.prepare<RunPart & { after: Key; count: number }, { key: Key }>(
    `select distinct key from change indexed by change_by_run
     where ${those} and key > @after order by key limit @count`,
  );
  // A later change to the whole record, or to the same part, comes from another run.
  const done = db.prepare<RunPart & { key: Key }, StoredDone>(
    `select op, part, target, body, before, (
       select l.run from change l indexed by change_by_key
       where l.kind = c.kind and l.key = c.key and l.run <> c.run and l.seq > c.seq
         and l.state = 'acked' and (l.part in (c.part, '') or c.part = '')
       order by l.seq desc limit 1) later
     from change c indexed by change_by_key where ${those} and key = @key order by seq`,
  );
  return {
    keys: (part, after, count) => keys.all({ ...part, after, count }).map(({ key }) => key),
    of: (part, key) =>
      done.all({ ...part, key }).map(({ target, before, later, ...row }) => ({
        ...row,
        target: target ?? undefined,
        before: before ?? undefined,
        later: later ?? undefined,
      })),
  };
}
