/**
 * Stores the changes that a run holds, the plans that showed them, and the decisions about them.
 *
 *   hold       a change that waits, since when, and the latest decision about it (hold-sql.ts)
 *   listed     the holds that a plan showed, or that a decision is about
 *   held_plan  the plans that showed holds; a later number is a newer plan
 *   decision   an approval or a rejection, or a set of holds with too few signatures (`pending`)
 *
 * A hold belongs to all plans that showed it, so that an old hash approves what it showed, and
 * nothing else. A run that plans other content, or for another contact, makes a hold of its own.
 */
import type { Op } from '../../domain/change.ts';
import { byGuard, guardClasses, type GuardClass } from '../../domain/guard-classes.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';
import { type Guarded, isGuarded, most, rangesBy, type RecordName } from '../database/key-range.ts';
import type { Statements } from '../database/prepared-statements.ts';
import { approvalCounterIn, orderColumn } from '../tables/journal.ts';
import { apartMs, type BothTimes } from '../../domain/clock.ts';
import { began, type Began, everKeys, isApproving, isRejected, wishIn, timed } from './hold-sql.ts';

/** When something begins to wait, and the run that holds it. */
interface NewHold extends BothTimes {
  /** The run that the change undoes, or ''. */
  undoes: string;
  /** Whether the run has listed the platform. */
  isListed: boolean;
}

/** Who decided, when (milliseconds since the epoch) and why. */
export interface Decider {
  at: number;
  by: string;
  reason: string | null;
}

/** A decision about some of the changes that a plan showed. */
export interface PlanDecision extends Decider {
  /** The hash of the plan if it is about all of it, otherwise one of these changes. */
  id: string;
  plan: string;
  /** Its number among all decisions and signatures. */
  number: number;
}

/** A plan with changes that await approval. */
interface HeldPlan {
  /** The hash of the plan. */
  plan: string;
  /** The run that it undoes; null for any other plan. Only `undo` of that run makes its changes. */
  undoes: string | null;
}

/** A held change. */
export interface ListedChange {
  id: number;
  kind: RecordTypeName;
  key: Key;
  op: Op;
  part: string;
  /** The contact on the platform; '' if there was none. */
  target: string;
  guard: GuardClass;
  /** What would be sent; '' for people. */
  body: string;
  /** The ids of the source's records with this key, as a JSON list. */
  ids: string;
}

/** A held change as a plan shows it, with the latest decision about it, if one is in force. */
export interface HeldChange extends HeldRecord {
  /** Whether another change of the plan creates the person that it opts in. */
  isFurther: 0 | 1;
}

/** A change that is held, with what was decided about it. */
interface HeldRecord extends ListedChange {
  /** Since when it waits, in milliseconds since the epoch. */
  since: number;
  verdict: 'approved' | 'rejected' | null;
  decision: string | null;
  decidedAt: number | null;
  by: string | null;
  reason: string | null;
}

/** What one approver has signed. Only the configuration tells whether it is valid. */
export interface ApprovalSignature {
  /** The name of the approver in the configuration. */
  name: string;
  /** In milliseconds since the epoch. */
  at: number;
  reason: string | null;
  /** The signature in base64. */
  signature: string;
}

type StoredSignature = ApprovalSignature & { number: number };

/** The numbers of changes that a plan showed, or that a decision is about. */
interface ListSize {
  /** Those that wait, and how many of them are rejected. */
  waiting: number;
  rejected: number;
  ended: number;
  /** Since when the first of them waits, in milliseconds since the epoch; 0 if none does. */
  since: number;
}

/** Changes of a plan that one decision can cover. `op` is the operation as plans show it. */
export interface ChangeCount {
  guard: GuardClass;
  op: string;
  part: string;
  n: number;
}

/** Changes of people who had the same state before, and have the same one in the CRM now. */
export interface BeforeAndNow {
  op: Op;
  part: string;
  /** Whether the CRM states it, or the mirror concluded it. */
  stated: 0 | 1;
  /** Whether it withdraws an opt-out that the CRM had stated. */
  withdraws: 0 | 1;
  /** Whether the CRM had a record of the person who is to be opted out or deleted as gone. */
  marked: 0 | 1;
  /** The subscription that is recorded, or `none`; null if nobody is recorded. */
  was: string | null;
  /** Who made it: us or platform. */
  madeBy: string | null;
  /** The fields that state an opt-out now, or stated the one that is withdrawn; null if none do. */
  fields: string | null;
  n: number;
}

