/** Stores the approvals of plans, and of parts of plans (plan-parts.ts): who approved, and why. */
import type { Statements } from '../database/prepared-statements.ts';
import type { GuardClass } from '../../domain/guard-classes.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';
import { approvalCounterIn, isAfter, isAfterThis, orderColumn } from '../tables/approval-order.ts';
import { countsByGuard, hashesOf, isRejected } from './withheld-sql.ts';
import type { PlanDecision } from './plan-parts.ts';

/** An approval of a plan, or of a part of one. */
export interface Approval extends PlanDecision {
  /** The hash of the plan or part. */
  plan: string;
  /** The plan that the part belongs to; null if the whole plan is approved. */
  whole: string | null;
  /** Its number among all approvals and signatures. */
  approvalsGiven: number;
}

/** What one approver has signed. Only the configuration tells whether it is valid. */
export interface ApprovalSignature {
  /** The name of the approver in the configuration. */
  name: string;
  /** In milliseconds since the epoch. */
  at: number;
  reason: string | null;
  /** The signature in base64. */
  signature: string;
}

/** A signature as it is stored, with its number among all approvals and signatures. */
export type StoredSignature = ApprovalSignature & Pick<Approval, 'approvalsGiven'>;

/** A decision that covers a change of one record. */
export interface RecordDecision extends Omit<Approval, 'approvalsGiven'> {
  is: 'approved' | 'rejected';
  guard: GuardClass;
  op: string;
  part: string;
}

/**
 * Selects the plans that belong together with the plan @plan: a plan and all of its parts. A change
 * passes once under all of them.
 */
const family = `select f.plan from held_plan f where coalesce(f.whole, f.plan) = (
  select coalesce(w.whole, w.plan) from held_plan w where w.plan = @plan)`;

/**
 * Selects the rows of `planned` that this approval, or another one of a part of the same plan, has
 * already released. Each change passes once.
 */
export const wasReleased = `exists (
  select 1 from change c
  where c.kind = planned.kind and c.key = planned.key
    and c.op = planned.op and c.part = planned.part
    and c.approved in (${family})
    and ${isAfterThis('c')}
    and c.state in ('sent', 'unknown', 'acked', 'rejected'))`;

/**
 * Selects the rows of `held h` that none of the approvals @approvals (a JSON list of hashes)
 * covers, and that nobody has rejected: an SQL condition.
 */
export const isUndecided = `not ${isRejected('h')} and not exists (
  select 1 from approval a join held_plan p on p.plan = a.plan join held b on b.batch = p.batch
  where a.plan in (select value from json_each(@approvals))
    and b.kind = h.kind and b.key = h.key and b.guard = h.guard
    and b.op = h.op and b.part = h.part
    and not exists (
      select 1 from change c where c.kind = b.kind and c.key = b.key and c.op = b.op
        and c.part = b.part and c.approved = a.plan and ${isAfter('c', 'a')}
        and c.state = 'rejected'))`;

/** Prepares the statements about approvals. */
export function planApprovalsIn(db: Statements) {
  const nextNumber = approvalCounterIn(db);
  const approve = db.run<PlanDecision & { plan: string; approvalsGiven: number }>(
    `insert into approval (plan, at, decided_by, reason, ${orderColumn})
     values (@plan, @at, @by, @reason, @approvalsGiven)
     on conflict (plan) do update set at = @at, ended_at = null, decided_by = @by,
       reason = @reason, ${orderColumn} = @approvalsGiven`,
  );
  const told = 'a.plan, a.at, a.decided_by "by", a.reason, s.whole';
  const columns = `${told}, a.${orderColumn} approvalsGiven`;
  const end = db.run<[at: number, plan: string]>('update approval set ended_at = ? where plan = ?');
  const sign = db.run<StoredSignature & { plan: string }>(
    `insert or replace into approval_signature
       (plan, name, at, reason, signature, ${orderColumn})
     values (@plan, @name, @at, @reason, @signature, @approvalsGiven)`,
  );
  const unsign = db.run<[plan: string]>('delete from approval_signature where plan = ?');
  const signed = db.all<[], { plan: string }>(
    'select distinct plan from approval_signature order by plan',
  );
  const whole = db.one<[plan: string], { whole: string | null }>(
    'select whole from held_plan where plan = ?',
  );
  const undecided = db.all<{ plan: string; approvals: string }, { guard: GuardClass; n: number }>(
    `select h.guard, count(distinct h.key) n from held_plan s join held h on h.batch = s.batch
     where s.plan = @plan and ${isUndecided} group by h.guard`,
  );
  const covers = (is: RecordDecision['is'], table: string) =>
    `select '${is}' "is", h.guard, h.op, h.part, ${told}
     from ${table} a join held_plan s on s.plan = a.plan join held h on h.batch = s.batch
     where h.kind = @kind and h.key = @key`;
  const decisions = db.all<{ kind: string; key: string; after: number }, RecordDecision>(
    `${covers('approved', 'approval')} and a.ended_at is null and a.at > @after
     union all ${covers('rejected', 'rejection')} order by guard, op, part`,
  );
  return {
    /**
     * Approves a plan, or approves it again. It counts as given now, unless the decision is an
     * earlier approval that is limited to this part.
     */
    approve: (
      plan: string,
      { at, by, reason, approvalsGiven = nextNumber() }: PlanDecision & { approvalsGiven?: number },
    ) => approve({ plan, at, by, reason, approvalsGiven }),
    /** Returns the approvals that have not ended and are later than `since` (epoch ms). */
    approvals: db.all<[since: number], Approval>(
      `select ${columns} from approval a left join held_plan s on s.plan = a.plan
       where a.ended_at is null and a.at > ? order by a.at, a.plan`,
    ),
    /** Returns the approval of a plan, even if it has ended. */
    approvalOf: db.one<[plan: string], Approval>(
      `select ${columns} from approval a left join held_plan s on s.plan = a.plan where a.plan = ?`,
    ),
    /** Ends the approval of a plan, and drops its signatures; `at` is in epoch milliseconds. */
    end(plan: string, at: number): void {
      end(at, plan);
      unsign(plan);
    },
    /** Stores a signature in place of an earlier one by the same approver. */
    sign: (plan: string, signature: ApprovalSignature) =>
      sign({ plan, ...signature, approvalsGiven: nextNumber() }),
    /** Drops the signatures of a plan or part. */
    unsign,
    /** Returns the signatures of a plan or part, oldest first. */
    signatures: db.all<[plan: string], StoredSignature>(
      `select name, at, reason, signature, ${orderColumn} approvalsGiven
       from approval_signature where plan = ? order by at, name`,
    ),
    /** Returns the plans and parts with signatures. */
    signed: () => signed().map(({ plan }) => plan),
    /** Returns the plan that a part belongs to; null for a whole plan. */
    wholeOf: (plan: string) => whole(plan)?.whole ?? null,
    /**
     * Counts, by guard, the records of a plan with a change that nobody has rejected, and that none
     * of these approvals covers. An approval does not cover a change that the platform rejected
     * under it.
     */
    undecided: (plan: string, approvals: readonly { plan: string }[]) =>
      countsByGuard(undecided({ plan, approvals: hashesOf(approvals) })),
    /**
     * Returns the rejections, and the open approvals later than `after` (epoch milliseconds), that
     * cover changes of a record.
     */
    decisionsOn: (kind: RecordTypeName, key: Key, after: number) => decisions({ kind, key, after }),
  };
}
