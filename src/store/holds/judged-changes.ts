/**
 * The staged changes of a run that something may hold back. What the run decides about a change of
 * a guard class is kept in `judged` until the run ends:
 *
 *   passed     is sent; `by` is the approval, or why it needs none; null: it is below the limits
 *   held       awaits approval; it stays in `planned`, marked as held
 *   rejected   somebody has rejected it
 *   deferred   is left to a later run; `by` is `window` or `canary`
 *
 * A new decision about a record replaces what was judged of it, but for what has passed. Below are
 * approvals and exemptions, counts, what holds, and withdrawn opt-outs.
 */
import type { Change, Op } from '../../domain/change.ts';
import type { GuardClass } from '../../domain/guard-classes.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';
import { inRange, isGuarded, rangesBy, type Guarded } from '../database/key-range.ts';
import { type Statements, withoutNull } from '../database/prepared-statements.ts';
import { orderColumn } from '../tables/journal.ts';
import {
  type Began,
  everKeys,
  isApproving,
  isOver,
  isShown,
  isStated,
  standsOf,
  waitsStill,
  wishIn,
} from './hold-sql.ts';

/** A held change, as plans are named by it; `stated` is 1 if the CRM states it, otherwise 0. */
interface JudgedChange extends Change {
  stated: 0 | 1;
}

const passed = `select 1 from temp.judged p where p.guard = planned.guard
  and p.key = planned.key and p.kind = planned.kind and p."is" = 'passed'`;

/** Selects the rows of `planned` that are neither held, nor released earlier in this run. */
const isUnpassed = `held = 0
  and not exists (${passed} and (p.by is null or p.part = planned.part))`;

/**
 * Selects the rows of `planned` that are neither approved, nor held, nor released earlier in this
 * run: an SQL condition with the parameter `guard`.
 */
export const isNew = `guard = @guard and approved is null and ${isUnpassed}`;

/**
 * Selects the rows of `planned` that an earlier run held, and that still wait. A person who passes
 * with one change passes with others of this run, but not with one that is held.
 */
const isStanding = `guard = @guard and approved is null and held = 0
  and not exists (${passed} and p.part = planned.part) and ${waitsStill('planned')}`;

/** Selects the rows that a rule or a canary can hold; a first load is exempt from limits only. */
const canAsk = `(approved is null or approved = 'exempt') and ${isUnpassed}
  and not ${isStated('planned')}`;

/**
 * Selects the rows of a table of changes that no window delays: what the source states about one
 * person, and the opt-outs of `undo`, which no other run makes.
 */
function isUrgent(table: string): string {
  const isUndone = `(${table}.op = 'opt_out' and ${table}.body ->> '$.cause' = 'undone')`;
  return `(${isStated(table)} or coalesce(${isUndone}, 0))`;
}

/** Returns an SQL condition: the change withdraws an opt-out that the source had stated. */
export const withdraws = (table: string) => `coalesce(${table}.body ->> '$.withdraws', 0)`;

/** Selects the rows of `planned` whose record stated an opt-out in the last reading, too. */
const wasStated = `exists (
  select 1 from origin o join stated s indexed by stated_opt_out
    on s.kind = o.kind and s.id = o.id and s.part = planned.part and s.says = 'opt_out'
  where o.kind = planned.kind and o.key = planned.key)`;

/**
 * Selects the rows of `planned` about which the latest decision is a rejection. One of what was
 * concluded does not cover what the source states.
 */
const isRejected = `'rejected' = (
  select d.verdict from hold h join decision d on d.id = h.decision
  where ${isShown('planned')} and ${wishIn('h')} = ${wishIn('planned')}
    and d.verdict <> 'pending' and d.ended_at is null
    and (d.verdict = 'approved' or h.stated >= ${isStated('planned')})
  order by d.number desc limit 1)`;

/**
 * The approval @approvals that covers a row of `planned`: an SQL expression. One that was given
 * before the same change was released is used up. One of an opt-in that withdrew no opt-out does
 * not cover what the CRM has stated since.
 */
const approval = `(
  select d.id from hold h join decision d on d.id = h.decision
  where ${isShown('planned')} and h.op = planned.op and h.undoes = @undoes and ${isApproving}
    and h.withdraws >= ${withdraws('planned')}
    and not exists (
      select 1 from change c indexed by change_by_key
      where c.kind = planned.kind and c.key = planned.key and c.op = planned.op
        and c.part = planned.part and c.${orderColumn} >= d.number
        and c.state in ('sent', 'unknown', 'acked', 'rejected')
        and exists (select 1 from decision u where u.id = c.approved))
  order by d.number desc limit 1)`;