/** Selects some of the changes that a list shows. `op` is the operation as plans show it. */
export interface HeldFilter {
  guard?: GuardClass | undefined;
  op?: string | undefined;
  part?: string | undefined;
}

/** Changes that are held, with what approves them. */
export interface HeldGroup extends ChangeCount {
  /** The approval in force; null if nobody has approved them. */
  approval: string | null;
}

/** What became of some of the changes that an approval covers. */
interface DecidedGroup extends ChangeCount, Decider {
  /** How many of the records have been done under it, by which run; null if by none. */
  done: number;
  run: string | null;
}

export function holdsIn(db: Statements) {
  return { ...waitingIn(db), ...plansIn(db), ...decisionsIn(db), ...endingIn(db) };
}

const content = 'guard, kind, key, op, part, target, body, stated, withdraws';

/** The changes that this run holds, in the form of `hold`. */
const heldNow = `select guard, kind, key, op, part, coalesce(target, '') target,
  iif(kind = 'template', body, '') body, stated, withdraws from temp.judged where "is" = 'held'`;

/**
 * Selects the holds of the change in a row `w` of `heldNow`, ended ones, too: an SQL condition.
 * What was held before there was a contact is the same with one.
 */
const isAlike = `h.kind = w.kind and h.key = w.key and h.guard = w.guard and h.op = w.op
  and h.part = w.part and h.target in ('', w.target) and h.body = w.body
  and h.stated = w.stated and h.withdraws = w.withdraws`;
/** Selects those of them that wait. */
const isSame = `${isAlike} and h.undoes = @undoes and h.ended_at is null`;

/** An SQL condition: another row of the wish in `hold h`, which is rejected, was approved later. */
const isOverruled = `exists (
  select 1 from decision d
    join hold o on o.kind = h.kind and o.key = h.key and o.guard = h.guard and o.part = h.part
      and o.ended_at is null and ${wishIn('o')} = ${wishIn('h')}
    join decision e on e.id = o.decision and e.verdict = 'approved' and e.ended_at is null
      and e.number > d.number
  where d.id = h.decision and d.verdict = 'rejected' and d.ended_at is null)`;

