/** Stores the runs, and returns the outcomes of changes and the history of a record. */
import {
  type RecordName,
  inRange,
  inStretch,
  type Place,
  rangesBy,
  type RecordRange,
} from '../database/key-range.ts';
import type { Statements } from '../database/prepared-statements.ts';
import type { Op, ChangeState } from '../../domain/change.ts';
import type { Key, RecordTypeName, RecordedBody } from '../../domain/record.ts';
import { orderColumn, chunksOfRun, plannedAgain } from './journal.ts';

/** A recorded run; times are in milliseconds since the epoch. */
export interface KeptRun {
  id: string;
  /** Its place in the order of the runs, because a clock can be set back; null if not known. */
  number: number | null;
  mode: string;
  /** `running` until the run has ended, and permanently if its process was killed. */
  status: string;
  plan: string | null;
  startedAt: number;
  endedAt: number | null;
  /** The summary as JSON text, without its problems. */
  summary: string | null;
  /** What asked for the run, as JSON text. */
  asked: string | null;
}

/** Returns whether a run began later than another one, whatever the clock showed. */
export function isLater(run: KeptRun, other: KeptRun | undefined): boolean {
  return (run.number ?? 0) >= (other?.number ?? 0);
}

/** Selects runs; undefined selects all. Times are in milliseconds since the epoch. */
export interface RunFilter {
  mode?: string | undefined;
  statuses?: readonly string[] | undefined;
  since?: number | undefined;
  /** Whether only those are selected that changed something, failed, or began or ended a wait. */
  isNews?: boolean;
  /** How many of the newest are left out. */
  offset?: number;
}

const columns =
  'id, number, mode, status, plan, started_at startedAt, ended_at endedAt, summary, asked';
/** How many records the run was the first to hold; a plan keeps when it was made first. */
const newlyHeld = `iif(status = 'held' and exists (select 1 from held_plan p
    where p.plan in (run.plan, run.summary ->> '$.heldAs') and p.at >= run.started_at), (
  select count(distinct h.key) from listed l join hold h on h.id = l.hold
  where l.list in (run.plan, run.summary ->> '$.heldAs') and h.at >= run.started_at), 0)`;
/** The status of the run before, of the same mode. */
const statusBefore = `(select b.status from run b where b.number < run.number
  and b.mode = run.mode order by b.number desc limit 1)`;
/** Whether the run before failed for the same reasons, such as a fast one before a full one. */
const failedAlike = `exists (select 1 from (select b.status, b.summary from run b
    where b.number < run.number and b.mode in ('full', 'fast') order by b.number desc limit 1) b
  where b.status = 'failed' and run.status = 'failed'
    and b.summary ->> '$.reasons' = run.summary ->> '$.reasons')`;
const changedSomething = `exists (
  select 1 from change c indexed by change_by_run where c.run = run.id)`;
const covers = `coalesce(summary ->> '$.only', @type) = @type`;
const newestFirst = 'order by number desc, started_at desc, id desc';

