import type { Statements } from './statements.ts';
import type { Change, GuardClass } from '../model/change.ts';
import type { Key, KindName } from '../model/record.ts';
import { spansBy, type Span } from './spans.ts';

/** What stands before the guards of a run: parts of its staged plan, counted in people. */
export interface Guarding {
  /** All that is staged of a class, by the keys. */
  spans(guard: GuardClass): Iterable<Span>;
  /**
   * Marks what was shown under a plan that was approved at `at`, milliseconds since the epoch, and
   * was not released since.
   */
  approve(approval: { plan: string; at: number }, guarded: Guarded): void;
  /** Marks all of it: no guard is for it. */
  exempt(guarded: Guarded): void;
  /** What was approved earlier in this run stays so, whatever it takes to get there. */
  follow(guarded: Guarded): void;
  /** How many are new: not approved, and not let through as people the guard does not mind. */
  fresh(guarded: Guarded): number;
  /** The spans of all that was asked for in this run, let through and withheld ones too. */
  askedSpans(guard: GuardClass): Iterable<Span>;
  /** How many of that a span has, and those of them of whom not all was approved. */
  counts(guarded: Guarded): { all: number; unapproved: number };
  /**
   * Not approved, sent since then, milliseconds since the epoch, by other runs than this; without
   * those of whom this run wants something of the same class: they are counted there.
   */
  sentSince(guard: GuardClass, since: number, run: string): number;
  /** Keeps the new ones from being sent. */
  withhold(guarded: Guarded): void;
  /** … but only those who are held since an earlier run; answers whether there are any. */
  withholdStanding(guarded: Guarded): boolean;
  /** Lets the others through, and remembers them. */
  pass(guarded: Guarded): void;
  /** Everything withheld may pass after all. */
  release(plan: string): void;
  /** All that is withheld of a class, by the keys. */
  withheldSpans(guard: GuardClass): Iterable<Span>;
  /** What is withheld of a span, in the order of the keys. */
  withheld(guarded: Guarded): Change[];
  /** How many changes are withheld, of both classes. */
  countChanges(): number;
  /** People withheld in this run. */
  countWithheld(guard: GuardClass): number;
  /** Changes withheld, by operation. */
  withheldOps(kind: KindName): { op: Change['op']; n: number }[];
  /** Changes staged that may be sent. */
  countPassing(): number;
  /** A record that is decided upon again is held no longer, until it is anew. */
  forget(kind: KindName, key: Key): void;
}

/** A span of what one guard is for: all that is staged of one person is in the same. */
export interface Guarded extends Span {
  guard: GuardClass;
}

/** Of a statement about the rows of guards: that a row is in that span. */
export const isGuarded = 'guard = @guard and key > @after and key <= @upTo';

/** What no guard is for, in the journal. */
const exempted = 'exempt';

export const isNew = `guard = @guard and approved is null and held = 0 and not exists (
  select 1 from temp.passed p
  where p.guard = planned.guard and p.kind = planned.kind and p.key = planned.key
    and (p.approved is null or p.part = planned.part))`;

const stands = `exists (
  select 1 from standing s
  where s.guard = planned.guard and s.kind = planned.kind and s.key = planned.key)`;

/** Of a change whose twin this approval has let pass before: each passes once. */
const passedBy = (op: string, part: string) => `exists (
  select 1 from change c
  where c.kind = planned.kind and c.key = planned.key and c.op = ${op} and c.part = ${part}
    and c.approved = @plan and c.planned_at >= @at
    and c.state in ('sent', 'unknown', 'acked', 'rejected'))`;

/** Whoever a class asked for in this run, a row for each change of it. */
const asked = ['temp.planned indexed by planned_by_guard', 'temp.passed', 'temp.withheld'] as const;

/** The approval of what such a table has. */
const approvalIn = (table: string): string => (table === 'temp.withheld' ? 'null' : 'approved');

export function guardingIn(db: Statements): Guarding {
  const where = 'guard = @guard';
  const spans = spansBy(db, { column: 'key', of: asked.slice(0, 1), where });
  const askedSpans = spansBy(db, { column: 'key', of: asked, where });
  return {
    spans: (guard) => spans({ guard }),
    askedSpans: (guard) => askedSpans({ guard }),
    ...approvedIn(db),
    ...countsIn(db),
    ...withheldIn(db),
  };
}

