/** Reads what awaits approval as people look at it: by cause and channel, or of one record. */
import type { Statements } from '../database/prepared-statements.ts';
import { byGuard, type GuardClass } from '../../domain/guard-classes.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';
import { isAfter } from '../tables/approval-order.ts';
import { type HeldChange } from './plan-parts.ts';
import { further, isLeft, isOpen, isRejected, order, shown } from './withheld-sql.ts';

/** Changes of a plan that one decision can cover. `op` is the operation as plans show it. */
interface PlanGroup {
  guard: GuardClass;
  op: string;
  part: string;
  n: number;
}

/** Changes of a plan that one decision can cover, and the approval that covers these of them. */
export interface StatedGroup extends PlanGroup {
  /** The hash of the approval; null if nobody has decided. */
  approval: string | null;
}

/** What became of some of the changes that an approval covers. */
export interface DecidedGroup extends PlanGroup {
  /** The hash of the approved plan or part. */
  plan: string;
  at: number;
  by: string | null;
  reason: string | null;
  /** How many of the records have been done under it, by which run; null if by none. */
  done: number;
  run: string | null;
}

export interface PlanGroups {
  /** Returns the changes of one record that current plans show, that wait, and nobody rejected. */
  waitingOf(kind: RecordTypeName, key: Key): Pick<HeldChange, 'guard' | 'op' | 'part'>[];
  /**
   * Counts the records of a plan that wait, and that nobody has rejected, by what a decision can be
   * limited to, and by which of these approvals covers them.
   */
  statedGroups(plan: string, approvals: readonly { plan: string }[]): StatedGroup[];
  /** Counts, by guard, the records with such a change that one of these approvals covers. */
  countApproved(plan: string, approvals: readonly { plan: string }[]): Record<GuardClass, number>;
  /** Returns the first `count` of these changes for which a guard asks. */
  firstWaiting(plan: string, guard: GuardClass, count: number): HeldChange[];
  /** Returns what became of the newest `count` approvals that runs have used. */
  decidedLately(count: number): DecidedGroup[];
}

/** Prepares the statements that show what awaits approval. */
export function planGroupsIn(db: Statements): PlanGroups {
  const waitingOf = db.prepare<
    { kind: string; key: string },
    Pick<HeldChange, 'guard' | 'op' | 'part'>
  >(
    `select distinct h.guard, h.op, h.part from held_plan s
       join held h on h.batch = s.batch and h.kind = @kind and h.key = @key
     where s.current and ${isLeft} and not ${isRejected('h')} order by h.guard, h.op, h.part`,
  );
  const stated = db.prepare<{ plan: string; approvals: string }, StatedGroup>(
    `select h.guard, iif(${further}, 'create', h.op) op, h.part, (
         select a.plan from approval a
           join held_plan p on p.plan = a.plan join held b on b.batch = p.batch
         where a.plan in (select value from json_each(@approvals))
           and b.kind = h.kind and b.key = h.key and b.guard = h.guard
           and b.op = h.op and b.part = h.part
         order by a.at desc limit 1) approval, count(distinct h.key) n
     from held_plan s join held h on h.batch = s.batch
     where s.plan = @plan and ${isLeft} and ${isOpen} group by 1, 2, 3, 4 order by 1, 2, 3, 4`,
  );
  const first = db.prepare<{ plan: string; guard: string; count: number }, HeldChange>(
    `${shown} and h.guard = @guard and ${isLeft} and ${isOpen} ${order} limit @count`,
  );
  const lately = db.prepare<[number], DecidedGroup>(
    `with used as materialized (
       select * from approval order by at desc limit ?)
     select a.plan, a.at, a.decided_by "by", a.reason, h.guard,
       iif(${further}, 'create', h.op) op, h.part, count(distinct h.key) n,
       count(distinct iif(c.state = 'acked', h.key, null)) done, max(c.run) run
     from used a join held_plan s on s.plan = a.plan join held h on h.batch = s.batch
       left join change c indexed by change_by_key on c.kind = h.kind and c.key = h.key
         and c.op = h.op and c.part = h.part and c.approved = a.plan and ${isAfter('c', 'a')}
     group by a.plan, 5, 6, 7 having done > 0 order by a.at desc, 5, 6, 7`,
  );
  return {
    waitingOf: (kind, key) => waitingOf.all({ kind, key }),
    statedGroups: (plan, approvals) =>
      stated.all({ plan, approvals: JSON.stringify(approvals.map((one) => one.plan)) }),
    ...approvedIn(db),
    firstWaiting: (plan, guard, count) => first.all({ plan, guard, count }),
    decidedLately: (count) => lately.all(count),
  };
}

function approvedIn(db: Statements): Pick<PlanGroups, 'countApproved'> {
  const approved = db.prepare<
    { plan: string; approvals: string },
    { guard: GuardClass; n: number }
  >(
    `select h.guard, count(distinct h.key) n
     from held_plan s join held h on h.batch = s.batch
     where s.plan = @plan and ${isLeft} and ${isOpen} and exists (
       select 1 from held_plan p join held b on b.batch = p.batch
       where p.plan in (select value from json_each(@approvals))
         and b.kind = h.kind and b.key = h.key and b.guard = h.guard
         and b.op = h.op and b.part = h.part)
     group by h.guard`,
  );
  return {
    countApproved(plan, approvals) {
      if (approvals.length === 0) return byGuard(() => 0);
      const names = JSON.stringify(approvals.map((one) => one.plan));
      const counts = approved.all({ plan, approvals: names });
      return byGuard((guard) => counts.find((one) => one.guard === guard)?.n ?? 0);
    },
  };
}
