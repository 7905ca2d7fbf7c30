import type { Statements } from '../database/prepared-statements.ts';
import type { GuardClass } from '../../domain/guard-classes.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';
import { isGuarded, rangesBy, type Guarded, type KeyRange } from '../database/key-range.ts';

/**
 * Who is held from one run to the next, with the time at which that began. A stated opt-out stands
 * for one channel (`part`) and until its time is over; everything else stands for the whole record.
 *
 *   a record stands   from when a run withholds anything of it
 *                     until it is approved and that approval has ended,
 *                     or a run that could tell wants nothing of the kind of it any more,
 *                     or, of a stated opt-out, until that is acknowledged
 */
export interface ApprovalHolds {
  /**
   * Has what this run withholds held in later runs too, from `since` on; what stands already keeps
   * its own time, and so does what stood under another key that the source or the platform had for
   * it. `byPart`: each part of a record for itself.
   */
  stand(guarded: Guarded, since: HeldSince & { byPart: boolean }): void;
  /** All that stands, by the keys. */
  ranges(guard: GuardClass, kind: RecordTypeName): Iterable<KeyRange>;
  /**
   * Since when the oldest has stood that began later than `after`, and that is in the batch of this
   * plan, if one is named; undefined: there is none. Milliseconds since the epoch.
   */
  oldest(guard: GuardClass, of?: { after?: number; plan?: string }): number | undefined;
  /** What stands of one record. */
  of(guard: GuardClass, key: Key): { part: string; at: number }[];
  /**
   * Corrects times that lie ahead of a clock, which was set back since, and fills in those of the
   * platform that were not known.
   */
  mend(guard: GuardClass, now: HeldSince): void;
  /** How many records of a range stand of which this run plans nothing of the class. */
  countUnplanned(guarded: Guarded): number;
  /**
   * No longer has held of whom nothing was planned: of a run that called for all there is, but for
   * those that another one was at meanwhile.
   */
  dropUnwanted(standing: HeldRange, but: readonly Key[]): void;
  /** … nor whom this plan is about, which was approved, but for what is withheld beside it. */
  dropApproved(standing: HeldRange, which: { plan: string; but: readonly Key[] }): void;
  /** Nor the opt-outs of this class that a run has had acknowledged. */
  dropDone(guard: GuardClass, run: string): void;
}

/** A range of those who are held since a run. */
export interface HeldRange extends Guarded {
  kind: RecordTypeName;
}

/** A time by our clock, and by the platform's where that is known; milliseconds since the epoch. */
export interface HeldSince {
  at: number;
  platformAt: number | null;
}

/** What began then, or earlier, is over: by either clock. */
export interface Ends {
  local: number;
  platform: number | null;
}

/** Of `standing s`, in a statement with the parameters of Ends. */
export const isOver = '(s.at <= @local or s.platform_at <= @platform)';

/** Of a row of this table, that the record (or the part of it) stands. */
export function standsOf(table: string, also = 'true'): string {
  return `exists (select 1 from standing s
    where s.guard = ${table}.guard and s.kind = ${table}.kind and s.key = ${table}.key
      and s.part in ('', ${table}.part) and ${also})`;
}

