/**
 * Stores the changes that guards withheld, by the hash of the plan that showed them, and the
 * decisions about such plans. Plans with the same withheld changes share one batch. Below are
 * plans, those that replace earlier ones, their changes, and the removal of what is old.
 */
import type { Statements } from '../database/prepared-statements.ts';
import type { Change } from '../../domain/change.ts';
import { byGuard, guardNames, type GuardClass } from '../../domain/guard-classes.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';
import { approvalHoldsIn } from './approval-holds.ts';
import {
  countsByGuard,
  further,
  hashesOf,
  isLeft,
  isOpen,
  isRejected,
  order,
  shown,
} from './withheld-sql.ts';
import { isUndecided, planApprovalsIn } from './plan-approvals.ts';
import { type HeldChange, planPartsIn } from './plan-parts.ts';
import { isAfter } from '../tables/approval-order.ts';
import { isGuarded, most, type Guarded } from '../database/key-range.ts';

/** A plan with changes that await approval. */
export interface PlanAwaitingApproval {
  /** The hash of the plan. */
  plan: string;
  /** When the first of its changes was withheld, in milliseconds since the epoch. */
  since: number;
  /** The number of people or templates with withheld changes, by guard. */
  held: Record<GuardClass, number>;
  /** The run that it undoes; null for any other plan. Only `undo` of that run makes its changes. */
  undoes: string | null;
}

/** A change that awaits approval. */
type ChangeAwaitingApproval = Pick<Change, 'op' | 'part'> & {
  kind: RecordTypeName;
  key: string;
};

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

type Stored = Omit<PlanAwaitingApproval, 'held'> & { batch: string };

/**
 * The earliest time at which a plan withheld one of the changes since its last approval ended. A
 * plan is looked at until the first such change, because most plans share their changes.
 */
const since = `coalesce((select min(e.at) from held_plan e where exists (
  select 1 from held h
  join held o on o.batch = e.batch and o.kind = h.kind and o.key = h.key and o.op = h.op
    and o.part = h.part
  where h.batch = s.batch and not exists (
    select 1 from approval a join held_plan p on p.plan = a.plan join held b on b.batch = p.batch
    where a.ended_at >= e.at
      and b.kind = h.kind and b.key = h.key and b.op = h.op and b.part = h.part))), s.at)`;

/** The run that a plan undoes. If the run that made the plan was killed, it is not known. */
const undoes = `iif(s.mode = 'undo', coalesce((select r.asked ->> '$.undoes' from run r
  where r.mode = 'undo' and r.plan = s.plan limit 1), 'RUN'), null)`;

const told = `select s.plan, s.batch, ${since} since, ${undoes} undoes from held_plan s`;

/** Returns an SQL condition: a batch contains a change to a record of the types `kinds`. */
function hasAny(batch: string): string {
  return `exists (select 1 from json_each(@kinds) k
    join held h on h.batch = ${batch} and h.kind = k.value)`;
}

/** Prepares the statements about plans that await approval. */
export function awaitingApprovalIn(db: Statements) {
  return {
    ...plansIn(db),
    ...supersedingIn(db),
    ...changesIn(db),
    ...approvalHoldsIn(db),
    ...planApprovalsIn(db),
    ...planPartsIn(db),
    ...pruningIn(db),
  };
}

