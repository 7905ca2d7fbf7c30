/**
 * Queries the changes that withdraw opt-outs which the source had stated, so that a column of
 * opt-outs that comes empty does not opt all these people in.
 */
import type { RecordTypeName } from '../../domain/record.ts';
import { isNew, withdraws, withholding } from './guarded-changes.ts';
import { inRange, isGuarded, type Guarded } from '../database/key-range.ts';
import type { Statements } from '../database/prepared-statements.ts';

/**
 * The queries about changes that withdraw a stated opt-out; a record counts once. Each is counted
 * for its part, and for the fields that stated the opt-out as if these were a part, too.
 */
export interface Withdrawals {
  /** Counts the records with such a change that is new (`isNew` in guarded-changes.ts). */
  fresh(guarded: Guarded): number;
  /** Counts all records with such a change in this run, including those approved or withheld. */
  all(guarded: Guarded): Counts;
  /**
   * Counts the records of the source with an opt-out from one of these parts, whether or not the
   * platform has them. Left out is who is opted in, released by an operator, opted out by their own
   * doing, gone from the source, or silent now. Records whose opt-out this run has withdrawn still
   * count.
   */
  stated(kind: RecordTypeName, guarded: Guarded, parts: readonly string[]): Counts;
  /** Withholds all new changes of the class to the records that `fresh` counts. */
  withhold(guarded: Guarded): void;
}

/** Numbers of records in all parts together, and in each part. */
export type Counts = readonly { part: string | null; n: number }[];

/** Counts the distinct records of rows with a key and a part, by part and together. */
export const countedByPart = (rows: string): string =>
  `with counted as (${rows})
   select null part, count(distinct key) n from counted
   union all select part, count(distinct key) n from counted group by part`;

/** Adds the fields that stated the opt-outs of rows with a kind, a key and a part. */
const withFields = (rows: string): string => `with those as (${rows})
   select key, part from those
   union all
   select s.key, 'stated by ' || s.stated_by from those t
     join stated s on s.kind = t.kind and s.key = t.key and s.part = t.part
   where s.says in ('opt_out', 'unread') and s.stated_by is not null`;

/** Prepares the queries about changes that withdraw a stated opt-out. */
export function withdrawalsIn(db: Statements): Withdrawals {
  const fresh = db.prepare<Guarded, { n: number }>(
    `select count(*) n from (
       select distinct kind, key from temp.planned
       where ${isGuarded} and ${isNew} and ${withdraws('planned')})`,
  );
  const passed = `select kind, key, part from temp.passed where ${isGuarded} and withdraws`;
  const all = db.prepare<Guarded, Counts[number]>(
    countedByPart(
      withFields(`select kind, key, part from temp.planned indexed by planned_by_guard
       where ${isGuarded} and ${withdraws('planned')}
       union all
       ${passed}
       union all
       select kind, key, part from temp.withheld where ${isGuarded} and ${withdraws('withheld')}`),
    ),
  );
  const isOver = `m.value ->> '$.is' = 'opt_in' or m.value ->> '$.by' = 'platform'
    or m.value ->> '$.released' is not null or m.value ->> '$.settled' is not null`;
  const stated = db.prepare<Guarded & { kind: string; parts: string }, Counts[number]>(
    countedByPart(
      withFields(`select s.kind, s.key, s.part from stated s
       where ${inRange('s')} and s.says in ('opt_out', 'unread') and s.gone_at is null
         and s.part in (select value from json_each(@parts))
         and not exists (
           select 1 from recorded r, json_each(r.body, '$.channels') m
           where r.kind = s.kind and r.key = s.key and m.key = s.part and (${isOver}))
         and not exists (
           select 1 from temp.desired d, json_each(d.body, '$.channels') c
           where d.kind = s.kind and d.key = s.key and d.id = s.id and d.reason is null
             and c.key = s.part and c.value is null)
       union all
       ${passed}`),
    ),
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
    all: (guarded) => all.all(guarded),
    stated: (kind, guarded, parts) =>
      stated.all({ kind, ...guarded, parts: JSON.stringify(parts) }),
    withhold: (guarded) => void withhold(guarded),
  };
}
