import type { ProblemCause } from '../../domain/problem-causes.ts';
import type { RecordProblem } from '../../domain/record-problem.ts';
import type { DesiredRow, RecordTypeName } from '../../domain/record.ts';
import type { Statements } from '../database/prepared-statements.ts';
import { isNamed } from './known-problems.ts';

/** An opt-out that may be waiting; `since` is in milliseconds since the epoch. */
interface UnreadableOptOut extends Pick<RecordProblem, 'kind' | 'key' | 'reason' | 'fix'> {
  since: number;
}

const cause: ProblemCause = 'opt-out-unreadable';

/**
 * Selects the people of `r` who are ours and subscribed, and have a contact that has not left all
 * mail; `body` is what is known of them.
 */
const isOurs = (body: string, channel = 'true'): string =>
  `r.ownership <> 'noted' and r.id is not null
   and exists (
     select 1 from json_each(${body}, '$.channels') c where c.value ->> 'is' = 'opt_in' and ${channel})
   and (${body} ->> '$.contacts[0]' is null or exists (
     select 1 from json_each(${body}, '$.contacts') c where not (c.value ->> 'left')))`;

/** Selects the keys under which a person may be recorded. */
const keysOf = (kind: string, key: string, id: string): string =>
  `select ${key} union select o.key from origin o where o.kind = ${kind} and o.id = ${id}`;

/**
 * Finds the people who are subscribed through this mirror, and whose CRM record may state an
 * opt-out that cannot be read; and the records with an opt-out whose address cannot be read. A
 * person who is no longer subscribed does not count, even if the problem is still recorded.
 */
export function unreadableOptOutsIn(db: Statements) {
  const noted = `coalesce(
    (select n.body from temp.noted n where n.kind = r.kind and n.key = r.key), r.body)`;
  const isUnread = `c.key in (select value from json_each(@body, '$.unread'))`;
  const subscribed = db.value<Record<'kind' | 'key' | 'id' | 'body', string>, 0 | 1>(
    `select max(${isOurs(noted, isUnread)}) from recorded r
     where r.kind = @kind and r.key in (${keysOf('@kind', '@key', '@id')})`,
  );
  const found = `problem.class = 'invalid' and problem.cause = '${cause}' and coalesce((
    select max(${isOurs('r.body')}) from recorded r
    where r.kind = problem.kind
      and r.key in (${keysOf('problem.kind', 'problem.key', 'problem.crm')})), 1)`;
  const listed = (where: string): string =>
    `select kind, key, reason, fix, since from problem where ${where} order by since, key limit ?`;
  return {
    /**
     * Returns whether the person is ours and subscribed in a channel from which the record may opt
     * out, by what is recorded and what this run has noted. Its `id` may have had another key
     * before. Returns undefined if nothing is recorded under these.
     */
    isSubscribed({
      kind,
      key = '',
      id,
      body,
    }: Pick<DesiredRow, 'kind' | 'key' | 'id' | 'body'>): boolean | undefined {
      const is = subscribed({ kind, key, id, body });
      return is === undefined ? is : is === 1;
    },
    count: db.number<[]>(`select count(*) from problem where ${found}`),
    /** Returns up to `count` of these people, oldest first. */
    list: db.all<[count: number], UnreadableOptOut>(listed(found)),
    /** Returns up to `count` of those whose record is not in this run's incremental reading. */
    unread: db.all<[RecordTypeName, count: number], UnreadableOptOut>(
      listed(`kind = ? and ${found} and not ${isNamed}`),
    ),
  };
}