function plansIn(db: Statements) {
  const clear = db.run<{ mode: string; before: number; kinds: string }>(
    `update held_plan set current = 0 where current
       and (mode = @mode or (@mode = 'full' and mode <> 'undo') or (mode = 'undo' and at < @before))
       and not ${hasAny('held_plan.batch')}`,
  );
  const ofUndo = db.one<[plan: string], { one: 1 }>(
    `select 1 one from held_plan where plan = ? and mode = 'undo'`,
  );
  const about = db.one<{ plan: string; kinds: string }, { is: number }>(
    `select ${hasAny('s.batch')} "is" from held_plan s where s.plan = @plan`,
  );
  const unshown = db.one<Guarded & { plan: string }, { one: 1 }>(
    `select 1 one from held_plan s, temp.withheld where s.plan = @plan and ${isGuarded}
       and not exists (
         select 1 from held h where h.batch = s.batch and h.kind = withheld.kind
           and h.key = withheld.key and h.op = withheld.op and h.part = withheld.part) limit 1`,
  );
  const count = db.one<[batch: string], { n: number }>(
    'select count(*) n from held where batch = ?',
  );
  const keepBatch = db.run<[batch: string]>(
    `insert or ignore into held (batch, kind, key, op, part, target, guard, body, ids, stated)
     select ?, kind, key, op, part, coalesce(target, ''), guard, iif(kind = 'template', body, ''),
       (select json_group_array(s.id) from temp.staged s
        where s.kind = withheld.kind and s.key = withheld.key and s.id <> ''), stated
     from temp.withheld`,
  );
  const keepPlan = db.run<{ plan: string; batch: string; mode: string; at: number }>(
    `insert into held_plan (plan, batch, mode, at, current) values (@plan, @batch, @mode, @at, 1)
     on conflict (plan) do update set current = 1,
       batch = iif(
         exists (select 1 from approval a where a.plan = @plan and a.ended_at is null),
         held_plan.batch, @batch),
       mode = iif(held_plan.current and held_plan.mode = 'full', 'full', @mode),
       at = iif(
         exists (select 1 from approval a where a.plan = @plan and a.ended_at >= held_plan.at),
         @at, held_plan.at)`,
  );
  const get = db.one<[plan: string], Stored>(`${told} where s.plan = ?`);
  const current = db.all<[], Stored>(`${told} where s.current order by s.at`);
  const heldIn = db.all<[batch: string], { guard: GuardClass; n: number }>(
    `select h.guard, count(distinct h.key) n from held h
     where h.batch = ? and not ${isRejected('h')} group by h.guard`,
  );
  const withCounts = ({ batch, ...plan }: Stored): PlanAwaitingApproval => ({
    ...plan,
    held: countsByGuard(heldIn(batch)),
  });
  return {
    /**
     * Marks the plans of this mode (for `full`: of every mode but `undo`) as no longer current, and
     * those of `undo` from before `before` (epoch milliseconds). Plans with a change of a record
     * type in `but` are kept, because the run did not judge those.
     */
    clear: (mode: string, { but, before }: { but: readonly RecordTypeName[]; before: number }) =>
      clear({ mode, before, kinds: JSON.stringify(but) }),
    /** Returns whether a plan, or the plan of a part, is one of `undo`. */
    isOfUndo: (plan: string) => ofUndo(plan) !== undefined,
    /** Returns whether a plan has a withheld change of one of these record types. */
    isAbout: (plan: string, kinds: readonly RecordTypeName[]) =>
      about({ plan, kinds: JSON.stringify(kinds) })?.is === 1,
    /**
     * Returns whether a plan is not stored, or contains all changes of a range that this run
     * withholds.
     */
    shows: (plan: string, guarded: Guarded) => unshown({ ...guarded, plan }) === undefined,
    /**
     * Stores a plan as current, with all `size` changes that this run withholds. `batch` is a hash
     * of these changes; `at` is in milliseconds since the epoch.
     */
    keep({
      size,
      ...plan
    }: {
      plan: string;
      batch: string;
      size: number;
      mode: string;
      at: number;
    }): void {
      if (count(plan.batch)?.n !== size) keepBatch(plan.batch);
      keepPlan(plan);
    },
    /** Returns the plan with this hash, or undefined if none is stored. */
    get(plan: string): PlanAwaitingApproval | undefined {
      const found = get(plan);
      return found && withCounts(found);
    },
    /** Returns the current plans, oldest first. */
    current: () =>
      current()
        .map(withCounts)
        .filter(({ held }) => guardNames.some((guard) => held[guard] > 0)),
  };
}

function supersedingIn(db: Statements) {
  const inPlan = `select 1 from held n where n.batch = @batch and n.kind = h.kind
    and n.key = h.key and n.op = h.op and n.part = h.part`;
  const batchOf = db.one<[plan: string], { batch: string }>(
    'select batch from held_plan where plan = ?',
  );
  const supersede = db.all<{ plan: string; batch: string; approvals: string }, { mode: string }>(
    `update held_plan as s set current = 0
     where s.current and s.plan <> @plan and s.mode <> 'undo'
       and exists (select 1 from held h where h.batch = s.batch and exists (${inPlan}))
       and not exists (
         select 1 from held h where h.batch = s.batch and ${isUndecided} and not exists (${inPlan}))
     returning mode`,
  );
  const asFull = db.run<[plan: string]>("update held_plan set mode = 'full' where plan = ?");
  return {
    /**
     * Marks earlier plans as no longer current if everything in them that none of these approvals
     * covers is in this plan, too. A plan that replaces one of a full run stays current as that one
     * would.
     */
    supersede(plan: string, approvals: readonly { plan: string }[]): void {
      const { batch } = batchOf(plan) ?? {};
      if (batch === undefined) return;
      const modes = supersede({ plan, batch, approvals: hashesOf(approvals) });
      if (modes.some(({ mode }) => mode === 'full')) asFull(plan);
    },
  };
}

