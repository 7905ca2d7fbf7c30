import type { Statements } from '../database/prepared-statements.ts';
import type { OptOutReport, ReturnState } from '../../domain/opt-out-report.ts';
import type { Key, RecordTypeName, RecordedBody } from '../../domain/record.ts';
import { inRange, type RecordName, type RecordRange } from '../database/key-range.ts';

/** A stored report; times are in milliseconds since the epoch. */
export interface ReturnedRow extends OptOutReport {
  seq: number;
  state: ReturnState;
  reason: string | null;
  fix: string | null;
  attempts: number;
  /** When the opt-out was first observed. */
  plannedAt: number;
  /** When it became acked, rejected or needless; null while it is waiting. */
  endedAt: number | null;
}

interface Moved {
  at: number;
  run?: string | undefined;
  reason?: string | undefined;
  fix?: string | undefined;
  /** When a rejected report is due again. */
  retryAt?: number | undefined;
  tried?: boolean;
}

interface Due {
  kind: RecordTypeName;
  at: number;
  count: number;
}

interface ReturnCounts {
  waiting: number;
  waitingSince: number | null;
  rejected: number;
  rejectedSince: number | null;
}

const columns = `seq, id, key email, crm "crmId", part channel, cause, made_after "after",
  made_by "by", state, reason, fix, attempts, planned_at "plannedAt", ended_at "endedAt"`;
const isWaiting = "state in ('planned', 'sent', 'unknown')";

/**
 * Selects the bodies that may contain an opt-out made on the platform, by searching their text.
 * Canonical JSON has no spaces, so the search is exact enough, and most bodies need not be parsed.
 */
const mayHaveLeft = `(instr(body, '"by":"platform"') > 0 or instr(body, '"left":true') > 0)`;

/**
 * Stores the reports to the CRM: one row for each opt-out on the platform and CRM id, from when the
 * opt-out is first observed until the person resubscribes.
 *
 *   needless → planned → sent → acked | rejected | unknown
 *
 * `sent` is on disk before the report is sent. If the process is killed, the next run marks the
 * report as unknown. An unknown report is sent again under the same id; so is a rejected one, after
 * a day or when it is released. An acked report is not sent again while its row exists.
 */
export function optOutReportsIn(db: Statements) {
  return { ...reportsIn(db), ...dueReportsIn(db) };
}

function reportsIn(db: Statements) {
  /** Selects from a table the rows of a range of keys, or of one record. */
  const either = <R>(select: (where: string) => string, table: string) => {
    const ofRange = db.all<RecordRange, R>(select(inRange(table)));
    const ofOne = db.all<RecordName, R>(select(`${table}.kind = @kind and ${table}.key = @key`));
    return (keys: RecordRange | RecordName): R[] => ('key' in keys ? ofOne(keys) : ofRange(keys));
  };
  const leavers = (table: string) =>
    either<RecordedBody>(
      (where) =>
        `select key, body, seen_at "seenAt" from ${table} where ${where} and ${mayHaveLeft}`,
      table.split('.').at(-1) ?? table,
    );
  const move = db.run<Required<Moved> & { seq: number; to: ReturnState }>(
    `update returned set state = @to, reason = @reason, fix = @fix, retry_at = @retryAt,
       attempts = attempts + @tried, run = coalesce(@run, run),
       sent_at = iif(@to = 'sent', @at, sent_at),
       ended_at = iif(@to in ('acked', 'rejected', 'needless'), @at, null)
     where seq = @seq`,
  );
  return {
    of: either<ReturnedRow>(
      (where) => `select ${columns} from returned where ${where}`,
      'returned',
    ),
    leavers: leavers('recorded'),
    /** Returns the same people, from the rows that this run's decisions have noted. */
    noted: leavers('temp.noted'),
    barred: either<{ key: Key }>(
      (where) =>
        `select distinct key from temp.noticed where ${where} and class = 'conflict'
           and not exists (
             select 1 from recorded r where r.kind = noticed.kind and r.key = noticed.key)
         order by key`,
      'noticed',
    ),
    add: db.run<OptOutReport & { kind: RecordTypeName; state: ReturnState; at: number }>(
      `insert into returned
         (kind, key, crm, part, id, cause, made_after, made_by, state, planned_at)
       values (@kind, @email, @crmId, @channel, @id, @cause, @after, @by, @state, @at)`,
    ),
    move: (seq: number, to: ReturnState, { run, reason, fix, retryAt, tried, at }: Moved) =>
      move({ seq, to, run, reason, fix, retryAt, tried: tried ?? false, at }),
    drop: db.run<[seq: number]>('delete from returned where seq = ?'),
    /** Marks sent reports as unknown, except those of the runs in `but`, which are in progress. */
    doubt: db.run<[RecordTypeName, but: readonly string[]]>(
      `update returned indexed by returned_open set state = 'unknown'
       where kind = ? and state = 'sent' and state not in ('acked', 'needless')
         and run not in (select value from json_each(?))`,
    ),
    /** Lists those that the CRM accepted in a time (epoch ms), the newest first. */
    accepted: db.all<[since: number, before: number, count: number], ReturnedRow>(
      `select ${columns} from returned where state = 'acked' and ended_at >= ? and ended_at < ?
       order by ended_at desc limit ?`,
    ),
    /** Deletes old reports that have ended, about people who are no longer recorded. */
    prune: db.run<[before: number]>(
      `delete from returned where state in ('acked', 'needless', 'rejected') and ended_at < ?
         and not exists (
           select 1 from recorded r where r.kind = returned.kind and r.key = returned.key)`,
    ),
  };
}

function dueReportsIn(db: Statements) {
  const isOpen = "kind = @kind and state not in ('acked', 'needless')";
  const isDue = `(state in ('planned', 'unknown') or (state = 'rejected' and retry_at <= @at))`;
  const ofState = db.all<{ kind: string; state: string; count: number }, ReturnedRow>(
    `select ${columns} from returned indexed by returned_open
     where ${isOpen} and state = @state order by planned_at, seq limit @count`,
  );
  return {
    /** Returns the reports that are due; those tried least often come first. */
    due: db.all<Due, ReturnedRow>(
      `select ${columns} from returned indexed by returned_open
       where ${isOpen} and ${isDue} order by attempts, seq limit @count`,
    ),
    dueOf: db.all<Due & { key: Key }, ReturnedRow>(
      `select ${columns} from returned indexed by returned_by_record
       where ${isOpen} and key = @key and ${isDue} order by attempts, seq limit @count`,
    ),
    unknown: (kind: RecordTypeName) => ofState({ kind, state: 'unknown', count: 1_000_000 }),
    rejected: (kind: RecordTypeName, count: number) => ofState({ kind, state: 'rejected', count }),
    counts: db.only<{ kind: RecordTypeName }, ReturnCounts>(
      `select count(*) filter (where ${isWaiting}) waiting,
         min(planned_at) filter (where ${isWaiting}) "waitingSince",
         count(*) filter (where state = 'rejected') rejected,
         min(planned_at) filter (where state = 'rejected') "rejectedSince"
       from returned indexed by returned_open where ${isOpen}`,
    ),
    refused: db.values<{ kind: RecordTypeName }, Key>(
      `select distinct key from returned indexed by returned_open
       where ${isOpen} and state = 'rejected' order by key`,
    ),
    /** Makes the rejected reports of a key due in the next run. */
    release: db.run<RecordName>(
      `update returned set retry_at = 0, attempts = 0
       where kind = @kind and key = @key and state = 'rejected'`,
    ),
  };
}