/** What waits across runs, and since when. */
function waitingIn(db: Statements) {
  const earlier = (column: string) => `(select min(s.${column}) from hold s
    where @undoes = '' and s.ended_at is null and s.undoes = '' and s.guard = w.guard
      and s.kind = w.kind and (s.part = w.part or s.guard not in (${timed}))
      and s.key in (${everKeys('w')}))`;
  const hold = db.run<Guarded & NewHold>(
    `insert into hold (${content}, ids, undoes, is_listed, at, platform_at)
     select ${content.replaceAll(/\w+/g, 'w.$&')},
       (select json_group_array(d.id) from temp.staged d
        where d.kind = w.kind and d.key = w.key and d.id <> ''),
       @undoes, @isListed, min(@at, coalesce(${earlier('at')}, @at)),
       coalesce(min(@platformAt, ${earlier('platform_at')}), @platformAt, ${earlier('platform_at')})
     from (${heldNow} and ${isGuarded}) w
     where not exists (select 1 from hold h where ${isSame})`,
  );
  const again = db.run<Guarded & NewHold>(
    `update hold as h set wanted = 1, is_listed = max(is_listed, @isListed),
       decision = iif(${isOverruled}, null, decision)
     where h.ended_at is null and h.guard = @guard and h.key > @after and h.key <= @upTo
       and (h.wanted = 0 or h.is_listed < @isListed or ${isOverruled})
       and exists (select 1 from (${heldNow} and ${isGuarded}) w where ${isSame})`,
  );
  const oldest = db.value<Began & { guard: GuardClass; plan: string | undefined }, number>(
    `select min(${began('s')}) from hold s where s.guard = @guard and s.ended_at is null
       and s.undoes = '' and ${began('s')} > @by
       and (@plan is null or s.id in (select hold from listed where list = @plan))`,
  );
  const ahead = db.run<{ guard: GuardClass; at: number }>(
    'update hold set at = @at where guard = @guard and ended_at is null and at > @at',
  );
  const unknown = db.run<BothTimes & { guard: GuardClass }>(
    `update hold set platform_at = iif(platform_at is null and abs(@at - @platformAt) <= ${apartMs},
       at + @platformAt - @at, @platformAt)
     where guard = @guard and ended_at is null
       and (platform_at is null or platform_at > @platformAt)`,
  );
  return {
    /** Returns whether anything waits. */
    isAny: db.has<[]>('select 1 from hold where ended_at is null limit 1'),
    /**
     * Holds, from `at` on, what this run withholds in a range. What replaces a hold of the same
     * record, even under a former key, waits since that one began. A rejection of what is held
     * counts no more: a later decision about the same wish has replaced it.
     */
    hold(guarded: Guarded, made: NewHold): void {
      hold({ ...guarded, ...made });
      again({ ...guarded, ...made });
    },
    /** Yields the key ranges of what waits of a class. */
    ranges: rangesBy(db, {
      column: 'key',
      of: ['hold indexed by hold_open'],
      where: "guard = @guard and ended_at is null and undoes = ''",
    }),
    /**
     * Returns the start of the longest wait, by our clock, of what began to wait after `by` and, if
     * `plan` is given, is shown in that plan. Returns undefined if nothing did.
     */
    oldest: (
      guard: GuardClass,
      {
        by = Number.MIN_SAFE_INTEGER,
        aheadMs = null,
        plan,
      }: Partial<Began> & { plan?: string } = {},
    ) => oldest({ guard, by, aheadMs, plan }),
    /**
     * Sets times that are in the future to `now`, because a clock was set back, and fills in
     * missing times of the platform: with now if the clocks are apart, because ours does not tell
     * them.
     */
    mend(guard: GuardClass, { at, platformAt }: BothTimes): void {
      ahead({ guard, at });
      if (platformAt !== null) unknown({ guard, at, platformAt });
    },
    /** Counts the records of a range that wait and for which this run plans no such change. */
    countUnplanned: db.number<Guarded>(
      `select count(distinct s.key) from hold s where s.ended_at is null and s.undoes = ''
         and s.${isGuarded}
         and not exists (
           select 1 from temp.planned p where p.guard = s.guard and p.key = s.key
             and p.kind = s.kind)
         and not exists (
           select 1 from temp.judged t where t.guard = s.guard and t.key = s.key
             and t.kind = s.kind and t."is" in ('held', 'passed'))`,
    ),
  };
}

/** Selects the holds that a plan showed, or that a decision is about: an SQL condition. */
const isIn = `h.id in (select hold from listed where list = @list)`;

/** An SQL expression: the row of `hold h` is a further channel of a person of this plan. */
const furtherIn = (list: string, also = 'true') => `(h.op = 'opt_in' and exists (
  select 1 from hold c cross join listed f on f.hold = c.id and f.list = ${list}
  where c.kind = h.kind and c.key = h.key and c.op = 'create' and ${also}))`;
const further = furtherIn(
  'coalesce((select p.plan from decision p where p.id = @list), @list)',
  'c.ended_at is null',
);

/** The decision in force about a row of `hold h`, as `d`; @approvals: the approvals in force. */
const decided = `left join decision d on d.id = h.decision and d.ended_at is null
  and (d.verdict = 'rejected' or ${isApproving})`;

const listedColumns = 'h.id, h.kind, h.key, h.op, h.part, h.target, h.guard, h.body, h.ids';
const heldColumns = `${listedColumns}, h.at since, d.verdict, d.id decision, d.at decidedAt, d.decided_by "by", d.reason`;

/** The order in which changes are listed. */
const order = 'order by h.guard, h.kind, h.key, h.op, h.part, h.target, h.id';

/** Selects what a list shows that waits; what it rejects itself counts, too. */
const isWaiting = `(h.ended_at is null
  and (d.verdict is null or d.verdict <> 'rejected' or d.id = @list))`;