/** A range of changes, and what the condition compares them with. */
type ToJudge = Guarded & { by?: string; keys?: readonly Key[]; isAboutOne?: boolean };

/** Returns a function that judges the changes of a range that match a condition. It counts them. */
function judging(db: Statements, is: 'passed' | 'held' | 'rejected' | 'deferred', which: string) {
  // Only what is held is stored, and named by its content.
  const sent = is === 'held' ? 'target, body' : "null, ''";
  const by = { passed: 'approved', held: 'null', rejected: 'null', deferred: '@by' }[is];
  const those = `from temp.planned where ${isGuarded} and ${which}`;
  const copy = db.run<ToJudge>(
    `insert into temp.judged
       (guard, kind, key, op, part, target, body, phase, stated, withdraws, "is", by)
     select guard, kind, key, op, part, ${sent}, phase, ${isStated('planned')},
       ${withdraws('planned')}, '${is}', ${by} ${those}`,
  );
  if (is === 'passed') return copy;
  const settle = db.run<Guarded & { keys?: readonly Key[] }>(
    is === 'held'
      ? `update temp.planned set held = 1 where ${isGuarded} and ${which}`
      : `delete ${those}`,
  );
  return (guarded: ToJudge): number => (copy(guarded) === 0 ? 0 : settle(guarded));
}

/** Prepares the statements about changes that something may hold back. */
export function judgedChangesIn(db: Statements) {
  return { ...releasingIn(db), ...countsIn(db), ...holdingIn(db), withdrawals: withdrawalsIn(db) };
}

/** Marks changes as approved, or as needing no approval. */
function releasingIn(db: Statements) {
  const mark = <P = unknown>(as: string, also: string) =>
    db.run<Guarded & P>(
      `update temp.planned set approved = ${as} where ${isGuarded} and approved is null and ${also}`,
    );
  const free = db.run<[approval: string]>(
    'update temp.planned set held = 0, approved = ? where held = 1',
  );
  const empty = db.run<[]>(`delete from temp.judged where "is" = 'held'`);
  return {
    /**
     * Marks changes as approved if an earlier round of this run approved the same record and
     * channel.
     */
    follow: mark(
      `(select max(p.by) from temp.judged p where p.guard = planned.guard and p.key = planned.key
          and p.kind = planned.kind and p."is" = 'passed' and p.part = planned.part)`,
      'true',
    ),
    /**
     * Marks the changes that these approvals cover, unless the same change was released since.
     * `undoes`: the run that is undone, or ''.
     */
    approve: mark<{ approvals: readonly string[]; undoes: string }>(approval, 'true'),
    /** Marks the changes of a range, but what waits, as needing no approval. */
    exempt: mark("'exempt'", `held = 0 and not ${waitsStill('planned')}`),
    /** Marks changes that have awaited approval for so long that they no longer need one. */
    expire: mark<Began>("'expired'", standsOf('planned', isOver('s'))),
    /**
     * Marks changes whose last attempt, in another run, was released and ended as stale or
     * rejected, because that run has counted them. They need no approval until a different change
     * becomes the channel's latest, or the source states something else.
     */
    excuse: mark<{ run: string }>(
      "'excused'",
      `not ${standsOf('planned')} and ${wasStated} and exists (
         select 1 from change c where c.seq = (
           select max(l.seq) from change l
           where l.kind = planned.kind and l.key = planned.key and l.part = planned.part)
         and c.op = planned.op and c.run <> @run and c.state in ('stale', 'rejected')
         and coalesce(c.guard, planned.guard) = planned.guard)`,
    ),
    /** Lets the changes of a range pass that nothing holds, for later rounds of this run, too. */
    pass: judging(db, 'passed', `held = 0 and not exists (${passed} and p.part = planned.part)`),
    /** Releases all held changes, as covered by this approval. */
    release(approved: string): void {
      free(approved);
      empty();
    },
  };
}

