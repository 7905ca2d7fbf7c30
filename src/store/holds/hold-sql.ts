/**
 * The SQL conditions about held changes. A row of `hold` is one change that waits for a decision,
 * and the latest decision about it:
 *
 *   ended_at   decision                     the change
 *   null       null, or no longer in force  awaits approval
 *   null       approved                     is sent once by the next run that plans it
 *   null       rejected                     is left out of every plan
 *   set        any                          was made, or is no longer wanted
 */
import { guardRows, timedGuards } from '../../domain/guard-classes.ts';
import { apartMs } from '../../domain/clock.ts';

/** The classes with a holding time, as a list of SQL. */
export const timed = [...timedGuards].map((id) => `'${id}'`).join(', ');

/**
 * Selects the keys that the record in a row of `table` has or had, and those of its contact, so
 * that nobody is somebody else after a change of address. With a plain join, SQLite would scan all
 * ids.
 */
export function everKeys(table: string): string {
  return `select ${table}.key union
    select o.key from temp.staged d cross join origin o on o.kind = d.kind and o.id = d.id
    where d.kind = ${table}.kind and d.key = ${table}.key and d.id <> ''
    union
    select r.key from recorded r indexed by recorded_by_id
    where r.kind = ${table}.kind and r.id = ${table}.target
    union
    select n.key from renamed n where n.kind = ${table}.kind and n.id = ${table}.target`;
}

/**
 * Returns an SQL condition: something holds the record in a row of `table`, or, if the class has a
 * holding time, this part of it.
 */
export function standsOf(table: string, also = 'true'): string {
  return `exists (select 1 from hold s
    where s.kind = ${table}.kind and s.key = ${table}.key and s.guard = ${table}.guard
      and s.ended_at is null and s.undoes = ''
      and (s.part = ${table}.part or s.guard not in (${timed})) and ${also})`;
}

/**
 * Selects the rows of a table of changes that the CRM states about one person, and that therefore
 * only the limits of guards hold: stated opt-outs, flagged people, and people who were erased.
 */
export function isStated(table: string): string {
  return `coalesce(${table}.guard = '${guardRows.opt_out.id}'
    or (${table}.op = 'opt_out' and ${table}.body ->> '$.cause' in ('stated', 'flag'))
    or (${table}.op = 'delete' and (coalesce(${table}.why ->> '$.says', '') = 'deleted'
      or ${table}.body ->> '$.shown' is not null)), 0)`;
}

/**
 * Returns an SQL condition: the change in a row of `table` still waits. What the CRM states about a
 * person does not wait because of what was concluded before.
 */
export function waitsStill(table: string): string {
  return standsOf(table, `(s.stated or not ${isStated(table)})`);
}

/**
 * Returns an SQL expression: the operation that the source asks for. To be in a channel is the same
 * wish, whether the person has to be created for it or not.
 */
export function wishIn(table: string): string {
  return `iif(${table}.op = 'create', 'opt_in', ${table}.op)`;
}

/** Returns an SQL condition: a row of `hold h` waits, and shows what a row of `table` would do. */
export function isShown(table: string): string {
  return `h.kind = ${table}.kind and h.key = ${table}.key and h.guard = ${table}.guard
    and h.part = ${table}.part and h.body in ('', ${table}.body)
    and h.target in ('', coalesce(${table}.target, '')) and h.ended_at is null`;
}

/** Returns an SQL condition: a decision rejects the change in a row of `hold h`. */
export const isRejected = `exists (select 1 from decision d
  where d.id = h.decision and d.verdict = 'rejected' and d.ended_at is null)`;

/**
 * Selects the rows of `decision d` that approve the row of `hold h`, and are in force: @approvals
 * are the ids of those that are. What was signed is what is listed.
 */
export const isApproving = `d.id in (select value from json_each(@approvals))
  and exists (select 1 from listed a where a.list = d.id and a.hold = h.id)`;

/**
 * Returns when a row of `hold` began to wait, as our clock shows it if the platform's is right: an
 * SQL expression. It is null if only our clock has shown it, and is over an hour apart.
 */
export const began = (row: string): string => `coalesce(${row}.platform_at + @aheadMs,
  iif(abs(@aheadMs) > ${apartMs}, null, ${row}.at))`;

/** Selects the rows of `hold` whose wait is over, with the parameters of Began. */
export const isOver = (row: string): string => `(${began(row)} <= @by)`;

/** When a wait began, in milliseconds. */
export interface Began {
  /** By our clock, since the epoch. */
  by: number;
  /** By how much our clock is ahead of the platform's; null if that is not known. */
  aheadMs: number | null;
}