/** Reads what awaits approval as people look at it: by cause and channel, or of one record. */
function changesIn(db: Statements) {
  const count = db.one<[plan: string], { n: number }>(
    `select count(*) n from held_plan s join held h on h.batch = s.batch
     where s.plan = ? and not ${isRejected('h')}`,
  );
  const waitingOf = db.all<
    { kind: string; key: string },
    Pick<HeldChange, 'guard' | 'op' | 'part'>
  >(
    `select distinct h.guard, h.op, h.part from held_plan s
       join held h on h.batch = s.batch and h.kind = @kind and h.key = @key
     where s.current and ${isLeft} and not ${isRejected('h')} order by h.guard, h.op, h.part`,
  );
  const stated = db.all<{ plan: string; approvals: string }, StatedGroup>(
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
  const approved = db.all<{ plan: string; approvals: string }, { guard: GuardClass; n: number }>(
    `select h.guard, count(distinct h.key) n
     from held_plan s join held h on h.batch = s.batch
     where s.plan = @plan and ${isLeft} and ${isOpen} and exists (
       select 1 from held_plan p join held b on b.batch = p.batch
       where p.plan in (select value from json_each(@approvals))
         and b.kind = h.kind and b.key = h.key and b.guard = h.guard
         and b.op = h.op and b.part = h.part)
     group by h.guard`,
  );
  const first = db.all<{ plan: string; guard: string; count: number }, HeldChange>(
    `${shown} and h.guard = @guard and ${isLeft} and ${isOpen} ${order} limit @count`,
  );
  return {
    /** Returns the first `count` changes of a plan that nobody has rejected. */
    changes: db.all<[plan: string, count: number], ChangeAwaitingApproval>(
      `select h.kind, h.key, h.op, h.part from held_plan s join held h on h.batch = s.batch
       where s.plan = ? and not ${isRejected('h')} order by h.guard, h.key, h.op, h.part limit ?`,
    ),
    /** Counts the changes of a plan that nobody has rejected. */
    countChanges: (plan: string) => count(plan)?.n ?? 0,
    /** Returns the changes of one record in current plans that wait, and that nobody rejected. */
    waitingOf: (kind: RecordTypeName, key: Key) => waitingOf({ kind, key }),
    /**
     * Counts the records of a plan that wait, and that nobody has rejected, by what a decision can
     * be limited to, and by which of these approvals covers them.
     */
    statedGroups: (plan: string, approvals: readonly { plan: string }[]) =>
      stated({ plan, approvals: hashesOf(approvals) }),
    /** Counts, by guard, the records with such a change that one of these approvals covers. */
    countApproved: (plan: string, approvals: readonly { plan: string }[]) =>
      approvals.length === 0
        ? byGuard(() => 0)
        : countsByGuard(approved({ plan, approvals: hashesOf(approvals) })),
    /** Returns the first `count` of these changes for which a guard asks. */
    firstWaiting: (plan: string, guard: GuardClass, count: number) => first({ plan, guard, count }),
    /** Returns what became of the newest `count` approvals that runs have used. */
    decidedLately: db.all<[count: number], DecidedGroup>(
      `with used as materialized (
         select * from approval order by at desc limit ?)
       select a.plan, a.at, a.decided_by "by", a.reason, h.guard,
         iif(${further}, 'create', h.op) op, h.part, count(distinct h.key) n,
         count(distinct iif(c.state = 'acked', h.key, null)) done, max(c.run) run
       from used a join held_plan s on s.plan = a.plan join held h on h.batch = s.batch
         left join change c indexed by change_by_key on c.kind = h.kind and c.key = h.key
           and c.op = h.op and c.part = h.part and c.approved = a.plan and ${isAfter('c', 'a')}
       group by a.plan, 5, 6, 7 having done > 0 order by a.at desc, 5, 6, 7`,
    ),
  };
}

function pruningIn(db: Statements) {
  const prunePlans = db.run<[before: number]>(
    `delete from held_plan
     where at < ? and not current and plan not in (select plan from rejection)`,
  );
  const columns = 'batch, kind, key, op, part, target';
  const pruneBatches = db.run<[]>(
    `delete from held where (${columns}) in (
       select ${columns} from held where batch not in (select batch from held_plan) limit ${most})`,
  );
  const pruneRejections = db.run<[]>(
    `delete from rejection where plan not in (
       select plan from held_plan where batch in (select batch from held))`,
  );
  const pruneApprovals = db.run<[before: number]>('delete from approval where at < ?');
  const pruneSignatures = db.run<[before: number]>('delete from approval_signature where at < ?');
  return {
    /**
     * Deletes approvals, and plans that are not current or rejected, from before `before` (epoch
     * milliseconds), and rejections of which nothing is left.
     */
    prune(before: number): void {
      pruneRejections();
      prunePlans(before);
      pruneApprovals(before);
      pruneSignatures(before);
    },
    /**
     * Deletes up to 5,000 changes that belong to no plan any more. Returns whether more may remain.
     */
    pruneBatches: () => pruneBatches() === most,
  };
}