export function approvalHoldsIn(db: Statements): ApprovalHolds {
  // Cross: else it goes through all ids there are.
  const formerKeys = `
    select o.key from temp.staged d cross join origin o on o.kind = d.kind and o.id = d.id
    where d.kind = w.kind and d.key = w.key and d.id <> ''
    union
    select r.key from recorded r indexed by recorded_by_id where r.kind = w.kind and r.id = w.target
    union
    select n.key from renamed n where n.kind = w.kind and n.id = w.target`;
  const stand = db.prepare<Guarded & HeldSince & { byPart: number }>(
    `insert or ignore into standing (guard, kind, key, part, at, platform_at)
     select w.guard, w.kind, w.key, w.held, min(@at, coalesce(min(s.at), @at)),
       coalesce(min(@platformAt, min(s.platform_at)), @platformAt, min(s.platform_at))
     from (select *, iif(@byPart, part, '') held from temp.withheld where ${isGuarded}) w
       left join standing s on s.guard = w.guard and s.kind = w.kind
         and s.part in ('', w.held) and s.key in (${formerKeys})
     group by w.guard, w.kind, w.key, w.held`,
  );
  const ranges = rangesBy(db, {
    column: 'key',
    of: ['standing'],
    where: 'guard = @guard and kind = @kind',
  });
  const of = db.prepare<[string, string], { part: string; at: number | null }>(
    'select part, at from standing where guard = ? and key = ? order by part',
  );
  const oldest = db.prepare<[string, number], { at: number | null }>(
    'select min(at) at from standing where guard = ? and at > ?',
  );
  const oldestOf = db.prepare<[string, string, number], { at: number | null }>(
    `select min(s.at) at from held_plan l join held h on h.batch = l.batch
       join standing s on s.guard = h.guard and s.kind = h.kind
         and s.key = h.key and s.part = h.part
     where l.plan = ? and h.guard = ? and s.at > ?`,
  );
  const ahead = db.prepare('update standing set at = @at where guard = @guard and at > @at');
  const unknown = db.prepare(
    `update standing set platform_at = @platformAt
     where guard = @guard and (platform_at is null or platform_at > @platformAt)`,
  );
  return {
    stand: (guarded, { byPart, ...since }) =>
      void stand.run({ ...guarded, ...since, byPart: Number(byPart) }),
    ranges: (guard, kind) => ranges({ guard, kind }),
    of: (guard, key) => of.all(guard, key).map(({ part, at }) => ({ part, at: at ?? 0 })),
    oldest(guard, { after = -1, plan } = {}) {
      const found =
        plan === undefined ? oldest.get(guard, after) : oldestOf.get(plan, guard, after);
      return found?.at ?? undefined;
    },
    mend(guard, { at, platformAt }) {
      ahead.run({ guard, at });
      if (platformAt !== null) unknown.run({ guard, platformAt });
    },
    ...askedIn(db),
    ...droppingIn(db),
  };
}

function askedIn(db: Statements): Pick<ApprovalHolds, 'countUnplanned'> {
  const isIn = (table: string): string => `exists (
    select 1 from ${table} t where t.guard = s.guard and t.key = s.key and t.kind = s.kind)`;
  const unplanned = db.prepare<Guarded, { n: number }>(
    `select count(distinct s.key) n from standing s where s.${isGuarded}
       and not ${isIn('temp.withheld')} and not ${isIn('temp.passed')}`,
  );
  return { countUnplanned: (guarded) => unplanned.get(guarded)?.n ?? 0 };
}

type Dropping = Pick<ApprovalHolds, 'dropUnwanted' | 'dropApproved' | 'dropDone'>;

function droppingIn(db: Statements): Dropping {
  const others = 'and key not in (select value from json_each(@but))';
  const dropThose = `delete from standing where ${isGuarded} and kind = @kind`;
  const isIn = (table: string): string => `exists (
    select 1 from ${table} t
    where t.guard = standing.guard and t.key = standing.key and t.kind = standing.kind
      and standing.part in ('', t.part))`;
  const unwanted = db.prepare<HeldRange & { but: string }>(
    `${dropThose} and not ${isIn('temp.passed')} and not ${isIn('temp.withheld')}
     ${others}`,
  );
  const approved = db.prepare<HeldRange & { plan: string; but: string }>(
    `${dropThose} and not ${isIn('temp.withheld')} ${others} and exists (
       select 1 from held_plan s join held h on h.batch = s.batch where s.plan = @plan
         and h.guard = standing.guard and h.kind = standing.kind and h.key = standing.key
         and standing.part in ('', h.part))`,
  );
  const done = db.prepare<[string, string]>(
    `delete from standing where guard = ? and (kind, key, part) in (
       select kind, key, part from change indexed by change_by_run
       where run = ? and op = 'opt_out' and state = 'acked')`,
  );
  return {
    dropUnwanted: (standing, but) => void unwanted.run({ ...standing, but: JSON.stringify(but) }),
    dropApproved: (standing, { plan, but }) =>
      void approved.run({ ...standing, plan, but: JSON.stringify(but) }),
    dropDone: (guard, run) => void done.run(guard, run),
  };
}
