/**
 * When a change waits for an approval: SQL that says when a wait began and whether it is over, and
 * the table of the records that wait, across runs.
 */
import type { Statements } from '../database/prepared-statements.ts';
import { type GuardClass, guardRows } from '../../domain/guard-classes.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';
import { apartMs } from '../../domain/clock.ts';
import { isGuarded, rangesBy, type Guarded } from '../database/key-range.ts';

/** A range of the records of one type that await approval. */
export interface HeldRange extends Guarded {
  kind: RecordTypeName;
}

/**
 * A time by our clock, and by the platform's (null if unknown), in milliseconds since the epoch.
 */
export interface HeldSince {
  at: number;
  platformAt: number | null;
}

/** When a wait began, in milliseconds. */
export interface Began {
  /** By our clock, since the epoch. */
  by: number;
  /** By how much our clock is ahead of the platform's; null if that is not known. */
  aheadMs: number | null;
}

/**
 * Returns when a row of `standing s` began to wait, as our clock shows it if the platform's is
 * right: an SQL expression. It is null if only our clock has shown it, and is over an hour apart.
 */
const began = `coalesce(s.platform_at + @aheadMs,
  iif(abs(@aheadMs) > ${apartMs}, null, s.at))`;

/** Selects the rows of `standing s` whose wait is over, with the parameters of Began. */
export const isOver = `(${began} <= @by)`;

/**
 * Returns an SQL expression: the operation that the source asks for. To be in a channel is the same
 * wish, whether the person has to be created for it or not.
 */
export function wishIn(table: string): string {
  return `iif(${table}.op = 'create', 'opt_in', ${table}.op)`;
}

/** Returns an SQL condition: the record, or its part, in a row of `table` is waiting. */
export function standsOf(table: string, also = 'true'): string {
  return `exists (select 1 from standing s
    where s.guard = ${table}.guard and s.kind = ${table}.kind and s.key = ${table}.key
      and s.part in ('', ${table}.part) and ${also})`;
}

/**
 * Selects the rows of a table of changes that the CRM states about one person, and that therefore
 * only the limits of guards hold: stated opt-outs, flagged people, and people who were erased.
 */
export function isStated(table: string): string {
  return `(${table}.guard = '${guardRows.opt_out.id}'
    or (${table}.op = 'opt_out' and ${table}.body ->> '$.cause' in ('stated', 'flag'))
    or (${table}.op = 'delete' and (coalesce(${table}.why ->> '$.says', '') = 'deleted'
      or ${table}.body ->> '$.shown' is not null)))`;
}

/**
 * Returns an SQL condition: the change in a row of `table` still waits. What the CRM states about a
 * person does not wait because of what was concluded before.
 */
export function waitsStill(table: string): string {
  return standsOf(table, `(s.stated or not coalesce(${isStated(table)}, 0))`);
}

/**
 * Selects the former keys of the record of a row `w`. With a plain join, SQLite would scan all ids.
 */
const formerKeys = `
  select o.key from temp.staged d cross join origin o on o.kind = d.kind and o.id = d.id
  where d.kind = w.kind and d.key = w.key and d.id <> ''
  union
  select r.key from recorded r indexed by recorded_by_id where r.kind = w.kind and r.id = w.target
  union
  select n.key from renamed n where n.kind = w.kind and n.id = w.target`;

/**
 * Stores, across runs, which records await approval and since when. A stated opt-out waits for one
 * channel (`part`), and for a limited time; any other change makes the whole record wait (`part` is
 * '').
 *
 *   a record waits   from the run that first withholds a change to it
 *                    until it is approved and that approval has ended,
 *                    or until a run that read everything plans no change of the class for it,
 *                    or, for a stated opt-out, until the platform has acknowledged all of it
 */