function countsIn(db: Statements) {
  const where = 'guard = @guard';
  const planned = 'temp.planned indexed by planned_by_guard';
  const arm = (by: string, table: string) => `select kind, key, ${by} is not null approved,
    ${by} is null and not ${standsOf('t')} judged from ${table} where ${isGuarded}`;
  const all = [
    arm('t.approved', 'temp.planned t indexed by planned_by_guard'),
    `${arm('t.by', 'temp.judged t indexed by judged_by_guard')} and "is" in ('passed', 'held')`,
  ];
  const isAsked = [
    `exists (select 1 from ${planned} where guard = @guard and key = change.key
      and kind = change.kind and approved is null)`,
    `exists (select 1 from temp.judged where guard = @guard and key = change.key
      and kind = change.kind and "is" in ('passed', 'held') and by is null)`,
  ];
  const distinct = (rows: string) => `select count(*) n from (select distinct kind, key ${rows})`;
  const canBeAsked = `from ${planned} where ${isGuarded} and ${canAsk}`;
  const ops = db.all<Guarded, { op: Op; n: number }>(
    `select op, count(*) n ${canBeAsked} group by op`,
  );
  const records = db.number<Guarded>(distinct(canBeAsked));
  const judgedOps = db.all<
    { kind: RecordTypeName; is: readonly JudgedAs[] },
    { op: Op; n: number }
  >(
    `select op, count(*) n from temp.judged indexed by judged_by_key
     where kind = @kind and "is" in (select value from json_each(@is)) group by op`,
  );
  const judgedRecords = db.number<{ guard: GuardClass; is: JudgedAs; by: string | undefined }>(
    distinct(`from temp.judged indexed by judged_by_guard
      where guard = @guard and "is" = @is and (@by is null or by = @by)`),
  );
  return {
    /** Returns the classes that the plan has changes of. */
    classes: db.values<[], GuardClass>(
      'select distinct guard from temp.planned indexed by planned_by_guard where guard is not null',
    ),
    /** Yields the key ranges of the staged changes of a class. */
    ranges: rangesBy(db, { column: 'key', of: [planned], where }),
    /** Yields the key ranges of all changes of this run, including those released or held. */
    askedRanges: rangesBy(db, { column: 'key', of: [planned, 'temp.judged'], where }),
    /** Counts the records with a change neither approved nor released earlier in this run. */
    fresh: db.number<Guarded>(distinct(`from temp.planned where ${isGuarded} and ${isNew}`)),
    /**
     * Counts the records of these changes in a range: all records, those with an unapproved change,
     * and those with a change that is neither approved nor waiting since an earlier run.
     */
    counts: db.only<Guarded, { all: number; unapproved: number; judged: number }>(
      `select count(*) "all", count(*) - coalesce(sum(approved), 0) unapproved,
         coalesce(sum(judged), 0) judged from (
         select kind, key, min(approved) approved, max(judged) judged
         from (${all.join(' union all ')}) group by kind, key)`,
    ),
    /**
     * Counts the records for which other runs sent an unapproved change since `since`, in
     * milliseconds since the epoch. It excludes records with an unapproved change of the class in
     * this run, because `counts` counts those.
     */
    sentSince: db.number<{ guard: GuardClass; since: number; run: string }>(
      distinct(`from change indexed by change_by_guard
        where guard = @guard and sent_at >= @since and run <> @run and approved is null
          and state in ('sent', 'unknown', 'acked') and not (${isAsked.join(' or ')})`),
    ),
    /** Counts what a rule can hold in a range: the records, and the changes by operation. */
    askable: (guarded: Guarded) => ({ records: records(guarded), ops: ops(guarded) }),
    /** Counts the templates that are published once the staged changes are made. */
    countPublished: db.number<[]>(
      `select count(distinct key) n from temp.planned indexed by planned_in_order
       where phase = 0 and kind = 'template'
         and (body ->> '$.wanted.status' = 'published' or body ->> '$.publish' = 'next')`,
    ),
    /** Counts the judged changes of a record type, by operation. */
    ops: (kind: RecordTypeName, ...is: readonly JudgedAs[]) => judgedOps({ kind, is }),
    /** Counts the held changes of all classes. */
    countChanges: db.number<[]>(`select count(*) n from temp.judged where "is" = 'held'`),
    /** Counts the records with a held change of a class. */
    countHeld: (guard: GuardClass) => judgedRecords({ guard, is: 'held', by: undefined }),
    /** Counts the records with changes of a class for a later run; `by`: for one of the reasons. */
    countDeferred: (guard: GuardClass, by?: 'window' | 'canary') =>
      judgedRecords({ guard, is: 'deferred', by }),
    /** Counts the staged changes that may be sent. */
    countPassing: db.number<[]>('select count(*) n from temp.planned where held = 0'),
  };
}

type JudgedAs = 'passed' | 'held' | 'rejected' | 'deferred';

