import type { Statements } from '../database/prepared-statements.ts';
import type { Change } from '../../domain/change.ts';
import { byGuard, guardNames, type GuardClass } from '../../domain/guard-classes.ts';
import type { RecordTypeName } from '../../domain/record.ts';
import { approvalHoldsIn, type ApprovalHolds } from './approval-holds.ts';
import { isUndecided, planApprovalsIn, type PlanApprovals } from './plan-approvals.ts';
import { planGroupsIn, type PlanGroups } from './plan-groups.ts';
import { planPartsIn, type PlanParts } from './plan-parts.ts';
import { isRejected } from './withheld-sql.ts';
import { isGuarded, type Guarded } from '../database/key-range.ts';
import { most } from '../database/plan-chunks.ts';

/**
 * Stores the changes that guards withheld, by the hash of the plan that showed them, and the
 * decisions about such plans. Plans with the same withheld changes share one batch.
 */
export interface PlansAwaitingApproval extends ApprovalHolds, PlanApprovals, PlanGroups, PlanParts {
  /**
   * Marks the plans of this mode (for `full`: of every mode but `undo`) as no longer current, and
   * those of `undo` from before `before` (epoch milliseconds). Plans with a change of a record type
   * in `but` are kept, because the run did not judge those.
   */
  clear(mode: string, which: { but: readonly RecordTypeName[]; before: number }): void;
  /** Returns whether a plan, or the plan of a part, is one of `undo`. */
  isOfUndo(plan: string): boolean;
  /** Returns whether a plan has a withheld change of one of these record types. */
  isAbout(plan: string, kinds: readonly RecordTypeName[]): boolean;
  /**
   * Returns whether a plan is not stored, or contains all changes of a range that this run
   * withholds.
   */
  shows(plan: string, guarded: Guarded): boolean;
  /**
   * Stores a plan as current, with all `size` changes that this run withholds. `batch` is a hash
   * of these changes; `at` is in milliseconds since the epoch.
   */
  keep(plan: { plan: string; batch: string; size: number; mode: string; at: number }): void;
  /**
   * Marks earlier plans as no longer current if everything in them that none of these approvals
   * covers is in this plan, too. A plan that replaces one of a full run stays current as that one
   * would.
   */
  supersede(plan: string, approvals: readonly { plan: string }[]): void;
  /** Returns the plan with this hash, or undefined if none is stored. */
  get(plan: string): PlanAwaitingApproval | undefined;
  /** Returns the current plans, oldest first. */
  current(): PlanAwaitingApproval[];
  /** Returns the first `count` changes of a plan that nobody has rejected. */
  changes(plan: string, count: number): ChangeAwaitingApproval[];
  /** Counts the changes of a plan that nobody has rejected. */
  countChanges(plan: string): number;
  /**
   * Deletes approvals, and plans that are not current or rejected, from before `before` (epoch
   * milliseconds), and rejections of which nothing is left.
   */
  prune(before: number): void;
  /**
   * Deletes up to 5,000 changes that belong to no plan any more. Returns whether more may remain.
   */
  pruneBatches(): boolean;
}

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
export type ChangeAwaitingApproval = Pick<Change, 'op' | 'part'> & {
  kind: RecordTypeName;
  key: string;
};

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

