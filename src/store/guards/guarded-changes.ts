import type { Statements } from '../database/prepared-statements.ts';
import type { Change } from '../../domain/change.ts';
import type { GuardClass } from '../../domain/guard-classes.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';
import { isGuarded, rangesBy, type Guarded, type KeyRange } from '../database/key-range.ts';
import { isOver, isStated, standsOf, type Began, waitsStill } from './approval-holds.ts';
import { type Approval, wasReleased } from './plan-approvals.ts';

/**
 * The staged changes of a run that guards count (in people or templates), release or withhold. A
 * change in `planned` has its approval in `approved`: the hash of a plan, or the reason why it
 * needs none.
 */
export interface GuardedChanges {
  /** Yields the key ranges of the staged changes of a class. */
  ranges(guard: GuardClass): Iterable<KeyRange>;
  /**
   * Marks the changes that an approved plan shows as approved, unless this approval has already
   * released the same change.
   */
  approve(approval: Approval, guarded: Guarded): void;
  /** Marks all changes of a range as needing no approval. */
  exempt(guarded: Guarded): void;
  /** Marks changes that have awaited approval for so long that they no longer need one. */
  expire(guarded: Guarded, began: Began): void;
  /**
   * Marks changes whose last attempt, in another run, was released and ended as stale or rejected,
   * because that run has counted them. They need no approval until a different change becomes the
   * channel's latest.
   */
  excuse(guarded: Guarded, run: string): void;
  /**
   * Removes the changes of a range from the plan if `heldOf` withholds a change of the same record.
   */
  keepOut(guarded: Guarded, heldOf: GuardClass): void;
  /**
   * Marks changes as approved if an earlier round of this run approved the same record and channel.
   */
  follow(guarded: Guarded): void;
  /** Counts the records with a change neither approved nor released earlier in this run. */
  fresh(guarded: Guarded): number;
  /** Yields the key ranges of all changes of this run, including those released or withheld. */
  askedRanges(guard: GuardClass): Iterable<KeyRange>;
  /**
   * Counts the records of these changes in a range: all records, those with an unapproved change,
   * and those with a change that is neither approved nor waiting since an earlier run.
   */
  counts(guarded: Guarded): { all: number; unapproved: number; judged: number };
  /**
   * Counts the records for which other runs sent an unapproved change since `since`, in
   * milliseconds since the epoch. It excludes records with an unapproved change of the class in
   * this run, because `counts` counts those.
   */
  sentSince(guard: GuardClass, since: number, run: string): number;
  /** Withholds the changes of a range that `fresh` counts. */
  withhold(guarded: Guarded): void;
  /**
   * Withholds those of them that have been waiting since an earlier run. Returns whether there are
   * any.
   */
  withholdStanding(guarded: Guarded): boolean;
  /** Stores the changes of a range that are not withheld, for later rounds of this run. */
  pass(guarded: Guarded): void;
  /** Releases all withheld changes, as approved under this plan. */
  release(plan: string): void;
  /** Yields the key ranges of the withheld changes of a class. */
  withheldRanges(guard: GuardClass): Iterable<KeyRange>;
  /** Returns the withheld changes of a range, in key order. */
  withheld(guarded: Guarded): WithheldChange[];
  /** Counts the withheld changes of all classes. */
  countChanges(): number;
  /** Counts the records with a withheld change of a class. */
  countWithheld(guard: GuardClass): number;
  /** Counts the withheld changes of a record type, by operation. */
  withheldOps(kind: RecordTypeName): { op: Change['op']; n: number }[];
  /** Counts the staged changes that may be sent. */
  countPassing(): number;
  /** Drops the withheld changes of a record for which a new decision is made. */
  forget(kind: RecordTypeName, key: Key): void;
}

/** A withheld change; `stated` is 1 if the CRM states it about this person, otherwise 0. */
type WithheldChange = Change & { stated: 0 | 1 };

const passed = `select 1 from temp.passed p
  where p.guard = planned.guard and p.kind = planned.kind and p.key = planned.key`;

