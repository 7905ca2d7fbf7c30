/**
 * Stores parts of plans that await approval, and which of them are rejected. A part has a hash of
 * its own, under which it is approved or rejected like a plan. It is never current.
 *
 *   an approved part    passes like an approved plan; what it does not contain still waits
 *   a rejected part     is left out of every plan until it is approved, the rejection is too old,
 *                       or a full run does not plan the change any more
 */
import { hash } from 'node:crypto';
import type { Statements } from '../database/prepared-statements.ts';
import type { Op } from '../../domain/change.ts';
import type { GuardClass } from '../../domain/guard-classes.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';
import { isGuarded, type Guarded } from '../database/key-range.ts';
import { type HeldRange, wishIn } from './approval-holds.ts';
import { countsByGuard, isLeft, isOpen, isRejected, order, shown } from './withheld-sql.ts';

/** Who decided about a plan or a part of one, when and why. */
export interface PlanDecision {
  /** In milliseconds since the epoch. */
  at: number;
  by: string;
  reason: string | null;
}

/** A withheld change as a plan shows it. */
export interface HeldChange {
  kind: RecordTypeName;
  key: Key;
  op: Op;
  part: string;
  /** The contact on the platform; '' if there was none. */
  target: string;
  guard: GuardClass;
  /** What would be sent; '' for people. */
  body: string;
  /** The ids of the source's records with this key, as a JSON list. */
  ids: string;
  /**
   * Whether the CRM states it about this person; null if an earlier program stored the change.
   */
  stated: 0 | 1;
  /** Whether another change of the plan creates the person that it opts in. */
  isFurther: 0 | 1;
}

/** A rejected part of a plan. */
export interface Rejection {
  /** The hash of the part. */
  plan: string;
  /** The plan that the part belongs to. */
  whole: string;
  at: number;
  by: string;
  reason: string;
}

/** A part of a plan, for a decision. */
export interface PlanPart {
  is: 'approved' | 'rejected';
  changes: readonly HeldChange[];
}

/** Returns the hash under which `keepPart` stores a part. */
export function partHash(plan: string, { is, changes }: PlanPart): string {
  const rows = changes.map(({ isFurther: _, stated: __, ...row }) => Object.values(row));
  return hash('sha256', JSON.stringify([is, plan, rows])).slice(0, 16);
}

/** Prepares the statements about parts of plans. */
export function planPartsIn(db: Statements) {
  const left = db.all<{ plan: string }, { guard: GuardClass; n: number }>(
    `select h.guard, count(distinct h.key) n from held_plan s join held h on h.batch = s.batch
     where s.plan = @plan and ${isLeft} and ${isOpen} group by h.guard`,
  );
  const waiting = db.all<{ plan: string }, HeldChange>(
    `${shown} and ${isLeft} and ${isOpen} ${order}`,
  );
  const all = db.all<{ plan: string }, HeldChange>(`${shown} ${order}`);
  const hasParts = db.one<[plan: string], { one: 1 }>(
    'select 1 one from held_plan where whole = ?',
  );
  const addChange = db.run<HeldChange & { batch: string }>(
    `insert into held (batch, kind, key, op, part, target, guard, body, ids, stated)
     values (@batch, @kind, @key, @op, @part, @target, @guard, @body, @ids, @stated)
     on conflict do update set stated = excluded.stated`,
  );
  const keep = db.run<{ part: string; plan: string; at: number }>(
    `insert into held_plan (plan, batch, mode, at, current, whole)
     select @part, @part, mode, @at, 0, coalesce(whole, plan) from held_plan where plan = @plan
     on conflict (plan) do update set at = @at`,
  );
  return {
    /** Counts, by guard, the records of a plan that still wait to be approved or sent. */
    left: (plan: string) => countsByGuard(left({ plan })),
    /** Returns the changes of a plan that still wait, and that nobody has rejected. */
    waiting: (plan: string) => waiting({ plan }),
    /** Returns the ids of the source's records with which a plan shows people, with their keys. */
    idsIn: db.all<[plan: string], { id: string; key: Key }>(
      `select distinct i.value id, h.key from held_plan s join held h on h.batch = s.batch,
         json_each(h.ids) i where s.plan = ? and h.kind = 'contact'`,
    ),
    /** Returns all changes of a plan. */
    shown: (plan: string) => all({ plan }),
    /** Returns whether somebody has decided about a part of this plan. */
    hasParts: (plan: string) => hasParts(plan) !== undefined,
    /** Stores a part of a plan for a decision, and returns its hash. `at`: epoch milliseconds. */
    keepPart(plan: string, { at, ...of }: PlanPart & { at: number }): string {
      const part = partHash(plan, of);
      for (const change of of.changes) addChange({ ...change, batch: part });
      keep({ part, plan, at });
      return part;
    },
    ...rejectionsIn(db),
  };
}