/** Prepares the statements about plans that await approval. */
export function awaitingApprovalIn(db: Statements): PlansAwaitingApproval {
  const clear = db.prepare(
    `update held_plan set current = 0 where current
       and (mode = @mode or (@mode = 'full' and mode <> 'undo') or (mode = 'undo' and at < @before))
       and not ${hasAny('held_plan.batch')}`,
  );
  const keepBatch = db.prepare(
    `insert or ignore into held (batch, kind, key, op, part, target, guard, body, ids, stated)
     select ?, kind, key, op, part, coalesce(target, ''), guard, iif(kind = 'template', body, ''),
       (select json_group_array(s.id) from temp.staged s
        where s.kind = withheld.kind and s.key = withheld.key and s.id <> ''), stated
     from temp.withheld`,
  );
  const count = db.prepare<[string], { n: number }>('select count(*) n from held where batch = ?');
  const keepPlan = db.prepare(
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
  const get = db.prepare<[string], Stored>(`${told} where s.plan = ?`);
  const current = db.prepare<[], Stored>(`${told} where s.current order by s.at`);
  const heldIn = db.prepare<[string], { guard: GuardClass; n: number }>(
    `select h.guard, count(distinct h.key) n from held h
     where h.batch = ? and not ${isRejected('h')} group by h.guard`,
  );
  const withCounts = ({ batch, ...plan }: Stored): PlanAwaitingApproval => {
    const counts = new Map(heldIn.all(batch).map(({ guard, n }) => [guard, n]));
    return { ...plan, held: byGuard((guard) => counts.get(guard) ?? 0) };
  };
  return {
    clear: (mode, { but, before }) => void clear.run({ mode, before, kinds: JSON.stringify(but) }),
    ...contentsIn(db),
    ...supersedingIn(db),
    keep({ size, ...plan }) {
      if (count.get(plan.batch)?.n !== size) keepBatch.run(plan.batch);
      keepPlan.run(plan);
    },
    get: (plan) => get.all(plan).map(withCounts)[0],
    current: () => current.all().map(withCounts).filter(hasAnyHeld),
    ...changesIn(db),
    ...approvalHoldsIn(db),
    ...planApprovalsIn(db),
    ...planGroupsIn(db),
    ...planPartsIn(db),
    ...pruningIn(db),
  };
}

/** Returns an SQL condition: a batch contains a change to a record of the types `kinds`. */
function hasAny(batch: string): string {
  return `exists (select 1 from json_each(@kinds) k
    join held h on h.batch = ${batch} and h.kind = k.value)`;
}

function contentsIn(db: Statements): Pick<PlansAwaitingApproval, 'isOfUndo' | 'isAbout' | 'shows'> {
  const about = db.prepare<{ plan: string; kinds: string }, { is: number }>(
    `select ${hasAny('s.batch')} "is" from held_plan s where s.plan = @plan`,
  );
  const ofUndo = db.prepare<[string], { one: 1 }>(
    `select 1 one from held_plan where plan = ? and mode = 'undo'`,
  );
  const unshown = db.prepare<Guarded & { plan: string }, { one: 1 }>(
    `select 1 one from held_plan s, temp.withheld where s.plan = @plan and ${isGuarded}
       and not exists (
         select 1 from held h where h.batch = s.batch and h.kind = withheld.kind
           and h.key = withheld.key and h.op = withheld.op and h.part = withheld.part) limit 1`,
  );
  return {
    shows: (plan, guarded) => unshown.get({ ...guarded, plan }) === undefined,
    isOfUndo: (plan) => ofUndo.get(plan) !== undefined,
    isAbout: (plan, kinds) => about.get({ plan, kinds: JSON.stringify(kinds) })?.is === 1,
  };
}

function supersedingIn(db: Statements): Pick<PlansAwaitingApproval, 'supersede'> {
  const inPlan = `select 1 from held n where n.batch = @batch and n.kind = h.kind
    and n.key = h.key and n.op = h.op and n.part = h.part`;
  const batchOf = db.prepare<[string], { batch: string }>(
    'select batch from held_plan where plan = ?',
  );
  const supersede = db.prepare<
    { plan: string; batch: string; approvals: string },
    { mode: string }
  >(
    `update held_plan as s set current = 0
     where s.current and s.plan <> @plan and s.mode <> 'undo'
       and exists (select 1 from held h where h.batch = s.batch and exists (${inPlan}))
       and not exists (
         select 1 from held h where h.batch = s.batch and ${isUndecided} and not exists (${inPlan}))
     returning mode`,
  );
  const asFull = db.prepare<[string]>("update held_plan set mode = 'full' where plan = ?");
  return {
    supersede(plan, approved) {
      const { batch } = batchOf.get(plan) ?? {};
      if (batch === undefined) return;
      const approvals = JSON.stringify(approved.map((one) => one.plan));
      const modes = supersede.all({ plan, batch, approvals });
      if (modes.some(({ mode }) => mode === 'full')) asFull.run(plan);
    },
  };
}

function changesIn(db: Statements): Pick<PlansAwaitingApproval, 'changes' | 'countChanges'> {
  const changes = db.prepare<[string, number], ChangeAwaitingApproval>(
    `select h.kind, h.key, h.op, h.part from held_plan s join held h on h.batch = s.batch
     where s.plan = ? and not ${isRejected('h')} order by h.guard, h.key, h.op, h.part limit ?`,
  );
  const countOf = db.prepare<[string], { n: number }>(
    `select count(*) n from held_plan s join held h on h.batch = s.batch
     where s.plan = ? and not ${isRejected('h')}`,
  );
  return {
    changes: (plan, count) => changes.all(plan, count),
    countChanges: (plan) => countOf.get(plan)?.n ?? 0,
  };
}

function pruningIn(db: Statements): Pick<PlansAwaitingApproval, 'prune' | 'pruneBatches'> {
  const prunePlans = db.prepare(
    `delete from held_plan
     where at < ? and not current and plan not in (select plan from rejection)`,
  );
  const columns = 'batch, kind, key, op, part, target';
  const pruneBatches = db.prepare(
    `delete from held where (${columns}) in (
       select ${columns} from held where batch not in (select batch from held_plan) limit ${most})`,
  );
  const pruneRejections = db.prepare(
    `delete from rejection where plan not in (
       select plan from held_plan where batch in (select batch from held))`,
  );
  const pruneApprovals = db.prepare('delete from approval where at < ?');
  const pruneSignatures = db.prepare('delete from approval_signature where at < ?');
  return {
    prune(before) {
      pruneRejections.run();
      prunePlans.run(before);
      pruneApprovals.run(before);
      pruneSignatures.run(before);
    },
    pruneBatches: () => pruneBatches.run().changes === most,
  };
}

function hasAnyHeld({ held }: PlanAwaitingApproval): boolean {
  return guardNames.some((guard) => held[guard] > 0);
}