const isShownIn = `${isIn} and ${isWaiting}`;

interface InList {
  list: string;
  approvals: readonly string[];
}

type GuardCount = Record<'held' | 'open' | 'ready' | 'ended', number>;

/** The plans that showed what waits. */
function plansIn(db: Statements) {
  const rows = db.all<InList & HeldFilter & { from: number; most: number }, HeldChange>(
    `select ${heldColumns}, ${further} "isFurther" from hold h ${decided}
     where ${isShownIn} and (@guard is null or h.guard = @guard)
       and (@part is null or h.part = @part)
       and (@op is null or iif(${further}, 'create', h.op) = @op)
     ${order} limit @most offset @from`,
  );
  const beforeAndNow = db.all<InList & { guard: GuardClass; most: number }, BeforeAndNow>(
    `select op, part, stated, withdraws, marked, was, "madeBy", fields, count(distinct key) n from (
       select ${wishIn('h')} op, h.key, h.part, h.stated, h.withdraws,
         h.guard = 'delete' and h.ids <> '[]' marked,
         iif(r.key is null, null, coalesce(m.value ->> '$.is', 'none')) was,
         m.value ->> '$.by' "madeBy",
         (select min(s.stated_by) from stated s where s.kind = h.kind and s.key = h.key
            and s.part = h.part and s.says = 'opt_out') fields
       from (select h.* from hold h ${decided}
             where ${isShownIn} and h.guard = @guard limit @most) h
         left join recorded r on r.kind = h.kind and r.key = h.key
         left join json_each(r.body, '$.channels') m on m.key = h.part)
     group by 1, 2, 3, 4, 5, 6, 7, 8 order by 2, 1, n desc`,
  );
  const covers = db.has<{ list: string; other: string; guard: GuardClass }>(
    `select 1 where not exists (
       select 1 from listed l join hold h on h.id = l.hold
       where l.list = @other and h.guard = @guard and h.ended_at is null
         and not exists (select 1 from listed o where o.list = @list and o.hold = l.hold))`,
  );
  const counts = db.all<InList, GuardCount & { guard: GuardClass }>(
    `select guard, sum(held) held, sum(open) open, sum(ready) ready, sum(ended) ended from (
       select h.guard, max(${isWaiting}) held, max(${isWaiting} and d.verdict is null) open,
         max(${isWaiting} and d.verdict is 'approved') ready, max(h.ended_at is not null) ended
       from hold h ${decided} where ${isIn} group by h.guard, h.key)
     group by guard`,
  );
  const whole = db.value<[list: string], string>('select plan from decision where id = ?');
  const plan = db.one<[string], HeldPlan>('select plan, undoes from held_plan where plan = ?');
  const size = db.only<[list: string], ListSize>(
    `select count(*) filter (where h.ended_at is null) waiting,
       count(*) filter (where h.ended_at is null and ${isRejected}) rejected,
       count(*) filter (where h.ended_at is not null) ended,
       coalesce(min(h.at) filter (where h.ended_at is null), 0) since
     from listed l join hold h on h.id = l.hold where l.list = ?`,
  );
  // The first change that no newer plan shows decides, so that few of a large plan are looked at.
  const newest = db.all<[], HeldPlan>(
    `select p.plan, p.undoes from held_plan p where exists (
       select 1 from listed l cross join hold h on h.id = l.hold
       where l.list = p.plan and h.ended_at is null and h.wanted and not ${isRejected}
         and not exists (select 1 from listed o cross join held_plan n on n.plan = o.list
           where o.hold = h.id and n.number > p.number))
     order by p.number`,
  );
  const unshown = db.has<Guarded & { plan: string }>(
    `select 1 from held_plan p, (${heldNow} and ${isGuarded}) w where p.plan = @plan
       and not exists (select 1 from hold h cross join listed l on l.list = @plan and l.hold = h.id
         where ${isAlike}) limit 1`,
  );
  const keep = db.run<{ plan: string; at: number; undoes: string }>(
    `insert or replace into held_plan (plan, number, at, undoes)
     select @plan, coalesce(max(number), 0) + 1,
       coalesce((select at from held_plan where plan = @plan), @at), nullif(@undoes, '')
     from held_plan`,
  );
  const list = db.run<{ plan: string; undoes: string }>(
    `insert or ignore into listed (list, hold)
     select @plan, h.id from (${heldNow}) w join hold h on ${isSame}`,
  );
  const counted = (of: InList) => {
    const found = new Map(counts(of).map((one) => [one.guard, one]));
    const sum = (name: keyof GuardCount) => byGuard((guard) => found.get(guard)?.[name] ?? 0);
    return { held: sum('held'), undecided: sum('open'), ready: sum('ready'), ended: sum('ended') };
  };
  return {
    /**
     * Stores that a plan shows what this run withholds. `undoes`: the run that it undoes, or ''.
     */
    keep(shown: { plan: string; at: number; undoes: string }): void {
      keep(shown);
      list(shown);
    },
    /**
     * Returns whether a plan is not stored, or showed all changes of a range that this run
     * withholds.
     */
    shows: (named: string, guarded: Guarded) => !unshown({ ...guarded, plan: named }),
    /** Returns the plan, or that of the part, with this hash; undefined if none is stored. */
    get: (named: string) => plan(whole(named) ?? named),
    /** Returns the newest plans that show what awaits approval. */
    newest,
    /** Returns these plans with their counts, oldest first. */
    current: (approvals: readonly string[] = []) =>
      newest()
        .map((of) => ({ ...of, ...counted({ list: of.plan, approvals }), ...size(of.plan) }))
        .toSorted((a, b) => a.since - b.since),
    /** Returns the plan that a decision is about; of a plan, the plan itself. */
    wholeOf: (named: string) => whole(named) ?? named,
    /** Returns whether a list has a change of one of these record types. */
    isAbout: db.has<{ list: string; kinds: readonly RecordTypeName[] }>(
      `select 1 from hold h
       where ${isIn} and h.kind in (select value from json_each(@kinds)) limit 1`,
    ),
    /** Returns what a list shows that waits and that nobody rejected elsewhere, in order. */
    rows: (
      named: string,
      approvals: readonly string[],
      {
        guard,
        op,
        part,
        from = 0,
        most: count = -1,
      }: HeldFilter & { from?: number; most?: number } = {},
    ) => rows({ list: named, approvals, guard, op, part, from, most: count }),
    /** Returns whether a list shows all changes of a class that another shows and that wait. */
    covers: (list: string, other: string, guard: GuardClass) => covers({ list, other, guard }),
    /** Groups the people of the first changes of a class by what was known and what is said now. */
    beforeAndNow: (
      named: string,
      approvals: readonly string[],
      { guard, most: count }: { guard: GuardClass; most: number },
    ) => beforeAndNow({ list: named, approvals, guard, most: count }),
    /** Returns whether a change of a class waits about which no decision is in force. */
    isUndecided: db.has<{ guard: GuardClass; approvals: readonly string[] }>(
      `select 1 from hold h ${decided} where h.guard = @guard and h.ended_at is null
         and h.undoes = '' and d.verdict is null limit 1`,
    ),
    size,
    /** Counts these records by what a decision can be limited to, and by their approval. */
    groups: db.all<InList, HeldGroup>(
      `select h.guard, iif(${further}, 'create', h.op) op, h.part,
         iif(d.verdict = 'approved', d.id, null) approval, count(distinct h.key) n
       from hold h ${decided} where ${isShownIn} group by 1, 2, 3, 4 order by 1, 2, 3, 4`,
    ),
    /** Returns a few people of a class about whom nobody has decided. */
    examples: db.values<InList & { guard: GuardClass }, Key>(
      `select distinct h.key from hold h ${decided}
       where ${isShownIn} and h.guard = @guard and d.verdict is null limit 5`,
    ),
    /** Counts records by guard: all that wait, without a decision, approved, and no longer held. */
    counts: counted,
    /** Returns what waits of a record, with the decisions about it. */
    of: db.all<RecordName & { approvals: readonly string[] }, HeldRecord>(
      `select ${heldColumns} from hold h ${decided}
       where h.kind = @kind and h.key = @key and h.ended_at is null and h.undoes = '' ${order}`,
    ),
  };
}

