/**
 * The SQL that selects withheld changes: which of them are rejected, which still wait, and which a
 * plan shows, with the forms of what such queries return and are given.
 */
import { byGuard, type GuardClass } from '../../domain/guard-classes.ts';
import { isAfter } from '../tables/approval-order.ts';
import { isStated, standsOf, wishIn } from './approval-holds.ts';

/**
 * Returns an SQL condition: somebody has rejected the change in a row of `planned` or of `held h`.
 * A rejection of what was concluded does not cover what the CRM states later.
 *
 *   rejected was   concluded   stated
 *   concluded      rejected    open
 *   stated         rejected    rejected
 */
export function isRejected(table: 'planned' | 'h'): string {
  const stated = table === 'h' ? 'h.stated' : isStated(table);
  return `exists (
    select 1 from rejection j join held_plan n on n.plan = j.plan join held r on r.batch = n.batch
    where r.kind = ${table}.kind and r.key = ${table}.key
      and ${wishIn('r')} = ${wishIn(table)} and r.part = ${table}.part and r.guard = ${table}.guard
      and r.body in ('', ${table}.body)
      and r.target in ('', coalesce(${table}.target, ''))
      and r.stated >= coalesce(${stated}, 0))`;
}

/**
 * Selects the rows of `held h` in `held_plan s` that still wait: an SQL condition. A change that
 * was done under an approval of the plan or of a part of it waits no more; once the approval has
 * ended, a run may hold the change again. For a plan of `undo`, no record is stored as waiting,
 * because only that command makes its changes.
 */
export const isLeft = `(s.mode = 'undo' or ${standsOf('h')}) and not exists (
  select 1 from change c join approval a on a.plan = c.approved
    join held_plan f on f.plan = a.plan
  where c.kind = h.kind and c.key = h.key and c.op = h.op and c.part = h.part
    and coalesce(f.whole, f.plan) = coalesce(s.whole, s.plan)
    and (a.ended_at is null or s.mode = 'undo') and ${isAfter('c', 'a')} and c.state = 'acked')`;

/** Selects the rows that nobody has rejected. All rows of a rejected part can be approved. */
export const isOpen = `(not ${isRejected('h')} or exists (select 1 from rejection j where j.plan = @plan))`;

const columns = 'h.kind, h.key, h.op, h.part, h.target, h.guard, h.body, h.ids, h.stated';

/** An SQL expression: the row of `held h` is a further channel of a person of this plan. */
export const further = `h.op = 'opt_in' and exists (select 1 from held c where c.batch = h.batch
  and c.kind = h.kind and c.key = h.key and c.op = 'create')`;

/** Selects the changes of the plan @plan. */
export const shown = `select ${columns}, ${further} "isFurther"
  from held_plan s join held h on h.batch = s.batch where s.plan = @plan`;

/** The order in which changes are listed. */
export const order = 'order by h.guard, h.kind, h.key, h.op, h.part, h.target';

/** Completes counts by guard, of which a query returns only those that are not 0. */
export function countsByGuard(
  counts: readonly { guard: GuardClass; n: number }[],
): Record<GuardClass, number> {
  return byGuard((guard) => counts.find((one) => one.guard === guard)?.n ?? 0);
}

/** Returns the hashes of the plans of approvals as a JSON list, the parameter @approvals. */
export function hashesOf(approvals: readonly { plan: string }[]): string {
  return JSON.stringify(approvals.map(({ plan }) => plan));
}
