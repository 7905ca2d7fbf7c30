/**
 * The staged changes of a run that something may hold back: guards, rules, windows and canaries
 * ask, withhold, and leave to a later run. A change in `planned` has its approval in `approved`:
 * the hash of a plan, or the reason why it needs none. After approving, counting and withholding
 * come withdrawn opt-outs, what a rule can ask for, what is left to a later run, and canaries.
 */
import type { Statements } from '../database/prepared-statements.ts';
import type { Change, Op } from '../../domain/change.ts';
import type { GuardClass } from '../../domain/guard-classes.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';
import { inRange, isGuarded, rangesBy, type Guarded } from '../database/key-range.ts';
import { isOver, isStated, standsOf, type Began, waitsStill } from './approval-holds.ts';
import { type Approval, wasReleased } from './plan-approvals.ts';

/** A withheld change; `stated` is 1 if the CRM states it about this person, otherwise 0. */
type WithheldChange = Change & { stated: 0 | 1 };

const passed = `select 1 from temp.passed p
  where p.guard = planned.guard and p.kind = planned.kind and p.key = planned.key`;

/** Selects the rows of `planned` that are neither withheld, nor released earlier in this run. */
const isUnpassed = `held = 0
  and not exists (${passed} and (p.approved is null or p.part = planned.part))`;

/**
 * Selects the rows of `planned` that are neither approved, nor withheld, nor released earlier in
 * this run: an SQL condition with the parameter `guard`.
 */
export const isNew = `guard = @guard and approved is null and ${isUnpassed}`;

/**
 * Selects the rows of `planned` that an earlier run held, and that still wait. A person who passes
 * with one change passes with others of this run, but not with one that is held.
 */
const isStanding = `guard = @guard and approved is null and held = 0
  and not exists (${passed} and p.part = planned.part) and ${waitsStill('planned')}`;

/** The tables with all changes of a class in this run, and the index to use. */
const asked = ['temp.planned indexed by planned_by_guard', 'temp.passed', 'temp.withheld'] as const;

/** Adds the alias `t` to a table in a statement; the index clause must follow the alias. */
const aliased = (table: string): string => `${table} `.replace(' ', ' t ');

/** Returns the column with the approval; withheld changes have none. */
const approvalIn = (table: string): string => (table === 'temp.withheld' ? 'null' : 'approved');

/** Returns an SQL condition: the change withdraws an opt-out that the source had stated. */
export const withdraws = (table: string) => `coalesce(${table}.body ->> '$.withdraws', 0)`;

/** Prepares the statements about changes that something may hold back. */
export function stagedGuardsIn(db: Statements) {
  return {
    ...approvedIn(db),
    ...countsIn(db),
    ...withheldIn(db),
    withdrawals: withdrawalsIn(db),
    asked: askedChangesIn(db),
    deferred: deferredIn(db),
    canary: canaryChangesIn(db),
  };
}