/** The decisions about what plans showed, and their signatures. */
function decisionsIn(db: Statements) {
  const nextNumber = approvalCounterIn(db);
  type Put = PlanDecision & { verdict: 'approved' | 'rejected' | 'pending' };
  const put = db.run<Put>(
    `insert into decision (id, plan, verdict, at, decided_by, reason, number)
     values (@id, @plan, @verdict, @at, @by, @reason, @number)
     on conflict (id) do update set verdict = @verdict, at = @at, decided_by = @by,
       reason = @reason, number = @number, ended_at = null`,
  );
  const some = 'in (select value from json_each(@holds))';
  const point = db.run<[id: string, list: string]>(
    `update hold set decision = ?
     where ended_at is null and id in (select hold from listed where list = ?)`,
  );
  const unlist = db.run<{ id: string; holds: readonly number[] }>(
    `delete from listed where list = @id and not hold ${some}`,
  );
  const list = db.run<{ id: string; holds: readonly number[] }>(
    'insert or ignore into listed (list, hold) select @id, value from json_each(@holds)',
  );
  const isKnown = db.has<[id: string]>('select 1 from decision where id = ?');
  const told = 'd.id, d.plan, d.at, d.decided_by "by", d.reason, d.number';
  const sign = db.run<StoredSignature & { id: string }>(
    `insert or replace into approval_signature (decision, name, at, reason, signature, number)
     values (@id, @name, @at, @reason, @signature, @number)`,
  );
  const unsign = db.run<[id: string]>('delete from approval_signature where decision = ?');
  const end = db.run<[at: number, id: string]>('update decision set ended_at = ? where id = ?');
  const endOld = db.run<{ before: number; at: number }>(
    `update decision set ended_at = @at
     where verdict = 'approved' and ended_at is null and at <= @before`,
  );
  const unsignOld = db.run<{ before: number }>(
    'delete from approval_signature where at <= @before',
  );
  return {
    /**
     * Stores a decision about all that is listed under its id, with these holds. It counts as
     * the latest one; `number`: only as the latest since then.
     */
    decide(
      { number = nextNumber(), ...decision }: Omit<Put, 'number'> & { number?: number },
      holds: readonly number[] = [],
    ): void {
      put({ ...decision, number });
      list({ id: decision.id, holds });
      point(decision.id, decision.id);
    },
    /**
     * Stores what approvers have to sign, which decides nothing. If other holds were listed under
     * this id, because they have ended since, their signatures no longer count.
     */
    keepToSign({ holds, ...of }: { id: string; plan: string; at: number; holds: number[] }): void {
      const { id } = of;
      if (!isKnown(id))
        put({ ...of, verdict: 'pending', by: '', reason: null, number: nextNumber() });
      const changed = unlist({ id, holds }) + list({ id, holds });
      if (changed > 0) unsign(id);
    },
    /** Returns whether a decision has not ended. */
    isAnyDecided: db.has<[]>(
      `select 1 from decision where ended_at is null and verdict <> 'pending' limit 1`,
    ),
    /** Returns the approvals that have not ended and are later than `since` (epoch ms). */
    approvals: db.all<[since: number], PlanDecision & { undoes: string | null }>(
      `select ${told}, p.undoes from decision d left join held_plan p on p.plan = d.plan
       where d.verdict = 'approved' and d.ended_at is null and d.at > ? order by d.at, d.id`,
    ),
    /** Returns the rejections of what still waits, oldest first. */
    rejections: db.all<[], PlanDecision>(
      `select ${told} from decision d where d.verdict = 'rejected' and d.ended_at is null
         and exists (select 1 from hold h where h.decision = d.id and h.ended_at is null)
       order by d.at, d.id`,
    ),
    /** Ends a decision at a time in epoch milliseconds, and drops its signatures. */
    end(id: string, at: number): void {
      end(at, id);
      unsign(id);
    },
    /** Ends the approvals from `before` or earlier likewise; both times in epoch milliseconds. */
    endApprovals(of: { before: number; at: number }): void {
      endOld(of);
      unsignOld(of);
    },
    /** Sets the times of decisions that are ahead of `at` to it, because a clock was set back. */
    mendDecisions: db.run<{ at: number }>(
      'update decision set at = @at where at > @at and ended_at is null',
    ),
    /** Drops the signatures that a clock ahead of `at` has made. */
    unsignAhead: db.run<{ at: number }>('delete from approval_signature where at > @at'),
    /** Ends, at `at`, the rejections from `before` or earlier; both in epoch milliseconds. */
    endRejections: db.run<{ before: number; at: number }>(
      `update decision set ended_at = @at
       where verdict = 'rejected' and ended_at is null and at <= @before`,
    ),
    /** Stores a signature in place of an earlier one by the same approver. */
    sign: (id: string, signature: ApprovalSignature) =>
      sign({ id, ...signature, number: nextNumber() }),
    /** Drops the signatures of all lists with one of these holds. */
    unsign: db.run<{ holds: readonly number[] }>(
      `delete from approval_signature
       where decision in (select list from listed where hold ${some})`,
    ),
    /** Returns the signatures of a list, oldest first. */
    signatures: db.all<[id: string], StoredSignature>(
      `select name, at, reason, signature, number from approval_signature
       where decision = ? order by at, name`,
    ),
    /** Returns the lists with signatures. */
    signed: db.values<[], string>(
      'select distinct decision from approval_signature order by decision',
    ),
    /** Returns all changes of a list to sign, whether or not they still wait. */
    toSign: db.all<[list: string], ListedChange>(
      `select ${listedColumns} from listed l join hold h on h.id = l.hold
       where l.list = ? ${order}`,
    ),
    /** Returns what became of the newest `count` approvals that runs have used. */
    decidedLately: db.all<[count: number], DecidedGroup>(
      `with used as materialized (
         select * from decision where verdict = 'approved' order by at desc limit ?)
       select a.at, a.decided_by "by", a.reason, h.guard,
         iif(${furtherIn('a.plan')}, 'create', h.op) op, h.part, count(distinct h.key) n,
         count(distinct iif(c.state = 'acked', h.key, null)) done, max(c.run) run
       from used a join hold h on h.decision = a.id
         left join change c indexed by change_by_key on c.kind = h.kind and c.key = h.key
           and c.op = h.op and c.part = h.part and c.approved = a.id
           and c.${orderColumn} >= a.number
       group by a.id, 4, 5, 6 having done > 0 order by a.at desc, 4, 5, 6`,
    ),
  };
}

