import type { Statements } from './statements.ts';
import type { Change, GuardClass } from '../model/change.ts';
import type { Key, KindName } from '../model/record.ts';
import { isGuarded, type Guarded } from './guarding.ts';
import { spansBy, type Span } from './spans.ts';
import { most } from './stretches.ts';

/**
 * What guards withheld, under the hash of the plan that showed it, and what of that was approved.
 * Plans that hold the same changes share one batch of them.
 *
 *   a person stands   from when a run withholds anything of theirs
 *                     until it is approved and that approval has ended,
 *                     or a run that could tell wants nothing of the kind of them any more
 */
export interface HeldPlans {
  /** What a run of this mode holds now, in place of what earlier ones did: nothing. */
  clear(mode: string): void;
  /**
   * … or all that this run withholds, so many changes, which `batch` names by its content; `at` in
   * milliseconds since the epoch.
   */
  keep(plan: { plan: string; batch: string; size: number; mode: string; at: number }): void;
  /** Has whom this run withholds held in later runs too. */
  stand(guarded: Guarded): void;
  /** All who are held since a run, by the keys. */
  spans(guard: GuardClass, kind: KindName): Iterable<Span>;
  /**
   * No longer has held of whom nothing was planned: of a run that called for all there is, but for
   * those that another one was at meanwhile.
   */
  dropUnwanted(standing: Standing, but: readonly Key[]): void;
  /** … nor whom this plan is about, which was approved, but for what is withheld beside it. */
  dropApproved(standing: Standing, which: { plan: string; but: readonly Key[] }): void;
  /** Undefined: nothing was ever held under this hash, as far as is known. */
  get(plan: string): HeldPlan | undefined;
  /** What is held now. */
  current(): HeldPlan[];
  /** People of whom something shown under this hash still waits for an approval, or its release. */
  left(plan: string): Record<GuardClass, number>;
  /**
   * Whether approvals younger than `after`, milliseconds since the epoch, still let all of it pass:
   * what the platform refused passes no more.
   */
  isApproved(plan: string, after: number): boolean;
  /** The first of its changes. */
  changes(plan: string, count: number): HeldChange[];
  /** Consents to what was shown under this hash; once more, once that has ended. */
  approve(plan: string, at: number): void;
  /** Approvals in force: not ended, and younger than `since`, milliseconds since the epoch. */
  approvals(since: number): Approval[];
  /** Ends the approval of a plan; `at` in milliseconds since the epoch. */
  end(plan: string, at: number): void;
  /** Forgets what was first held before then and no longer is, and approvals as old. */
  prune(before: number): void;
  /** … and some thousands of its changes; answers whether there may be others. */
  pruneBatches(): boolean;
}

export interface HeldPlan {
  plan: string;
  /** Since when any of it has been held; milliseconds since the epoch. */
  since: number;
  /** People. */
  held: Record<GuardClass, number>;
}

/** A span of those who are held since a run. */
export interface Standing extends Guarded {
  kind: KindName;
}

export type HeldChange = Pick<Change, 'op' | 'part'> & { kind: KindName; key: string };

export interface Approval {
  plan: string;
  /** Milliseconds since the epoch. */
  at: number;
}

interface Stored {
  plan: string;
  since: number;
  deletes: number;
  optIns: number;
}

const standsOf = (of: string) => `exists (select 1 from standing t
  where t.guard = ${of}.guard and t.kind = ${of}.kind and t.key = ${of}.key)`;

const people = (guard: GuardClass) => `(select count(distinct h.key) from held h
  where h.batch = s.batch and h.guard = '${guard}')`;

/** One of its changes may have been held under other plans before, since it was last approved. */
const since = `coalesce((select min(e.at) from held h
  join held o on o.kind = h.kind and o.key = h.key and o.op = h.op and o.part = h.part
  join held_plan e on e.batch = o.batch
  where h.batch = s.batch and not exists (
    select 1 from approval a join held_plan p on p.plan = a.plan join held b on b.batch = p.batch
    where a.ended_at >= e.at
      and b.kind = h.kind and b.key = h.key and b.op = h.op and b.part = h.part)), s.at)`;

const told = `select s.plan, ${since} since, ${people('delete')} deletes,
  ${people('opt_in')} optIns from held_plan s`;