/** Marks changes as approved, or as needing no approval. */
function approvedIn(db: Statements) {
  const approve = db.run<Guarded & Approval>(
    `update temp.planned set approved = @plan
     where ${isGuarded} and approved is null
       and exists (
         select 1 from held_plan s join held h on h.batch = s.batch
         where s.plan = @plan and h.kind = planned.kind and h.key = planned.key
           and h.op = planned.op and h.part = planned.part and h.guard = planned.guard
           and h.body in ('', planned.body)
           and h.target in ('', coalesce(planned.target, '')))
       and not ${wasReleased}`,
  );
  const mark = (as: string, also: string) =>
    `update temp.planned set approved = '${as}' where ${isGuarded} and approved is null and ${also}`;
  const expire = db.run<Guarded & Began>(mark('expired', standsOf('planned', isOver)));
  const excuse = db.run<Guarded & { run: string }>(
    mark(
      'excused',
      `not ${standsOf('planned')} and exists (
         select 1 from change c where c.seq = (
           select max(l.seq) from change l
           where l.kind = planned.kind and l.key = planned.key and l.part = planned.part)
         and c.op = planned.op and c.run <> @run and c.state in ('stale', 'rejected')
         and coalesce(c.guard, planned.guard) = planned.guard)`,
    ),
  );
  const keepOut = db.run<Guarded & { heldOf: GuardClass }>(
    `delete from temp.planned where ${isGuarded} and exists (
       select 1 from temp.withheld w
       where w.guard = @heldOf and w.kind = planned.kind and w.key = planned.key)`,
  );
  return {
    /**
     * Marks the changes that an approved plan shows as approved, unless this approval has already
     * released the same change.
     */
    approve: (approval: Approval, guarded: Guarded) => approve({ ...approval, ...guarded }),
    /**
     * Marks changes as approved if an earlier round of this run approved the same record and
     * channel.
     */
    follow: db.run<Guarded>(
      `update temp.planned set approved = (
         select p.approved from temp.passed p
         where p.guard = planned.guard and p.kind = planned.kind and p.key = planned.key
           and p.part = planned.part)
       where ${isGuarded} and approved is null`,
    ),
    /** Marks all changes of a range as needing no approval. */
    exempt: db.run<Guarded>(mark('exempt', 'held = 0')),
    /** Marks changes that have awaited approval for so long that they no longer need one. */
    expire: (guarded: Guarded, began: Began) => expire({ ...guarded, ...began }),
    /**
     * Marks changes whose last attempt, in another run, was released and ended as stale or
     * rejected, because that run has counted them. They need no approval until a different change
     * becomes the channel's latest.
     */
    excuse: (guarded: Guarded, run: string) => excuse({ ...guarded, run }),
    /**
     * Removes the changes of a range from the plan if `heldOf` withholds a change of the same
     * record.
     */
    keepOut: (guarded: Guarded, heldOf: GuardClass) => keepOut({ ...guarded, heldOf }),
  };
}

function countsIn(db: Statements) {
  const where = 'guard = @guard';
  const ranges = rangesBy(db, { column: 'key', of: asked.slice(0, 1), where });
  const askedRanges = rangesBy(db, { column: 'key', of: asked, where });
  const fresh = db.one<Guarded, { n: number }>(
    `select count(*) n from (
       select distinct kind, key from temp.planned where ${isGuarded} and ${isNew})`,
  );
  const all = asked.map(
    (table) => `select kind, key, ${approvalIn(table)} is not null approved,
        ${approvalIn(table)} is null and not ${standsOf('t')} judged
      from ${aliased(table)} where ${isGuarded}`,
  );
  const counts = db.one<Guarded, { n: number; approved: number; judged: number }>(
    `select count(*) n, coalesce(sum(approved), 0) approved, coalesce(sum(judged), 0) judged from (
       select kind, key, min(approved) approved, max(judged) judged
       from (${all.join(' union all ')}) group by kind, key)`,
  );
  const isAsked = asked.map(
    (table) => `exists (select 1 from ${table} where guard = @guard
      and key = change.key and kind = change.kind and ${approvalIn(table)} is null)`,
  );
  const sent = db.one<{ guard: string; since: number; run: string }, { n: number }>(
    `select count(*) n from (
       select distinct kind, key from change indexed by change_by_guard
       where guard = @guard and sent_at >= @since and run <> @run and approved is null
         and state in ('sent', 'unknown', 'acked') and not (${isAsked.join(' or ')}))`,
  );
  return {
    /** Yields the key ranges of the staged changes of a class. */
    ranges: (guard: GuardClass) => ranges({ guard }),
    /** Yields the key ranges of all changes of this run, including those released or withheld. */
    askedRanges: (guard: GuardClass) => askedRanges({ guard }),
    /** Counts the records with a change neither approved nor released earlier in this run. */
    fresh: (guarded: Guarded) => fresh(guarded)?.n ?? 0,
    /**
     * Counts the records of these changes in a range: all records, those with an unapproved change,
     * and those with a change that is neither approved nor waiting since an earlier run.
     */
    counts(guarded: Guarded) {
      const { n = 0, approved = 0, judged = 0 } = counts(guarded) ?? {};
      return { all: n, unapproved: n - approved, judged };
    },
    /**
     * Counts the records for which other runs sent an unapproved change since `since`, in
     * milliseconds since the epoch. It excludes records with an unapproved change of the class in
     * this run, because `counts` counts those.
     */
    sentSince: (guard: GuardClass, since: number, run: string) =>
      sent({ guard, since, run })?.n ?? 0,
  };
}