/** Records when runs start and how they end. */
export function runsIn(db: Statements) {
  // Only the runs that are returned are read with their summaries.
  const newest = db.all<Required<RunFilter> & { count: number; isNews: boolean }, KeptRun>(
    `select ${columns} from run where id in (
       select id from run
       where (@mode is null or mode = @mode)
         and (@statuses is null or status in (select value from json_each(@statuses)))
         and (@since is null or started_at >= @since)
         and (not @isNews or status in ('failed', 'interrupted', 'running')
           or iif(mode in ('full', 'fast'), coalesce(${statusBefore}, 'done'), 'done') <> status
           or ${changedSomething} or ${newlyHeld} > 0
           or id in (select p.run from problem p where p.class <> 'held'))
       ${newestFirst} limit @count offset @offset)
     ${newestFirst}`,
  );
  return {
    /** `asked`: what asked for the run, as JSON text. */
    start: db.run<{ id: string; mode: string; at: number; asked: string }>(
      `insert into run (id, mode, status, started_at, asked, number)
       values (@id, @mode, 'running', @at, @asked,
         (select coalesce(max(number), 0) + 1 from run))`,
    ),
    finish: db.run<{ id: string; status: string; plan: string; summary: string; at: number }>(
      `update run set status = @status, plan = @plan, summary = @summary, ended_at = @at
       where id = @id`,
    ),
    /** Counts the failed runs of a mode since one ended well that covered this record type. */
    failing: db.one<{ mode: string; type: string }, { n: number; since: number }>(
      `select count(*) n, min(ended_at) since from run
       where mode = @mode and status = 'failed' and ${covers} and number > coalesce((
         select number from run where mode = @mode and status in ('done', 'rejected', 'held')
           and ${covers} order by number desc limit 1), 0)`,
    ),
    drop: db.run<[id: string]>('delete from run where id = ?'),
    get: db.one<[id: string], KeptRun>(`select ${columns} from run where id = ?`),
    /** Returns when the oldest run that is kept began, in milliseconds since the epoch. */
    firstStart: db.value<[], number | null>('select min(started_at) from run'),
    /** Returns the newest run that has undone something of this one. */
    undoneBy: db.value<[id: string], string>(
      `select id from run where mode = 'undo' and asked ->> '$.undoes' = ? and exists (
         select 1 from change indexed by change_by_run where run = run.id and state = 'acked')
       ${newestFirst} limit 1`,
    ),
    newest: (count: number, filter: RunFilter = {}) => {
      const { mode, statuses, since, isNews = false, offset = 0 } = filter;
      return newest({ count, mode, statuses, since, isNews, offset });
    },
    /**
     * Returns what is news in a time (epoch ms): the newest runs that changed something, that began
     * to hold something (`held` more records) or to fail, and those with these ids (JSON). `times`:
     * how many runs of the mode have ended like this, one after the other.
     */
    news: db.all<
      { since: number; before: number; ids: string; count: number },
      KeptRun & { held: number; times: number }
    >(
      `select ${columns}, ${newlyHeld} held, (
         select count(*) from run l where l.mode = run.mode and l.number >= run.number
           and l.number < coalesce((select min(o.number) from run o where o.mode = run.mode
             and o.number > run.number and o.status <> run.status), 1e15)) times
       from run where id in (
         select id from run where started_at >= @since and (
           status in ('failed', 'interrupted', 'running') and status is not ${statusBefore}
             and not ${failedAlike}
           or ${newlyHeld} > 0 or mode = 'single' and ${changedSomething})
         union select run from run_figures where at >= @since and changed > 0
         union select value from json_each(@ids))
       and coalesce(ended_at, started_at) >= @since and coalesce(ended_at, started_at) < @before
       order by coalesce(ended_at, started_at) desc limit @count`,
    ),
    /**
     * The newest full run of all record types that ended well with both readings certified, and
     * that left nobody out: the platform matched what the CRM wanted.
     */
    proven: db.one<[], KeptRun>(
      `select ${columns} from run
       where mode = 'full' and status in ('done', 'rejected') and summary ->> '$.only' is null
         and summary ->> '$.certificate.source' and summary ->> '$.certificate.platform'
         and coalesce(summary ->> '$.contacts.prevented.sample', 0) = 0
         and not exists (select 1 from json_each(run.summary, '$.deferred') d where d.value > 0)
       ${newestFirst} limit 1`,
    ),
    /** The mapping of the contacts in the newest completed run about all people but this one. */
    lastMapping: db.value<[but: string], string>(
      `select asked ->> '$.mapping' mapping from run
       where mode in ('full', 'fast') and status in ('done', 'rejected', 'held') and id <> ?
         and asked ->> '$.mapping' is not null and coalesce(summary ->> '$.only', '') <> 'templates'
       ${newestFirst} limit 1`,
    ),
    prune: db.run<[before: number]>('delete from run where ended_at < ?'),
  };
}

/** A change and its outcome; times are in milliseconds since the epoch. */
export interface KeptChange extends RecordName {
  op: Op;
  part: string;
  state: ChangeState;
  /** The approval that let it pass; null if it needed none, or if it is no longer stored. */
  approvedPlan: string | null;
  approvedBy: string | null;
  approvedFor: string | null;
  reason: string | null;
  fix: string | null;
  plannedAt: number;
  sentAt: number | null;
  endedAt: number | null;
}

/** Returns a column of the approval that let a change pass, unless the same was approved again. */
function ofApproval(column: string): string {
  return `(select a.${column} from decision a
    where a.id = change.approved and change.${orderColumn} >= a.number)`;
}

const keptColumns = `kind, key, op, part, state, reason, fix, planned_at plannedAt,
  sent_at sentAt, ended_at endedAt,
  ${ofApproval('id')} approvedPlan, ${ofApproval('decided_by')} approvedBy,
  ${ofApproval('reason')} approvedFor`;