export function approvalHoldsIn(db: Statements) {
  const stand = db.run<Guarded & HeldSince & { byPart: number }>(
    `insert into standing (guard, kind, key, part, at, platform_at, stated)
     select w.guard, w.kind, w.key, w.held, min(@at, coalesce(min(s.at), @at)),
       coalesce(min(@platformAt, min(s.platform_at)), @platformAt, min(s.platform_at)),
       max(w.stated)
     from (select *, iif(@byPart, part, '') held from temp.withheld where ${isGuarded}) w
       left join standing s on s.guard = w.guard and s.kind = w.kind
         and s.part in ('', w.held) and s.key in (${formerKeys})
     group by w.guard, w.kind, w.key, w.held
     on conflict do update set stated = excluded.stated
       where excluded.stated > standing.stated`,
  );
  const ranges = rangesBy(db, {
    column: 'key',
    of: ['standing'],
    where: 'guard = @guard and kind = @kind',
  });
  const oldest = db.one<Began & { guard: string }, { at: number | null }>(
    `select min(${began}) at from standing s where s.guard = @guard and ${began} > @by`,
  );
  const oldestOf = db.one<Began & { guard: string; plan: string }, { at: number | null }>(
    `select min(${began}) at from held_plan l join held h on h.batch = l.batch
       join standing s on s.guard = h.guard and s.kind = h.kind
         and s.key = h.key and s.part = h.part
     where l.plan = @plan and h.guard = @guard and ${began} > @by`,
  );
  const of = db.all<[GuardClass, Key], { part: string; at: number | null }>(
    'select part, at from standing where guard = ? and key = ? order by part',
  );
  const ahead = db.run<{ guard: string; at: number }>(
    'update standing set at = @at where guard = @guard and at > @at',
  );
  const unknown = db.run<HeldSince & { guard: string }>(
    `update standing set platform_at = iif(platform_at is null and abs(@at - @platformAt) <= ${apartMs},
       at + @platformAt - @at, @platformAt)
     where guard = @guard and (platform_at is null or platform_at > @platformAt)`,
  );
  const isPlanned = (table: string): string => `exists (
    select 1 from ${table} t where t.guard = s.guard and t.key = s.key and t.kind = s.kind)`;
  const unplanned = db.one<Guarded, { n: number }>(
    `select count(distinct s.key) n from standing s where s.${isGuarded}
       and not ${isPlanned('temp.withheld')} and not ${isPlanned('temp.passed')}`,
  );
  const others = 'and key not in (select value from json_each(@but))';
  const dropThose = `delete from standing where ${isGuarded} and kind = @kind`;
  const isIn = (table: string): string => `exists (
    select 1 from ${table} t
    where t.guard = standing.guard and t.key = standing.key and t.kind = standing.kind
      and standing.part in ('', t.part))`;
  const dropUnwanted = db.run<HeldRange & { but: string }>(
    `${dropThose} and not ${isIn('temp.passed')} and not ${isIn('temp.withheld')}
       and not ${isIn('temp.refused')} ${others}`,
  );
  const dropApproved = db.run<HeldRange & { plan: string; but: string }>(
    `${dropThose} and not ${isIn('temp.withheld')} and not ${isIn('temp.refused')} ${others}
       and exists (
       select 1 from held_plan s join held h on h.batch = s.batch where s.plan = @plan
         and h.guard = standing.guard and h.kind = standing.kind and h.key = standing.key
         and standing.part in ('', h.part))`,
  );
  return {
    /**
     * Stores that what this run withholds in a range awaits approval since `since`. A record that
     * is already waiting keeps the time at which its wait began, even if it was stored under a
     * former key. With `byPart`, each part of a record waits separately.
     */
    stand: (guarded: Guarded, { byPart, ...since }: HeldSince & { byPart: boolean }) =>
      stand({ ...guarded, ...since, byPart: Number(byPart) }),
    /** Yields the key ranges of the records that await approval. */
    ranges: (guard: GuardClass, kind: RecordTypeName) => ranges({ guard, kind }),
    /**
     * Returns the start of the longest wait, by our clock, among the records that began to wait
     * after `by` and, if `plan` is given, are shown in that plan. Returns undefined if there is
     * none.
     */
    oldest(
      guard: GuardClass,
      {
        by = Number.MIN_SAFE_INTEGER,
        aheadMs = null,
        plan,
      }: Partial<Began> & { plan?: string } = {},
    ): number | undefined {
      const after = { guard, by, aheadMs };
      const found = plan === undefined ? oldest(after) : oldestOf({ ...after, plan });
      return found?.at ?? undefined;
    },
    /**
     * Returns the waiting parts of one record, and since when they wait, in milliseconds since the
     * epoch.
     */
    of: (guard: GuardClass, key: Key) =>
      of(guard, key).map(({ part, at }) => ({ part, at: at ?? 0 })),
    /**
     * Sets times that are in the future to `now`, because a clock was set back, and fills in
     * missing times of the platform: with now if the clocks are apart, because ours does not tell
     * them.
     */
    mend(guard: GuardClass, { at, platformAt }: HeldSince): void {
      ahead({ guard, at });
      if (platformAt !== null) unknown({ guard, at, platformAt });
    },
    /** Counts the waiting records of a range for which this run plans no change of the class. */
    countUnplanned: (guarded: Guarded) => unplanned(guarded)?.n ?? 0,
    /**
     * Ends the wait of records in a range for which the run planned no change of the class, not
     * even a rejected one, except the keys in `but`, which another run has taken over. Call it only
     * for a run that read everything.
     */
    dropUnwanted: (standing: HeldRange, but: readonly Key[]) =>
      dropUnwanted({ ...standing, but: JSON.stringify(but) }),
    /** Ends the wait of records that an approved plan shows and that this run does not withhold. */
    dropApproved: (standing: HeldRange, { plan, but }: { plan: string; but: readonly Key[] }) =>
      dropApproved({ ...standing, plan, but: JSON.stringify(but) }),
    /**
     * Ends the wait of opt-outs that the platform acknowledged in this run. A person continues to
     * wait while the opt-out of another contact with the address is withheld.
     */
    dropDone: db.run<[GuardClass, run: string]>(
      `delete from standing where guard = ? and (kind, key, part) in (
         select kind, key, part from change indexed by change_by_run
         where run = ? and op = 'opt_out' and state = 'acked')
         and not ${isIn('temp.withheld')}`,
    ),
  };
}