const columns = 'kind, key, op, part, target, body, phase, guard';

/** Returns a function that withholds the changes that match a condition, and counts them. */
function withholding(db: Statements, which: string): (guarded: Guarded) => number {
  const copy = db.run<Guarded>(
    `insert into temp.withheld (${columns}, stated)
     select ${columns}, coalesce(${isStated('planned')}, 0) from temp.planned
     where ${isGuarded} and ${which}`,
  );
  const mark = db.run<Guarded>(`update temp.planned set held = 1 where ${isGuarded} and ${which}`);
  return (guarded) => {
    copy(guarded);
    return mark(guarded);
  };
}

function withheldIn(db: Statements) {
  const standing = withholding(db, isStanding);
  const free = db.run<[plan: string]>(
    'update temp.planned set held = 0, approved = ? where held = 1',
  );
  const empty = db.run<[]>('delete from temp.withheld');
  const ranges = rangesBy(db, { column: 'key', of: ['temp.withheld'], where: 'guard = @guard' });
  const all = db.all<Guarded, Omit<WithheldChange, 'target'> & { target: string | null }>(
    `select ${columns}, stated from temp.withheld
     where ${isGuarded} order by key, kind, phase, rowid`,
  );
  const changes = db.one<[], { n: number }>('select count(*) n from temp.withheld');
  const count = db.one<[GuardClass], { n: number }>(
    `select count(*) n from (select distinct key, kind from temp.withheld where guard = ?)`,
  );
  const passing = db.one<[], { n: number }>('select count(*) n from temp.planned where held = 0');
  return {
    /** Withholds the changes of a range that `fresh` counts. */
    withhold: withholding(db, isNew),
    /**
     * Withholds those of them that have been waiting since an earlier run. Returns whether there
     * are any.
     */
    withholdStanding: (guarded: Guarded) => standing(guarded) > 0,
    /** Stores the changes of a range that are not withheld, for later rounds of this run. */
    pass: db.run<Guarded>(
      `insert or ignore into temp.passed (guard, kind, key, part, approved, withdraws)
       select guard, kind, key, part, max(approved), max(${withdraws('planned')}) from temp.planned
       where ${isGuarded} and held = 0 group by guard, kind, key, part`,
    ),
    /** Releases all withheld changes, as approved under this plan. */
    release(plan: string): void {
      free(plan);
      empty();
    },
    /** Yields the key ranges of the withheld changes of a class. */
    withheldRanges: (guard: GuardClass) => ranges({ guard }),
    /** Returns the withheld changes of a range, in key order. */
    withheld: (guarded: Guarded): WithheldChange[] =>
      all(guarded).map(({ target, ...row }) => ({ ...row, target: target ?? undefined })),
    /** Counts the withheld changes of all classes. */
    countChanges: () => changes()?.n ?? 0,
    /** Counts the records with a withheld change of a class. */
    countWithheld: (guard: GuardClass) => count(guard)?.n ?? 0,
    /** Counts the withheld changes of a record type, by operation. */
    withheldOps: db.all<[RecordTypeName], { op: Op; n: number }>(
      'select op, count(*) n from temp.withheld where kind = ? group by op',
    ),
    /** Counts the staged changes that may be sent. */
    countPassing: () => passing()?.n ?? 0,
    /** Drops the withheld changes of a record for which a new decision is made. */
    forget: db.run<[RecordTypeName, Key]>('delete from temp.withheld where kind = ? and key = ?'),
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
  const fresh = db.one<Guarded, { n: number }>(
    `select count(*) n from (
       select distinct kind, key from temp.planned
       where ${isGuarded} and ${isNew} and ${withdraws('planned')})`,
  );
  const passedRows = `select kind, key, part from temp.passed where ${isGuarded} and withdraws`;
  const hasEnded = `m.value ->> '$.is' = 'opt_in' or m.value ->> '$.by' = 'platform'
    or m.value ->> '$.released' is not null or m.value ->> '$.settled' is not null`;
  const stated = db.all<Guarded & { kind: string; parts: string }, Counts[number]>(
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
       union all
       ${passedRows}`),
    ),
  );
  return {
    /** Counts the records with such a change that is new (`isNew`). */
    fresh: (guarded: Guarded) => fresh(guarded)?.n ?? 0,
    /** Counts all records with such a change in this run, including those approved or withheld. */
    all: db.all<Guarded, Counts[number]>(
      countedByPart(
        withFields(`select kind, key, part from temp.planned indexed by planned_by_guard
         where ${isGuarded} and ${withdraws('planned')}
         union all
         ${passedRows}
         union all
         select kind, key, part from temp.withheld where ${isGuarded} and ${withdraws('withheld')}`),
      ),
    ),
    /**
     * Counts the records of the source with an opt-out from one of these parts, whether or not the
     * platform has them. Left out is who is opted in, released by an operator, opted out by their
     * own doing, gone from the source, or silent now. Records whose opt-out this run has withdrawn
     * still count.
     */
    stated: (kind: RecordTypeName, guarded: Guarded, parts: readonly string[]) =>
      stated({ kind, ...guarded, parts: JSON.stringify(parts) }),
    /** Withholds all new changes of the class to the records that `fresh` counts. */
    withhold: withholding(
      db,
      `${isNew} and exists (
         select 1 from temp.planned t indexed by planned_by_guard
         where t.guard = @guard and t.key = planned.key and t.kind = planned.kind
           and t.approved is null and ${withdraws('t')})`,
    ),
  };
}

/** A first load is exempt from the limit of a guard, and not from a rule. */
const canWait = `(approved is null or approved = 'exempt') and ${isUnpassed}`;
const canAsk = `${canWait} and not ${isStated('planned')}`;

/**
 * The changes for which a rule of the configuration can ask for an approval. Opt-outs that the
 * source states, deletions that it flags, and erasures are never among them.
 */
function askedChangesIn(db: Statements) {
  const those = `from temp.planned indexed by planned_by_guard where ${isGuarded} and ${canAsk}`;
  const ops = db.all<Guarded, { op: Op; n: number }>(`select op, count(*) n ${those} group by op`);
  const records = db.one<Guarded, { n: number }>(
    `select count(*) n from (select distinct kind, key ${those})`,
  );
  const published = db.one<[], { n: number }>(
    `select count(distinct key) n from temp.planned indexed by planned_in_order
     where phase = 0 and kind = 'template'
       and (body ->> '$.wanted.status' = 'published' or body ->> '$.publish' = 'next')`,
  );
  const withhold = withholding(db, canAsk);
  const standing = withholding(db, `${canWait} and ${waitsStill('planned')}`);
  return {
    /** Counts the changes of a range by operation, and their records. */
    counts: (guarded: Guarded) => ({ records: records(guarded)?.n ?? 0, ops: ops(guarded) }),
    /** Counts the templates that are published once the staged changes are made. */
    published: () => published()?.n ?? 0,
    /** Withholds the changes of a range. Returns whether there are any. */
    withhold: (guarded: Guarded) => withhold(guarded) > 0,
    /** Withholds those that have been waiting since an earlier run. */
    withholdStanding: (guarded: Guarded) => standing(guarded) > 0,
  };
}

/**
 * Selects the rows of a table of changes that no window delays: what the source states about one
 * person, and the opt-outs of `undo`, which no other run makes.
 */
function isUrgent(table: string): string {
  const isUndone = `(${table}.op = 'opt_out' and ${table}.body ->> '$.cause' = 'undone')`;
  return `(${isStated(table)} or coalesce(${isUndone}, 0))`;
}

/**
 * The changes that a run leaves to a later one, because no window allows them now, or because they
 * wait for a canary.
 */
function deferredIn(db: Statements) {
  const those = `from temp.planned where ${isGuarded} and held = 0 and not ${isUrgent('planned')}`;
  const into = 'insert or ignore into temp.deferred (guard, key, kind, op, part, by)';
  const note = db.run<Guarded>(`${into} select guard, key, kind, op, part, 'window' ${those}`);
  const remove = db.run<Guarded>(`delete ${those}`);
  const some = `${those} and key in (select value from json_each(@keys))`;
  const noteSome = db.run<Guarded & { keys: string }>(
    `${into} select guard, key, kind, op, part, 'canary' ${some}`,
  );
  const removeSome = db.run<Guarded & { keys: string }>(`delete ${some}`);
  const urgent = db.one<[seq: number], { one: 1 }>(
    `select 1 one from change where seq = ? and ${isUrgent('change')}`,
  );
  const count = db.one<{ guard: string; by: string | null }, { n: number }>(
    `select count(*) n from (select distinct kind, key from temp.deferred
       where guard = @guard and by = coalesce(@by, by))`,
  );
  return {
    /** Removes the changes of a range from the plan, except what is urgent and what waits. */
    defer(guarded: Guarded): void {
      note(guarded);
      remove(guarded);
    },
    /** Removes the changes of these records likewise, because they wait for a canary. */
    deferFor(guarded: Guarded, listed: readonly Key[]): void {
      const keys = JSON.stringify(listed);
      noteSome({ ...guarded, keys });
      removeSome({ ...guarded, keys });
    },
    /** Notes a change of the journal that is not sent, by its number. */
    add: db.run<[seq: number]>(
      `${into}
       select guard, key, kind, op, part, 'window' from change where seq = ? and guard is not null`,
    ),
    /** Returns whether a change of the journal is made at any time. */
    isUrgent: (seq: number) => urgent(seq) !== undefined,
    /** Counts the records with such a change of a class, all or those that wait for one thing. */
    count: (guard: GuardClass, by?: 'window' | 'canary') =>
      count({ guard, by: by ?? null })?.n ?? 0,
    /** Counts these changes of a record type, by operation. */
    ops: db.all<[RecordTypeName], { op: Op; n: number }>(
      'select op, count(*) n from temp.deferred where kind = ? group by op',
    ),
    /** Drops the changes of a record for which a new decision is made. */
    forget: db.run<[RecordTypeName, Key]>('delete from temp.deferred where kind = ? and key = ?'),
  };
}

/** A change of an earlier run, and whether the platform accepted it. */
export interface SentChange {
  key: Key;
  op: Op;
  part: string;
  target: string | null;
  state: 'acked' | 'rejected';
}

/** The changes of a class that a canary is about: those of this run, and those sent. */
function canaryChangesIn(db: Statements) {
  const keys = db.all<Guarded, { key: Key }>(
    `select distinct key from temp.planned indexed by planned_by_guard
     where ${isGuarded} and held = 0 and not ${isStated('planned')}`,
  );
  const approved = db.one<[GuardClass], { n: number }>(
    `select count(*) n from (
       select distinct kind, key from temp.planned indexed by planned_by_guard
       where guard = ? and held = 0
         and exists (select 1 from approval a where a.plan = planned.approved))`,
  );
  const open = db.one<[run: string, GuardClass], { n: number }>(
    `select count(*) n from change indexed by change_by_run
     where run = ? and guard = ? and state in ('planned', 'sent', 'unknown')`,
  );
  const sent = db.all<{ guard: string; run: string }, SentChange>(
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
  );
  return {
    /** Returns the records of a range with such a change that may be sent in this run. */
    keys: (guarded: Guarded) => keys(guarded).map(({ key }) => key),
    /** Counts the records with a change that an approved plan lets pass in this run. */
    countApproved: (guard: GuardClass) => approved(guard)?.n ?? 0,
    /** Counts the changes of a run that have no outcome yet. */
    countOpen: (guard: GuardClass, run: string) => open(run, guard)?.n ?? 0,
    /**
     * Returns the changes that a run and later runs about all people have sent and that have an
     * outcome, the last one of each record and part. A run that undoes another one hides nothing.
     */
    sent: (guard: GuardClass, run: string) => sent({ guard, run }),
  };
}