function rejectionsIn(db: Statements) {
  const reject = db.run<Omit<Rejection, 'plan' | 'whole'> & { part: string }>(
    `insert or replace into rejection (plan, at, decided_by, reason)
     values (@part, @at, @by, @reason)`,
  );
  const dropChange = db.run<HeldChange & { batch: string }>(
    `delete from held where batch = (
         select s.batch from rejection j join held_plan s on s.plan = j.plan where j.plan = @batch)
       and kind = @kind and key = @key and op = @op and part = @part and target = @target`,
  );
  const note = db.run<Guarded>(
    `insert or ignore into temp.refused (guard, key, kind, op, part)
     select guard, key, kind, op, part from temp.planned
     where ${isGuarded} and ${isRejected('planned')}`,
  );
  const remove = db.run<Guarded>(
    `delete from temp.planned where ${isGuarded} and ${isRejected('planned')}`,
  );
  const unwanted = db.run<HeldRange & { but: string; plans: string }>(
    `delete from held where guard = @guard and kind = @kind and key > @after and key <= @upTo
       and key not in (select value from json_each(@but))
       and batch in (select s.batch from rejection j join held_plan s on s.plan = j.plan
         where j.plan in (select value from json_each(@plans)))
       and not exists (select 1 from temp.refused t
         where t.guard = held.guard and t.key = held.key and t.kind = held.kind
           and ${wishIn('t')} = ${wishIn('held')} and t.part = held.part)`,
  );
  return {
    /** Rejects a part. */
    reject: (part: string, { at, by, reason }: Omit<Rejection, 'plan' | 'whole'>) =>
      reject({ part, at, by, reason }),
    /** Returns the rejections, oldest first. */
    rejections: db.all<[], Rejection>(
      `select j.plan, j.at, j.decided_by "by", j.reason, s.whole
       from rejection j join held_plan s on s.plan = j.plan
       where exists (select 1 from held h where h.batch = s.batch) order by j.at, j.plan`,
    ),
    /** Takes back the rejection of these changes of a part; does nothing for any other plan. */
    takeBack(part: string, changes: readonly HeldChange[]): void {
      for (const change of changes) dropChange({ ...change, batch: part });
    },
    /** Ends the rejections from `before` (epoch milliseconds) or earlier. */
    endRejections: db.run<[before: number]>('delete from rejection where at <= ?'),
    /** Removes the rejected changes of a range from the staged plan of this run. */
    refuse(guarded: Guarded): void {
      note(guarded);
      remove(guarded);
    },
    /** Counts the removed changes of a record type, by operation. */
    refusedOps: db.all<[RecordTypeName], { op: Op; n: number }>(
      'select op, count(*) n from temp.refused where kind = ? group by op',
    ),
    /**
     * Ends these rejections for the changes that this run did not plan. Call it only for a run that
     * read everything, with the rejections from before it.
     */
    dropRejected: (
      held: HeldRange,
      { but, plans }: { but: readonly Key[]; plans: readonly string[] },
    ) => unwanted({ ...held, but: JSON.stringify(but), plans: JSON.stringify(plans) }),
  };
}
