/**
 * Queries the changes that withdraw opt-outs which the source had stated, so that a column of
 * opt-outs that comes empty does not opt all these people in again.
 */
import type { RecordTypeName } from '../../domain/record.ts';
import { isNew, withdraws, withholding } from './guarded-changes.ts';
import { rowsOf } from './guarded-shape.ts';
import { isGuarded, type Guarded } from '../database/key-range.ts';
import type { Statements } from '../database/prepared-statements.ts';

/** The queries about changes that withdraw a stated opt-out; a record counts once. */
export interface Withdrawals {
  /** Counts the records with such a change that is new (`isNew` in guarded-changes.ts). */
  fresh(guarded: Guarded): number;
  /** Counts all records with such a change in this run, including those approved or withheld. */
  all(guarded: Guarded): number;
  /**
   * Counts the records with an opt-out from one of these channels that we made because the source
   * stated it, and that nobody has released. Records whose opt-out this run has withdrawn still
   * count.
   */
  stated(kind: RecordTypeName, guarded: Guarded, parts: readonly string[]): number;
  /** Withholds all new changes of the class to the records that `fresh` counts. */
  withhold(guarded: Guarded): void;
}

/** Prepares the queries about changes that withdraw a stated opt-out. */
export function withdrawalsIn(db: Statements): Withdrawals {
  const fresh = db.prepare<Guarded, { n: number }>(
    `select count(*) n from (
       select distinct kind, key from temp.planned
       where ${isGuarded} and ${isNew} and ${withdraws('planned')})`,
  );
  const all = db.prepare<Guarded, { n: number }>(
    `select count(*) n from (
       select kind, key from temp.planned indexed by planned_by_guard
       where ${isGuarded} and ${withdraws('planned')}
       union
       select kind, key from temp.passed where ${isGuarded} and withdraws
       union
       select kind, key from temp.withheld where ${isGuarded} and ${withdraws('withheld')})`,
  );
  const stated = db.prepare<Guarded & { kind: string; parts: string }, { n: number }>(
    `select count(*) n from (${rowsOf(() => 'true')}) k
     where (instr(k.body, '"stated"') > 0
       and exists (select 1 from json_each(k.body, '$.channels') c
         where c.value ->> '$.is' = 'opt_out' and c.value ->> '$.by' = 'us'
           and c.value ->> '$.cause' = 'stated'
           and c.value ->> '$.released' is null and c.value ->> '$.settled' is null
           and c.key in (select value from json_each(@parts))))
       or exists (select 1 from temp.passed t
         where t.guard = @guard and t.key = k.key and t.kind = k.kind and t.withdraws)`,
  );
  const withhold = withholding(
    db,
    `${isNew} and exists (
       select 1 from temp.planned t indexed by planned_by_guard
       where t.guard = @guard and t.key = planned.key and t.kind = planned.kind
         and t.approved is null and ${withdraws('t')})`,
  );
  return {
    fresh: (guarded) => fresh.get(guarded)?.n ?? 0,
    all: (guarded) => all.get(guarded)?.n ?? 0,
    stated: (kind, guarded, parts) =>
      stated.get({ kind, ...guarded, parts: JSON.stringify(parts) })?.n ?? 0,
    withhold: (guarded) => void withhold(guarded),
  };
}