/** A change of an earlier run, and whether the platform accepted it. */
export interface SentChange {
  key: Key;
  op: Op;
  part: string;
  target: string | null;
  state: 'acked' | 'rejected';
}

/** Holds changes, or leaves them to a later run. */
function holdingIn(db: Statements) {
  const left = `held = 0 and not ${isUrgent('planned')}`;
  // A person at another address by now, with records that are read, is decided about there.
  const isKeptOut = `(
    exists (select 1 from temp.judged w indexed by judged_by_guard
      where w.guard = @by and w.kind = planned.kind and w."is" = 'held'
        and w.key in (${everKeys('planned')}))
    or @isAboutOne and exists (select 1 from hold s indexed by hold_open
      where s.guard = @by and s.kind = planned.kind and s.ended_at is null and s.undoes = ''
        and s.key <> planned.key and s.key in (${everKeys('planned')})
        and (exists (select 1 from temp.staged d where d.kind = s.kind and d.key = s.key)
          or exists (select 1 from json_each(s.ids) i where i.value not in (
            select d.id from temp.staged d where d.kind = s.kind)))))`;
  return {
    /** Removes the changes of a range from the plan that somebody has rejected. */
    reject: judging(db, 'rejected', isRejected),
    /** Holds the changes of a range that `fresh` counts. */
    holdNew: judging(db, 'held', isNew),
    /** Holds those that have been waiting since an earlier run. */
    holdStanding: judging(db, 'held', isStanding),
    /** Holds what a rule or a canary can ask about. */
    holdAsked: judging(db, 'held', canAsk),
    /** Leaves the changes of a range to a later run, except what is urgent and what waits. */
    defer: judging(db, 'deferred', left),
    /** Leaves the changes of the records `keys` to a later run likewise. */
    deferSome: judging(db, 'deferred', `${left} and key in (select value from json_each(@keys))`),
    /** Notes a change of the journal, by its number, that no window allows now. */
    deferSent: db.run<[seq: number]>(
      `insert into temp.judged (guard, kind, key, op, part, target, body, phase, stated, withdraws,
         "is", by)
       select guard, kind, key, op, part, target, body, phase, 0, 0, 'deferred', 'window'
       from change where seq = ? and guard is not null`,
    ),
    /** Returns whether a change of the journal is made at any time. */
    isUrgent: db.has<[seq: number]>(`select 1 from change where seq = ? and ${isUrgent('change')}`),
    /**
     * Removes the changes of a range from the plan if a change of the same person in `by` is held,
     * under any address. `isAboutOne`: the run reads few records, so that what earlier runs held
     * under another address counts, unless the run decides about it.
     */
    keepOut: db.run<Guarded & { by: GuardClass; isAboutOne: boolean }>(
      `delete from temp.planned where ${isGuarded} and ${isKeptOut}`,
    ),
    /** Holds the same changes. */
    holdKeptOut: judging(db, 'held', `held = 0 and ${isKeptOut}`),
    /** Yields the key ranges of the held changes of a class. */
    heldRanges: rangesBy(db, {
      column: 'key',
      of: ['temp.judged indexed by judged_by_guard'],
      where: `guard = @guard and "is" = 'held'`,
    }),
    /** Returns the held changes of a range, in key order. */
    held: db.all<Guarded, JudgedChange>(
      `select kind, key, op, part, target, body, phase, guard, stated from temp.judged
       where ${isGuarded} and "is" = 'held' order by key, kind, phase, rowid`,
      withoutNull,
    ),
    /** Drops what was judged of a record for which a new decision is made, but what has passed. */
    forget: db.run<[RecordTypeName, Key]>(
      `delete from temp.judged where kind = ? and key = ? and "is" <> 'passed'`,
    ),
    canary: {
      /** Returns the records of a range with a change that a canary is about and that can pass. */
      keys: db.values<Guarded, Key>(
        `select distinct key from temp.planned indexed by planned_by_guard
         where ${isGuarded} and held = 0 and not ${isStated('planned')}`,
      ),
      /** Counts the records with a change that an approval lets pass in this run. */
      countApproved: db.number<[GuardClass]>(
        `select count(*) n from (
           select distinct kind, key from temp.planned indexed by planned_by_guard
           where guard = ? and held = 0
             and exists (select 1 from decision d where d.id = planned.approved))`,
      ),
      /** Counts the changes of a run that have no outcome yet. */
      countOpen: db.number<[run: string, GuardClass]>(
        `select count(*) n from change indexed by change_by_run
         where run = ? and guard = ? and state in ('planned', 'sent', 'unknown')`,
      ),
      /**
       * Returns the changes that a run and later runs about all people have sent and that have an
       * outcome, the last one of each record and part. A run that undoes another one hides nothing.
       */
      sent: db.all<{ guard: GuardClass; run: string }, SentChange>(
        `select key, op, part, target, state
         from run r cross join change indexed by change_by_run on change.run = r.id
         where r.number >= (select number from run where id = @run)
           and r.mode in ('full', 'fast') and guard = @guard and state in ('acked', 'rejected')
           and not ${isStated('change')}
           and not exists (
             select 1 from change l indexed by change_by_key
             where l.kind = change.kind and l.key = change.key and l.seq > change.seq
               and not exists (select 1 from run u where u.id = l.run and u.mode = 'undo')
               and l.state in ('acked', 'rejected') and (l.part = change.part or l.op = 'delete'))
         order by key, seq`,
      ),
    },
  };
}