type Approved = Pick<Guarding, 'approve' | 'exempt' | 'follow'>;

function approvedIn(db: Statements): Approved {
  const approve = db.prepare<Guarded & { plan: string; at: number }>(
    `update temp.planned set approved = @plan
     where ${isGuarded} and approved is null
       and exists (
         select 1 from held_plan s join held h on h.batch = s.batch
         where s.plan = @plan and h.kind = planned.kind and h.key = planned.key
           and h.op = planned.op and h.part = planned.part and h.guard = planned.guard
           and h.target in ('', coalesce(planned.target, '')))
       and not ${passedBy('planned.op', 'planned.part')}`,
  );
  const exempt = db.prepare<Guarded>(
    `update temp.planned set approved = '${exempted}' where ${isGuarded} and approved is null`,
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
    exempt: (guarded) => void exempt.run(guarded),
    follow: (guarded) => void follow.run(guarded),
  };
}

type Counts = Pick<Guarding, 'fresh' | 'counts' | 'sentSince'>;

function countsIn(db: Statements): Counts {
  const fresh = db.prepare<Guarded, { n: number }>(
    `select count(*) n from (
       select distinct kind, key from temp.planned where ${isGuarded} and ${isNew})`,
  );
  const all = asked.map(
    (table) => `select kind, key, ${approvalIn(table)} approved from ${table}
      where ${isGuarded}`,
  );
  const counts = db.prepare<Guarded, { n: number; approved: number }>(
    `select count(*) n, coalesce(sum(approved), 0) approved from (
       select kind, key, min(approved is not null) approved from (${all.join(' union all ')})
       group by kind, key)`,
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
      const { n, approved } = counts.get(guarded) ?? { n: 0, approved: 0 };
      return { all: n, unapproved: n - approved };
    },
    sentSince: (guard, since, run) => sent.get({ guard, since, run })?.n ?? 0,
  };
}

type Withheld = Omit<Guarding, keyof (Approved & Counts) | 'spans' | 'askedSpans'>;

function withheldIn(db: Statements): Withheld {
  const columns = 'kind, key, op, part, target, body, phase, guard';
  const keep = (which: string) => ({
    copy: db.prepare<Guarded>(
      `insert into temp.withheld (${columns}) select ${columns} from temp.planned
       where ${isGuarded} and ${which}`,
    ),
    mark: db.prepare<Guarded>(`update temp.planned set held = 1 where ${isGuarded} and ${which}`),
  });
  const fresh = keep(isNew);
  const standing = keep(`${isNew} and ${stands}`);
  const pass = db.prepare<Guarded>(
    `insert or ignore into temp.passed (guard, kind, key, part, approved)
     select guard, kind, key, part, max(approved) from temp.planned
     where ${isGuarded} and held = 0 group by guard, kind, key, part`,
  );
  const free = db.prepare('update temp.planned set held = 0, approved = ? where held = 1');
  const empty = db.prepare('delete from temp.withheld');
  const all = db.prepare<Guarded, Omit<Change, 'target'> & { target: string | null }>(
    `select ${columns} from temp.withheld
     where ${isGuarded} order by key, kind, phase, rowid`,
  );
  const spans = spansBy(db, { column: 'key', of: ['temp.withheld'], where: 'guard = @guard' });
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
    withhold(guarded) {
      fresh.copy.run(guarded);
      fresh.mark.run(guarded);
    },
    withholdStanding(guarded) {
      standing.copy.run(guarded);
      return standing.mark.run(guarded).changes > 0;
    },
    pass: (guarded) => void pass.run(guarded),
    release(plan) {
      free.run(plan);
      empty.run();
    },
    withheldSpans: (guard) => spans({ guard }),
    withheld: (guarded) =>
      all.all(guarded).map(({ target, ...row }) => ({ ...row, target: target ?? undefined })),
    countChanges: () => changes.get()?.n ?? 0,
    countWithheld: (guard) => count.get(guard)?.n ?? 0,
    withheldOps: (kind) => ops.all(kind),
    countPassing: () => passing.get()?.n ?? 0,
    forget: (kind, key) => void forget.run(kind, key),
  };
}