/** What ends holds, and removes what is old. */
function endingIn(db: Statements) {
  const those = `ended_at is null and undoes = '' and ${isGuarded}`;
  const end = 'update hold set ended_at = @at where';
  // What is held again is the same only with the same content; what is not, follows the wish.
  const isJudged = (...is: readonly string[]) => `exists (select 1 from temp.judged t
    where t.guard = hold.guard and t.kind = hold.kind and t.key = hold.key
      and t.part = hold.part and t."is" in (${is.map((one) => `'${one}'`).join(', ')})
      and iif(t."is" = 'held',
        t.op = hold.op and t.stated = hold.stated and t.withdraws = hold.withdraws
          and hold.target in ('', coalesce(t.target, ''))
          and iif(t.kind = 'template', t.body, '') = hold.body,
        ${wishIn('t')} = ${wishIn('hold')}))`;
  const keptOut = guardClasses.flatMap(({ id, withoutHeldOf: by }) =>
    by ? [`hold.guard = '${id}' and t.guard = '${by}'`] : [],
  );
  // What this run could not plan may still be wanted: while the record cannot be read, or, unless
  // the wait has an end, while a request has no known outcome or an opt-out is held.
  const isUnsure = `(exists (select 1 from temp.staged d
      where d.kind = hold.kind and d.key = hold.key and d.reason is not null)
    or hold.guard not in (${timed}) and (exists (select 1 from change o indexed by change_by_key
      where o.kind = hold.kind and o.key = hold.key and o.state in ('sent', 'unknown'))
    or exists (select 1 from temp.judged t indexed by judged_by_key
      where t.kind = hold.kind and t."is" = 'held' and (${keptOut.join(' or ')})
        and t.key in (${everKeys('hold')}))))`;
  const isPlanned = `(${isJudged('held', 'passed', 'rejected', 'deferred')} or ${isUnsure})`;
  const change = `from change c indexed by change_by_key
    where c.kind = hold.kind and c.key = hold.key and c.part = hold.part
      and ${wishIn('c')} = ${wishIn('hold')}`;
  const isUsed = `c.approved = hold.decision and c.${orderColumn} >= (
    select d.number from decision d where d.id = hold.decision)`;
  type Ending = Guarded & { at: number };
  const ofRun = `ended_at is null and undoes = @undoes and ${isGuarded}`;
  const done = db.run<Ending & { run: string; undoes: string }>(
    `${end} ${ofRun} and exists (
       select 1 ${change} and c.state = 'acked' and (c.run = @run or ${isUsed}))
       and not ${isJudged('held')}`,
  );
  const used = db.run<Guarded & { undoes: string }>(
    `update hold set decision = null where ${ofRun} and decision is not null and exists (
       select 1 ${change} and c.state in ('acked', 'rejected') and ${isUsed})`,
  );
  const old = `in (select id from hold where ended_at < ? order by ended_at, id limit ${most})`;
  const pruneLists = db.run<[before: number]>(`delete from listed where hold ${old}`);
  const pruneHolds = db.run<[before: number]>(`delete from hold where id ${old}`);
  const isListed = 'exists (select 1 from listed l where l.list = plan)';
  const prunePlans = db.run<[before: number]>(
    `delete from held_plan where at < ? and not ${isListed}`,
  );
  const pruneDecisions = db.run<[before: number]>(
    `delete from decision where at < ?
       and not exists (select 1 from hold h where h.decision = decision.id)`,
  );
  const pruneSignatures = db.run<[before: number]>('delete from approval_signature where at < ?');
  return {
    /**
     * Ends the holds of a range that were made by this run or under their approval, and drops an
     * approval that was used of what the platform has refused, or this run holds again. `undoes`:
     * the run that is undone, or ''.
     */
    endDone(range: Guarded, by: { at: number; run: string; undoes: string }): void {
      done({ ...range, ...by });
      used({ ...range, ...by });
    },
    /**
     * Ends the holds of a range that this run does not plan, or let pass under one of these
     * approvals, but for the keys that another run has taken over, and for what it could not plan.
     * Call it only for a run that read everything. One that has not listed the platform knows
     * nothing of people who are not recorded.
     */
    endUnwanted: db.run<
      Ending & { but: readonly Key[]; isListed: boolean; approvals: readonly string[] }
    >(
      `${end} ${those} and key not in (select value from json_each(@but)) and (
         not ${isPlanned} and (@isListed or exists (
           select 1 from recorded r where r.kind = hold.kind and r.key = hold.key))
         or decision in (select value from json_each(@approvals))
           and not ${isJudged('held', 'rejected')})`,
    ),
    /** Marks what this run, which did not list the platform, no longer plans in a range. */
    unwant: db.run<Guarded>(
      `update hold set wanted = 0 where ${those} and wanted and not is_listed
         and not ${isPlanned}`,
    ),
    /** Ends what the undo of a run has shown in other plans than this one. */
    endUndone: db.run<{ at: number; undoes: string; plan: string }>(
      `${end} ended_at is null and undoes = @undoes
         and id not in (select hold from listed where list = @plan)`,
    ),
    /** Ends what plans of `undo` have shown before `before` (epoch milliseconds). */
    endOldUndone: db.run<{ at: number; before: number }>(
      `${end} ended_at is null and undoes <> '' and at < @before`,
    ),
    /**
     * Deletes some thousands of holds that ended before `before` (epoch milliseconds), and what is
     * left of plans and decisions. Returns whether more may remain.
     */
    prune(before: number): boolean {
      // An id may be given again, so that no list may keep it.
      pruneLists(before);
      if (pruneHolds(before) === most) return true;
      prunePlans(before);
      pruneDecisions(before);
      pruneSignatures(before);
      return false;
    },
  };
}