/** Numbers of records in all parts together, and in each part. */
export type Counts = readonly { part: string | null; n: number }[];

/** Counts the distinct records of rows with a key and a part, by part and together. */
export const countedByPart = (rows: string): string =>
  `with counted as (${rows})
   select null part, count(distinct key) n from counted
   union all select part, count(distinct key) n from counted group by part`;

/** Adds the fields that stated the opt-outs of rows with a kind, a key and a part. */
const withFields = (rows: string): string => `with those as (${rows})
   select key, part from those
   union all
   select s.key, 'stated by ' || s.stated_by from those t
     join stated s on s.kind = t.kind and s.key = t.key and s.part = t.part
   where s.says in ('opt_out', 'unread') and s.stated_by is not null`;

/**
 * The changes that withdraw opt-outs which the source had stated, so that a column of opt-outs that
 * comes empty does not opt all these people in. A record counts once. Each is counted for its part,
 * and for the fields that stated the opt-out as if these were a part, too.
 */
function withdrawalsIn(db: Statements) {
  const judged = (which: string) => `select kind, key, part from temp.judged
    where ${isGuarded} and withdraws and "is" ${which}`;
  const hasEnded = `m.value ->> '$.is' = 'opt_in' or m.value ->> '$.by' = 'platform'
    or m.value ->> '$.released' is not null or m.value ->> '$.settled' is not null`;
  return {
    /** Counts the records with such a change that is new (`isNew`). */
    fresh: db.number<Guarded>(
      `select count(*) n from (
         select distinct kind, key from temp.planned
         where ${isGuarded} and ${isNew} and ${withdraws('planned')})`,
    ),
    /** Counts all records with such a change in this run, including those approved or held. */
    all: db.all<Guarded, Counts[number]>(
      countedByPart(
        withFields(`select kind, key, part from temp.planned indexed by planned_by_guard
         where ${isGuarded} and ${withdraws('planned')}
         union all ${judged("in ('passed', 'held')")}`),
      ),
    ),
    /**
     * Counts the records of the source with an opt-out from one of these parts, whether or not the
     * platform has them. Left out is who is opted in, released by an operator, opted out by their
     * own doing, gone from the source, or silent now. Records whose opt-out this run has withdrawn
     * still count.
     */
    stated: db.all<Guarded & { kind: string; parts: readonly string[] }, Counts[number]>(
      countedByPart(
        withFields(`select s.kind, s.key, s.part from stated s
         where ${inRange('s')} and s.says in ('opt_out', 'unread') and s.gone_at is null
           and s.part in (select value from json_each(@parts))
           and not exists (
             select 1 from recorded r, json_each(r.body, '$.channels') m
             where r.kind = s.kind and r.key = s.key and m.key = s.part and (${hasEnded}))
           and not exists (
             select 1 from temp.desired d, json_each(d.body, '$.channels') c
             where d.kind = s.kind and d.key = s.key and d.id = s.id and d.reason is null
               and c.key = s.part and c.value is null)
         union all ${judged("= 'passed'")}`),
      ),
    ),
    /** Holds all new changes of the class to the records that `fresh` counts. */
    hold: judging(
      db,
      'held',
      `${isNew} and exists (
         select 1 from temp.planned t indexed by planned_by_guard
         where t.guard = @guard and t.key = planned.key and t.kind = planned.kind
           and t.approved is null and ${withdraws('t')})`,
    ),
  };
}