export function heldIn(db: Statements): HeldPlans {
  const clear = db.prepare(
    `update held_plan set current = 0 where current and (mode = @mode or @mode = 'full')`,
  );
  const keepBatch = db.prepare(
    `insert or ignore into held (batch, kind, key, op, part, target, guard)
     select ?, kind, key, op, part, coalesce(target, ''), guard from temp.withheld`,
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
  const left = db.prepare<[string], { guard: GuardClass; n: number }>(
    `select h.guard, count(distinct h.key) n from held_plan s join held h on h.batch = s.batch
     where s.plan = ? and ${standsOf('h')} and not exists (
       select 1 from change c join approval a on a.plan = c.approved
       where c.kind = h.kind and c.key = h.key and c.op = h.op and c.part = h.part
         and c.approved = s.plan and c.planned_at >= a.at and c.state = 'acked')
     group by h.guard`,
  );
  const changes = db.prepare<[string, number], HeldChange>(
    `select h.kind, h.key, h.op, h.part from held_plan s join held h on h.batch = s.batch
     where s.plan = ? order by h.guard, h.key, h.op, h.part limit ?`,
  );
  return {
    clear: (mode) => void clear.run({ mode }),
    keep({ size, ...plan }) {
      if (count.get(plan.batch)?.n !== size) keepBatch.run(plan.batch);
      keepPlan.run(plan);
    },
    get: (plan) => get.all(plan).map(fromStored)[0],
    current: () => current.all().map(fromStored),
    left(plan) {
      const counts = left.all(plan);
      const of = (guard: GuardClass) => counts.find((one) => one.guard === guard)?.n ?? 0;
      return { delete: of('delete'), opt_in: of('opt_in') };
    },
    changes: (plan, count) => changes.all(plan, count),
    ...standingIn(db),
    ...approvalsIn(db),
  };
}

type StandingPart = Pick<HeldPlans, 'stand' | 'spans' | 'dropUnwanted' | 'dropApproved'>;

function standingIn(db: Statements): StandingPart {
  const stand = db.prepare<Guarded>(
    `insert or ignore into standing
     select distinct guard, kind, key from temp.withheld where ${isGuarded}`,
  );
  const spans = spansBy(db, {
    column: 'key',
    of: ['standing'],
    where: 'guard = @guard and kind = @kind',
  });
  const others = 'and key not in (select value from json_each(@but))';
  const dropThose = `delete from standing where ${isGuarded} and kind = @kind`;
  const isIn = (table: string): string => `exists (
    select 1 from ${table} t
    where t.guard = standing.guard and t.key = standing.key and t.kind = standing.kind)`;
  const unwanted = db.prepare<Standing & { but: string }>(
    `${dropThose} and not ${isIn('temp.passed')} and not ${isIn('temp.withheld')}
     ${others}`,
  );
  const approved = db.prepare<Standing & { plan: string; but: string }>(
    `${dropThose} and not ${isIn('temp.withheld')} ${others} and exists (
       select 1 from held_plan s join held h on h.batch = s.batch where s.plan = @plan
         and h.guard = standing.guard and h.kind = standing.kind and h.key = standing.key)`,
  );
  return {
    stand: (guarded) => void stand.run(guarded),
    spans: (guard, kind) => spans({ guard, kind }),
    dropUnwanted: (standing, but) => void unwanted.run({ ...standing, but: JSON.stringify(but) }),
    dropApproved: (standing, { plan, but }) =>
      void approved.run({ ...standing, plan, but: JSON.stringify(but) }),
  };
}

type Approvals = Pick<
  HeldPlans,
  'isApproved' | 'approve' | 'approvals' | 'end' | 'prune' | 'pruneBatches'
>;

function approvalsIn(db: Statements): Approvals {
  const open = db.prepare<{ plan: string; after: number }, { n: number }>(
    `select count(*) n from held_plan s join held h on h.batch = s.batch
     where s.plan = @plan and not exists (
       select 1 from approval a join held_plan p on p.plan = a.plan join held b on b.batch = p.batch
       where a.ended_at is null and a.at > @after
         and b.kind = h.kind and b.key = h.key and b.guard = h.guard
         and b.op = h.op and b.part = h.part
         and not exists (
           select 1 from change c where c.kind = b.kind and c.key = b.key and c.op = b.op
             and c.part = b.part and c.approved = a.plan and c.planned_at >= a.at
             and c.state = 'rejected'))`,
  );
  const approve = db.prepare(
    `insert into approval (plan, at) values (@plan, @at)
     on conflict (plan) do update set at = @at, ended_at = null`,
  );
  const approvals = db.prepare<[number], Approval>(
    'select plan, at from approval where ended_at is null and at > ? order by at, plan',
  );
  const end = db.prepare('update approval set ended_at = ? where plan = ?');
  const prunePlans = db.prepare('delete from held_plan where at < ? and not current');
  const columns = 'batch, kind, key, op, part, target';
  const pruneBatches = db.prepare(
    `delete from held where (${columns}) in (
       select ${columns} from held where batch not in (select batch from held_plan) limit ${most})`,
  );
  const pruneApprovals = db.prepare('delete from approval where at < ?');
  return {
    approve: (plan, at) => void approve.run({ plan, at }),
    approvals: (after) => approvals.all(after),
    isApproved: (plan, after) => open.get({ plan, after })?.n === 0,
    end: (plan, at) => void end.run(at, plan),
    prune(before) {
      prunePlans.run(before);
      pruneApprovals.run(before);
    },
    pruneBatches: () => pruneBatches.run().changes === most,
  };
}

function fromStored({ plan, since: from, deletes, optIns }: Stored): HeldPlan {
  return { plan, since: from, held: { delete: deletes, opt_in: optIns } };
}
