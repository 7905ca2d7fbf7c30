/**
 * Stores which staged changes a run leaves to a later one, because no window allows them now, or
 * because they wait for a canary.
 */
import type { Op } from '../../domain/change.ts';
import type { GuardClass } from '../../domain/guard-classes.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';
import { isGuarded, type Guarded } from '../database/key-range.ts';
import type { Statements } from '../database/prepared-statements.ts';
import { isStated } from './approval-holds.ts';

/** What a change waits for. */
export type Deferral = 'window' | 'canary';

/** The changes that a run leaves to a later one. */
export interface DeferredChanges {
  /** Removes the changes of a range from the plan, except what is urgent and what waits. */
  defer(guarded: Guarded): void;
  /** Removes the changes of these records likewise, because they wait for a canary. */
  deferFor(guarded: Guarded, keys: readonly Key[]): void;
  /** Notes a change of the journal that is not sent, by its number. */
  add(seq: number): void;
  /** Returns whether a change of the journal is made at any time. */
  isUrgent(seq: number): boolean;
  /** Counts the records with such a change of a class, all or those that wait for one thing. */
  count(guard: GuardClass, by?: Deferral): number;
  /** Counts these changes of a record type, by operation. */
  ops(kind: RecordTypeName): { op: Op; n: number }[];
  /** Drops the changes of a record for which a new decision is made. */
  forget(kind: RecordTypeName, key: Key): void;
}

/**
 * Selects the rows of a table of changes that no window delays: what the source states about one
 * person, and the opt-outs of `undo`, which no other run makes.
 */
function isUrgent(table: string): string {
  const isUndone = `(${table}.op = 'opt_out' and ${table}.body ->> '$.cause' = 'undone')`;
  return `(${isStated(table)} or coalesce(${isUndone}, 0))`;
}

/** Prepares the statements about changes that are left to a later run. */
export function deferredIn(db: Statements): DeferredChanges {
  const those = `from temp.planned where ${isGuarded} and held = 0 and not ${isUrgent('planned')}`;
  const columns = 'guard, key, kind, op, part';
  const note = db.prepare<Guarded>(
    `insert or ignore into temp.deferred (${columns}, by) select ${columns}, 'window' ${those}`,
  );
  const remove = db.prepare<Guarded>(`delete ${those}`);
  const some = `${those} and key in (select value from json_each(@keys))`;
  const noteSome = db.prepare<Guarded & { keys: string }>(
    `insert or ignore into temp.deferred (${columns}, by) select ${columns}, 'canary' ${some}`,
  );
  const removeSome = db.prepare<Guarded & { keys: string }>(`delete ${some}`);
  const add = db.prepare<[number]>(
    `insert or ignore into temp.deferred (${columns}, by)
     select ${columns}, 'window' from change where seq = ? and guard is not null`,
  );
  const urgent = db.prepare<[number], { one: 1 }>(
    `select 1 one from change where seq = ? and ${isUrgent('change')}`,
  );
  const count = db.prepare<{ guard: string; by: string | null }, { n: number }>(
    `select count(*) n from (select distinct kind, key from temp.deferred
       where guard = @guard and by = coalesce(@by, by))`,
  );
  const ops = db.prepare<[string], { op: Op; n: number }>(
    'select op, count(*) n from temp.deferred where kind = ? group by op',
  );
  const forget = db.prepare('delete from temp.deferred where kind = ? and key = ?');
  return {
    defer(guarded) {
      note.run(guarded);
      remove.run(guarded);
    },
    deferFor(guarded, listed) {
      const keys = JSON.stringify(listed);
      noteSome.run({ ...guarded, keys });
      removeSome.run({ ...guarded, keys });
    },
    add: (seq) => void add.run(seq),
    isUrgent: (seq) => urgent.get(seq) !== undefined,
    count: (guard, by) => count.get({ guard, by: by ?? null })?.n ?? 0,
    ops: (kind) => ops.all(kind),
    forget: (kind, key) => void forget.run(kind, key),
  };
}