/** Selects the rows of `planned` that are neither withheld, nor released earlier in this run. */
export const isUnpassed = `held = 0
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

/** Prepares the statements about guarded changes. */
export function guardedChangesIn(db: Statements): GuardedChanges {
  const where = 'guard = @guard';
  const ranges = rangesBy(db, { column: 'key', of: asked.slice(0, 1), where });
  const askedRanges = rangesBy(db, { column: 'key', of: asked, where });
  return {
    ranges: (guard) => ranges({ guard }),
    askedRanges: (guard) => askedRanges({ guard }),
    ...approvedIn(db),
    ...countsIn(db),
    ...withheldIn(db),
  };
}

type Approved = Pick<GuardedChanges, 'approve' | 'follow' | keyof Excepted>;
type Excepted = Pick<GuardedChanges, 'exempt' | 'expire' | 'excuse' | 'keepOut'>;

function approvedIn(db: Statements): Approved {
  const approve = db.prepare<Guarded & Approval>(
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
  const follow = db.prepare<Guarded>(
    `update temp.planned set approved = (
       select p.approved from temp.passed p
       where p.guard = planned.guard and p.kind = planned.kind and p.key = planned.key
         and p.part = planned.part)
     where ${isGuarded} and approved is null`,
  );
  return {
    approve: (approval, guarded) => void approve.run({ ...approval, ...guarded }),
    follow: (guarded) => void follow.run(guarded),
    ...exceptedIn(db),
  };
}

/** Prepares the statements about changes that need no approval, or are removed from the plan. */
function exceptedIn(db: Statements): Excepted {
  const mark = (as: string, also: string) =>
    `update temp.planned set approved = '${as}' where ${isGuarded} and approved is null and ${also}`;
  const exempt = db.prepare<Guarded>(mark('exempt', 'held = 0'));
  const expire = db.prepare<Guarded & Began>(mark('expired', standsOf('planned', isOver)));
  const excuse = db.prepare<Guarded & { run: string }>(
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
  const keepOut = db.prepare<Guarded & { heldOf: GuardClass }>(
    `delete from temp.planned where ${isGuarded} and exists (
       select 1 from temp.withheld w
       where w.guard = @heldOf and w.kind = planned.kind and w.key = planned.key)`,
  );
  return {
    exempt: (guarded) => void exempt.run(guarded),
    expire: (guarded, ends) => void expire.run({ ...guarded, ...ends }),
    excuse: (guarded, run) => void excuse.run({ ...guarded, run }),
    keepOut: (guarded, heldOf) => void keepOut.run({ ...guarded, heldOf }),
  };
}

type Counts = Pick<GuardedChanges, 'fresh' | 'counts' | 'sentSince'>;

function countsIn(db: Statements): Counts {
  const fresh = db.prepare<Guarded, { n: number }>(
    `select count(*) n from (
       select distinct kind, key from temp.planned where ${isGuarded} and ${isNew})`,
  );
  const all = asked.map(
    (table) => `select kind, key, ${approvalIn(table)} is not null approved,
        ${approvalIn(table)} is null and not ${standsOf('t')} judged
      from ${aliased(table)} where ${isGuarded}`,
  );
  const counts = db.prepare<Guarded, { n: number; approved: number; judged: number }>(
    `select count(*) n, coalesce(sum(approved), 0) approved, coalesce(sum(judged), 0) judged from (
       select kind, key, min(approved) approved, max(judged) judged
       from (${all.join(' union all ')}) group by kind, key)`,
  );
  const isAsked = asked.map(
    (table) => `exists (select 1 from ${table} where guard = @guard
      and key = change.key and kind = change.kind and ${approvalIn(table)} is null)`,
  );
  const sent = db.prepare<{ guard: string; since: number; run: string }, { n: number }>(
    `select count(*) n from (
       select distinct kind, key from change indexed by change_by_guard
       where guard = @guard and sent_at >= @since and run <> @run and approved is null
         and state in ('sent', 'unknown', 'acked') and not (${isAsked.join(' or ')}))`,
  );
  return {
    fresh: (guarded) => fresh.get(guarded)?.n ?? 0,
    counts(guarded) {
      const { n = 0, approved = 0, judged = 0 } = counts.get(guarded) ?? {};
      return { all: n, unapproved: n - approved, judged };
    },
    sentSince: (guard, since, run) => sent.get({ guard, since, run })?.n ?? 0,
  };
}

const columns = 'kind, key, op, part, target, body, phase, guard';

/** Returns a function that withholds the changes that match a condition, and counts them. */
export function withholding(db: Statements, which: string): (guarded: Guarded) => number {
  const copy = db.prepare<Guarded>(
    `insert into temp.withheld (${columns}, stated)
     select ${columns}, coalesce(${isStated('planned')}, 0) from temp.planned
     where ${isGuarded} and ${which}`,
  );
  const mark = db.prepare<Guarded>(
    `update temp.planned set held = 1 where ${isGuarded} and ${which}`,
  );
  return (guarded) => {
    copy.run(guarded);
    return mark.run(guarded).changes;
  };
}

type Withheld = Omit<GuardedChanges, keyof (Approved & Counts) | 'ranges' | 'askedRanges'>;

function withheldIn(db: Statements): Withheld {
  const fresh = withholding(db, isNew);
  const standing = withholding(db, isStanding);
  const pass = db.prepare<Guarded>(
    `insert or ignore into temp.passed (guard, kind, key, part, approved, withdraws)
     select guard, kind, key, part, max(approved), max(${withdraws('planned')}) from temp.planned
     where ${isGuarded} and held = 0 group by guard, kind, key, part`,
  );
  const free = db.prepare('update temp.planned set held = 0, approved = ? where held = 1');
  const empty = db.prepare('delete from temp.withheld');
  const all = db.prepare<Guarded, Omit<WithheldChange, 'target'> & { target: string | null }>(
    `select ${columns}, stated from temp.withheld
     where ${isGuarded} order by key, kind, phase, rowid`,
  );
  const ranges = rangesBy(db, { column: 'key', of: ['temp.withheld'], where: 'guard = @guard' });
  const changes = db.prepare<[], { n: number }>('select count(*) n from temp.withheld');
  const count = db.prepare<[string], { n: number }>(
    `select count(*) n from (select distinct key, kind from temp.withheld where guard = ?)`,
  );
  const ops = db.prepare<[string], { op: Change['op']; n: number }>(
    'select op, count(*) n from temp.withheld where kind = ? group by op',
  );
  const passing = db.prepare<[], { n: number }>(
    'select count(*) n from temp.planned where held = 0',
  );
  const forget = db.prepare('delete from temp.withheld where kind = ? and key = ?');
  return {
    withhold: (guarded) => void fresh(guarded),
    withholdStanding: (guarded) => standing(guarded) > 0,
    pass: (guarded) => void pass.run(guarded),
    release(plan) {
      free.run(plan);
      empty.run();
    },
    withheldRanges: (guard) => ranges({ guard }),
    withheld: (guarded) =>
      all.all(guarded).map(({ target, ...row }) => ({ ...row, target: target ?? undefined })),
    countChanges: () => changes.get()?.n ?? 0,
    countWithheld: (guard) => count.get(guard)?.n ?? 0,
    withheldOps: (kind) => ops.all(kind),
    countPassing: () => passing.get()?.n ?? 0,
    forget: (kind, key) => void forget.run(kind, key),
  };
}
