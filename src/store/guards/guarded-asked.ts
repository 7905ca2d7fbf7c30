/**
 * Queries and withholds the changes for which a rule of the configuration can ask for an approval.
 * Opt-outs that the source states, deletions that it flags, and erasures are never among them.
 */
import type { Op } from '../../domain/change.ts';
import { isUnpassed, withholding } from './guarded-changes.ts';
import { isStated, waitsStill } from './approval-holds.ts';
import { isGuarded, type Guarded } from '../database/key-range.ts';
import type { Statements } from '../database/prepared-statements.ts';

/** The queries about changes that a rule can withhold. */
export interface AskedChanges {
  /** Counts the changes of a range by operation, and their records. */
  counts(guarded: Guarded): { records: number; ops: { op: Op; n: number }[] };
  /** Counts the templates that are published once the staged changes are made. */
  published(): number;
  /** Withholds the changes of a range. Returns whether there are any. */
  withhold(guarded: Guarded): boolean;
  /** Withholds those that have been waiting since an earlier run. */
  withholdStanding(guarded: Guarded): boolean;
}

/** A first load is exempt from the limit of a guard, and not from a rule. */
const canWait = `(approved is null or approved = 'exempt') and ${isUnpassed}`;
const canAsk = `${canWait} and not ${isStated('planned')}`;

/** Prepares the queries about changes that a rule can withhold. */
export function askedChangesIn(db: Statements): AskedChanges {
  const those = `from temp.planned indexed by planned_by_guard where ${isGuarded} and ${canAsk}`;
  const ops = db.prepare<Guarded, { op: Op; n: number }>(
    `select op, count(*) n ${those} group by op`,
  );
  const records = db.prepare<Guarded, { n: number }>(
    `select count(*) n from (select distinct kind, key ${those})`,
  );
  const published = db.prepare<[], { n: number }>(
    `select count(distinct key) n from temp.planned indexed by planned_in_order
     where phase = 0 and kind = 'template'
       and (body ->> '$.wanted.status' = 'published' or body ->> '$.publish' = 'next')`,
  );
  const withhold = withholding(db, canAsk);
  const standing = withholding(db, `${canWait} and ${waitsStill('planned')}`);
  return {
    counts: (guarded) => ({ records: records.get(guarded)?.n ?? 0, ops: ops.all(guarded) }),
    published: () => published.get()?.n ?? 0,
    withhold: (guarded) => withhold(guarded) > 0,
    withholdStanding: (guarded) => standing(guarded) > 0,
  };
}
