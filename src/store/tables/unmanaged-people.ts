import { unmanagedCauses, type UnmanagedCause } from '../../domain/unmanaged-people.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';
import type { RecordName } from '../database/key-range.ts';
import type { Statements } from '../database/prepared-statements.ts';

/** What an operator decides about unmanaged people. */
type UnmanagedDecision = 'opt_out' | 'acknowledged';

export interface UnmanagedPart {
  key: Key;
  part: string;
  cause: UnmanagedCause;
  decided: UnmanagedDecision | null;
}

const inSql = (names: readonly string[]): string =>
  `(${names.map((name) => `'${name}'`).join(', ')})`;
const causes = inSql(Object.keys(unmanagedCauses));
const protectedCauses = inSql(
  Object.entries(unmanagedCauses).flatMap(([cause, { isProtected }]) =>
    isProtected ? [cause] : [],
  ),
);

/** An SQL condition: nobody has acknowledged the problem. */
export const isHeard = "decided is not 'acknowledged'";

/** The same of what a run has noticed. */
export const isNoticedHeard = `(cause not in ${causes} or not exists (
  select 1 from problem p where p.kind = noticed.kind and p.key = noticed.key
    and p.class = noticed.class and p.part = noticed.part and p.decided = 'acknowledged'))`;

/** An SQL expression: what stays of the decision when a run notices the problem again. */
export const keptDecision = `case
  when excluded.cause not in ${causes} then null
  when excluded.cause in ${protectedCauses} and problem.decided = 'opt_out' then null
  else problem.decided end`;

const columns = 'kind, key, class, part, reason, fix, cause, about, option, value, place, crm';

/**
 * The problems of people who are gone from the CRM and subscribed with a contact that is not ours,
 * and what an operator decided about each. A later decision replaces an earlier one. A decision
 * ends with its problem: when the person is opted out, or is in the CRM again. A decision to opt
 * out also ends when contacts.protect covers the person.
 */
export function unmanagedIn(db: Statements) {
  return {
    /** Returns all of these people, by key. */
    list: db.all<[RecordTypeName], UnmanagedPart>(
      `select key, part, cause, decided from problem
       where kind = ? and cause in ${causes} order by key, part`,
    ),
    /** Counts the people by cause, without the acknowledged ones. */
    counts: db.all<[RecordTypeName], { cause: UnmanagedCause; count: number }>(
      `select cause, count(distinct key) count from problem
       where kind = ? and cause in ${causes} and ${isHeard} group by cause`,
    ),
    /** Returns the parts of a record about which an operator has decided this. */
    decided: db.values<[RecordTypeName, Key, as: UnmanagedDecision], string>(
      `select part from problem
       where kind = ? and key = ? and cause in ${causes} and decided = ?`,
    ),
    /** Stores a decision, or takes it back (null). `fix`: what remains to be done. */
    decide: db.run<RecordName & { part: string; as: UnmanagedDecision | null; fix: string }>(
      `update problem set decided = @as, fix = @fix
       where kind = @kind and key = @key and part = @part and cause in ${causes}`,
    ),
    /**
     * Notices again those who are still gone from the CRM, and whom this run did not look for on
     * the platform.
     */
    carry: db.run<[RecordTypeName]>(
      `insert or ignore into temp.noticed (${columns})
       select ${columns} from problem p where kind = ? and cause in ${causes}
         and not exists (select 1 from temp.observed o where o.kind = p.kind and o.key = p.key)
         and exists (select 1 from temp.staged s where s.kind = p.kind and s.key = p.key)
         and not exists (select 1 from temp.desired d where d.kind = p.kind and d.key = p.key
           and (d.presence = 'present' or d.reason is not null))`,
    ),
    /** Drops what was noticed of a part that has just been opted out. */
    mend: db.run<[RecordTypeName, Key, part: string]>(
      `delete from temp.noticed where kind = ? and key = ? and part = ? and cause in ${causes}`,
    ),
  };
}