/** Returns the outcomes of changes; the journal itself is in journal.ts. */
export function outcomesIn(db: Statements) {
  return {
    /** Returns the changes of a run, most urgent states first, opt-outs before other changes. */
    gravest: db.all<[run: string, count: number], KeptChange>(
      `select ${keptColumns} from change indexed by change_by_run
       where run = ? and reason is not '${plannedAgain}'
       order by case state when 'rejected' then 0 when 'unknown' then 1 when 'sent' then 2
         when 'planned' then 3 when 'stale' then 4 else 5 end, op <> 'opt_out', seq limit ?`,
    ),
    ofRun: changesOfRun(db),
    countOpen: db.all<[], { state: 'sent' | 'unknown'; n: number; since: number | null }>(
      `select state, count(*) n, min(sent_at) since from change indexed by change_open
       where state in ('sent', 'unknown') group by state`,
    ),
  };
}

/** The number of chunks of changes that one part looks through. */
const chunksAtOnce = 8;

/** Selects changes of a run; undefined selects all. */
interface ChangeFilter {
  kind?: string | undefined;
  op?: string | undefined;
  part?: string | undefined;
  state?: string | undefined;
  /** The `seq` of the change before the first one. */
  after?: number | undefined;
  count: number;
}

/**
 * Returns a part of the changes of a run that a filter selects, in the order of sending. `next` is
 * the `after` of the next part; undefined if this is the last one.
 */
function changesOfRun(db: Statements) {
  const chunks = chunksOfRun(db);
  const place = db.one<[seq: number, run: string], Place>(
    'select phase, kind, key, seq from change where seq = ? and run = ?',
  );
  const select = db.all<object, KeptChange & { rule: string | null; seq: number }>(
    `select seq, ${keptColumns}, why ->> '$.rule' rule from change indexed by change_by_run
     where run = @run and ${inStretch}
       and (@ofKind is null or kind = @ofKind) and (@op is null or op = @op)
       and (@part is null or part = @part) and (@state is null or state = @state)
     order by phase, kind, key, seq limit @most`,
  );
  return (run: string, { kind, op, part, state, after, count }: ChangeFilter) => {
    const changes: ReturnType<typeof select> = [];
    let looked = 0;
    const begin = after === undefined ? undefined : place(after, run);
    for (const stretch of chunks({ run }, begin)) {
      const most = count + 1 - changes.length;
      changes.push(...select({ run, ofKind: kind, op, part, state, ...stretch, most }));
      if (changes.length > count)
        return { changes: changes.slice(0, count), next: changes[count - 1]?.seq };
      looked += 1;
      if (looked === chunksAtOnce && stretch.seq !== 0) return { changes, next: stretch.seq };
    }
    return { changes, next: undefined };
  };
}

/** Returns what the snapshot contains about single records. */
export function historyIn(db: Statements) {
  return {
    keys: keysIn(db),
    /** Yields every recorded record in key order; nothing may be written while it runs. */
    records: db.each<[RecordTypeName], RecordedBody>(
      'select key, body, seen_at seenAt from recorded where kind = ? order by key',
    ),
    /** Keys that have a conflict but no recorded row: people who are not added to the platform. */
    barred: db.values<[RecordTypeName], Key>(
      `select distinct p.key from problem p where p.kind = ? and p.class = 'conflict'
         and not exists (select 1 from recorded r where r.kind = p.kind and r.key = p.key)
       order by p.key`,
    ),
    changes: db.all<[RecordTypeName, Key, count: number], KeptChange & { run: string }>(
      `select run, ${keptColumns} from change indexed by change_by_key
       where kind = ? and key = ? order by seq desc limit ?`,
    ),
  };
}

/** Yields every key of the snapshot, a range at a time, so that other statements may run. */
function keysIn(db: Statements) {
  const tables = ['recorded', 'origin', 'problem', 'change', 'stated', 'hold'];
  const ranges = rangesBy(db, { column: 'key', of: tables, where: 'kind = @kind' });
  const selects = tables.map((table) => `select key from ${table} where ${inRange(table)}`);
  const keys = db.values<RecordRange, Key>(`${selects.join(' union ')} order by key`);
  return function* (kind: RecordTypeName): Generator<Key> {
    for (const range of ranges({ kind })) yield* keys(range);
  };
}
