import type { ProblemCause } from '../../domain/problem-causes.ts';
import type { RecordProblem } from '../../domain/record-problem.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';
import type { Statements } from '../database/prepared-statements.ts';
import { isNamed } from './retry-later.ts';

/**
 * Finds the people who are subscribed through this mirror, and whose CRM record may state an
 * opt-out that cannot be read. A person who is no longer subscribed does not count, even if the
 * problem is still recorded.
 */
export interface UnreadableOptOuts {
  /**
   * Returns whether the person is ours and subscribed in a channel, by what is recorded and what
   * this run has noted. `id` is that of a CRM record, which may have had another key before.
   */
  isSubscribed(kind: RecordTypeName, key: Key, id: string): boolean;
  count(): number;
  /** Returns up to `count` of these people, oldest first. */
  list(count: number): UnreadableOptOut[];
  /** Returns up to `count` of those whose record is not in this run's incremental reading. */
  unread(kind: RecordTypeName, count: number): UnreadableOptOut[];
}

/** An opt-out that may be waiting; `since` is in milliseconds since the epoch. */
export interface UnreadableOptOut extends Pick<RecordProblem, 'kind' | 'key' | 'reason' | 'fix'> {
  since: number;
}

const cause: ProblemCause = 'opt-out-unreadable';

/**
 * Selects the people of `r` who are ours and subscribed, and have a contact that has not left all
 * mail; `body` is what is known of them.
 */
const isOurs = (body: string): string =>
  `r.ownership <> 'noted' and r.id is not null
   and exists (
     select 1 from json_each(${body}, '$.channels') c where c.value ->> 'is' = 'opt_in')
   and (${body} ->> '$.contacts[0]' is null or exists (
     select 1 from json_each(${body}, '$.contacts') c where not (c.value ->> 'left')))`;

/** Selects the keys under which a person may be recorded. */
const keysOf = (kind: string, key: string, id: string): string =>
  `select ${key} union select o.key from origin o where o.kind = ${kind} and o.id = ${id}`;

/** Prepares the statements about opt-outs that cannot be read. */
export function unreadableOptOutsIn(db: Statements): UnreadableOptOuts {
  const noted = `coalesce(
    (select n.body from temp.noted n where n.kind = r.kind and n.key = r.key), r.body)`;
  const subscribed = db.prepare<{ kind: string; key: string; id: string }, { one: 1 }>(
    `select 1 one from recorded r
     where r.kind = @kind and r.key in (${keysOf('@kind', '@key', '@id')}) and ${isOurs(noted)}`,
  );
  const found = `problem.class = 'invalid' and problem.cause = '${cause}' and exists (
    select 1 from recorded r
    where r.kind = problem.kind
      and r.key in (${keysOf('problem.kind', 'problem.key', 'problem.crm')})
      and ${isOurs('r.body')})`;
  const listed = (where: string): string =>
    `select kind, key, reason, fix, since from problem where ${where} order by since, key limit`;
  const count = db.prepare<[], { n: number }>(`select count(*) n from problem where ${found}`);
  const list = db.prepare<[number], UnreadableOptOut>(`${listed(found)} ?`);
  const unread = db.prepare<[string, number], UnreadableOptOut>(
    `${listed(`kind = ? and ${found} and not ${isNamed}`)} ?`,
  );
  return {
    isSubscribed: (kind, key, id) => subscribed.get({ kind, key, id }) !== undefined,
    count: () => count.get()?.n ?? 0,
    list: (most) => list.all(most),
    unread: (kind, most) => unread.all(kind, most),
  };
}
