/** Queries the changes of a class that a canary is about: those of this run, and those sent. */
import type { Op } from '../../domain/change.ts';
import type { GuardClass } from '../../domain/guard-classes.ts';
import type { Key } from '../../domain/record.ts';
import { isGuarded, type Guarded } from '../database/key-range.ts';
import type { Statements } from '../database/prepared-statements.ts';
import { isStated } from './approval-holds.ts';

/** A change of an earlier run, and whether the platform accepted it. */
export interface SentChange {
  key: Key;
  op: Op;
  part: string;
  target: string | null;
  state: 'acked' | 'rejected';
}

/** The queries about changes that can wait for a canary. */
export interface CanaryChanges {
  /** Returns the records of a range with such a change that may be sent in this run. */
  keys(guarded: Guarded): Key[];
  /** Counts the records with a change that an approved plan lets pass in this run. */
  countApproved(guard: GuardClass): number;
  /** Counts the changes of a run that have no outcome yet. */
  countOpen(guard: GuardClass, run: string): number;
  /**
   * Returns the changes that a run and later runs about all people have sent and that have an
   * outcome, the last one of each record and part. A run that undoes another one hides nothing.
   */
  sent(guard: GuardClass, run: string): SentChange[];
}

/** Prepares the queries about changes that can wait for a canary. */
export function canaryChangesIn(db: Statements): CanaryChanges {
  const keys = db.prepare<Guarded, { key: Key }>(
    `select distinct key from temp.planned indexed by planned_by_guard
     where ${isGuarded} and held = 0 and not ${isStated('planned')}`,
  );
  const approved = db.prepare<[string], { n: number }>(
    `select count(*) n from (
       select distinct kind, key from temp.planned indexed by planned_by_guard
       where guard = ? and held = 0
         and exists (select 1 from approval a where a.plan = planned.approved))`,
  );
  const open = db.prepare<[string, string], { n: number }>(
    `select count(*) n from change indexed by change_by_run
     where run = ? and guard = ? and state in ('planned', 'sent', 'unknown')`,
  );
  const sent = db.prepare<{ guard: string; run: string }, SentChange>(
    `select key, op, part, target, state
     from run r cross join change indexed by change_by_run on change.run = r.id
     where r.number >= (select number from run where id = @run)
       and r.mode in ('full', 'fast') and guard = @guard and state in ('acked', 'rejected')
       and not ${isStated('change')}
       and not exists (
         select 1 from change l indexed by change_by_key
         where l.kind = change.kind and l.key = change.key and l.seq > change.seq
           and not exists (select 1 from run u where u.id = l.run and u.mode = 'undo')
           and l.state in ('acked', 'rejected') and (l.part = change.part or l.op = 'delete'))
     order by key, seq`,
  );
  return {
    keys: (guarded) => keys.all(guarded).map(({ key }) => key),
    countApproved: (guard) => approved.get(guard)?.n ?? 0,
    countOpen: (guard, run) => open.get(run, guard)?.n ?? 0,
    sent: (guard, run) => sent.all({ guard, run }),
  };
}
