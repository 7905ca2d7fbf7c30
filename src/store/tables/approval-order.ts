/**
 * Tells which changes were journaled after an approval was given. Times cannot tell, because a
 * clock can be set back, and approvers sign by clocks of their own. Therefore the snapshot counts
 * the approvals and signatures, and each change stores how many there were when it was journaled.
 */
import type { Meta } from '../database/meta-table.ts';
import type { Statements } from '../database/prepared-statements.ts';

/** Where this order is stored: on changes, approvals and signatures. */
export const orderColumn = 'approvals_given';

const name = 'approvals-given';

/** An SQL expression: how many approvals and signatures have been given. */
export const approvalsGiven = `coalesce(
  (select cast(m.value as integer) from meta m where m.name = '${name}'), 0)`;

/** Returns how many approvals and signatures have been given. */
export function countApprovals(meta: Meta): number {
  return Number(meta.get(name) ?? 0);
}

/** Returns a function that counts one more, and returns its number. */
export function approvalCounterIn(db: Statements): () => number {
  return db.number<[]>(
    `insert into meta (name, value) values ('${name}', '1')
     on conflict (name) do update set value = cast(cast(value as integer) + 1 as text)
     returning cast(value as integer)`,
  );
}
