import { inRange, type KeyRange } from '../database/key-range.ts';
import type { Statements } from '../database/prepared-statements.ts';
import type { RecordProblem } from '../../domain/record-problem.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';

/**
 * The known problems as a whole, and what of them is parked (known-problems.ts): looked at, let go.
 */
export interface RetryLater {
  /** How many records have a problem, and since when, by kind and class; parked ones apart. */
  counts(): ProblemCount[];
  /** Opt-outs that the platform refused, the oldest first. */
  refusedOptOuts(count: number): RefusedOptOut[];
  countRefusedOptOuts(): number;
  /** The parts that are a problem of their own: it stands under the part's name. */
  parts(kind: RecordTypeName): PartProblem[];
  /** Of which records something is to be tried again now, whatever the source says of them. */
  due(kind: RecordTypeName, at: number): Key[];
  /** Of which records something is parked. */
  records(): Named[];
  /** What is known of records that this run's reading does not name, as it is not whole. */
  countUnread(kind: RecordTypeName, range: KeyRange): UnreadCounts;
  /** The oldest opt-outs among that. */
  unreadOptOuts(kind: RecordTypeName): RefusedOptOut[];
  /**
   * Has the next run try what is parked of a record, as if it had changed. It stays known until
   * then, with its `since`. Answers how many changes that is.
   */
  release(record: Named): number;
}

/** Counted in problems. */
interface UnreadCounts {
  conflicts: number;
  invalid: number;
  /** Of other changes than opt-outs. */
  rejected: number;
  /** Opt-outs that the platform refused. */
  refused: number;
}

export interface Unread extends UnreadCounts {
  /** The oldest of them. */
  optOuts: RefusedOptOut[];
}

type Named = Pick<RecordProblem, 'kind' | 'key'>;

export interface ProblemCount extends Pick<RecordProblem, 'kind' | 'class'> {
  parked: 0 | 1;
  n: number;
  /** Milliseconds since the epoch. */
  since: number;
}

/** Times in milliseconds since the epoch. */
export interface RefusedOptOut extends Pick<
  RecordProblem,
  'kind' | 'key' | 'part' | 'reason' | 'fix'
> {
  /** 0 once it was released. */
  attempts: number;
  retryAt: number;
  since: number;
}

/** `since`: milliseconds since the epoch. */
export interface PartProblem extends Pick<RecordProblem, 'part' | 'reason' | 'fix'> {
  since: number;
}

/** What `desired` is of something released: nothing that a record ever wants. */
const released = 'released';

export function retryLaterIn(db: Statements): RetryLater {
  const counts = db.prepare<[], ProblemCount>(
    `select kind, class, desired is not null parked, count(distinct key) n, min(since) since
     from problem group by kind, class, parked`,
  );
  const refused = 'desired is not null and retry_at is not null';
  const optOuts = db.prepare<[number], RefusedOptOut>(
    `select kind, key, part, reason, fix, attempts, retry_at retryAt, since from problem
     where ${refused} order by since, key, part limit ?`,
  );
  const countOptOuts = db.prepare<[], { n: number }>(
    `select count(*) n from problem where ${refused}`,
  );
  const due = db.prepare<[string, number], { key: Key }>(
    `select distinct key from problem
     where kind = ? and desired is not null and (retry_at <= ? or desired = '${released}')`,
  );
  const records = db.prepare<[], Named>(
    'select distinct kind, key from problem where desired is not null order by kind, key',
  );
  const parts = db.prepare<[string], PartProblem>(
    `select part, reason, fix, since from problem
     where kind = ? and class = 'conflict' and key = part order by since, part`,
  );
  const release = db.prepare(
    `update problem set desired = '${released}', attempts = 0,
       retry_at = iif(retry_at is null, null, 0)
     where kind = ? and key = ? and desired is not null`,
  );
  return {
    counts: () => counts.all(),
    refusedOptOuts: (count) => optOuts.all(count),
    countRefusedOptOuts: () => countOptOuts.get()?.n ?? 0,
    parts: (kind) => parts.all(kind),
    due: (kind, at) => due.all(kind, at).map(({ key }) => key),
    records: () => records.all(),
    ...unreadIn(db),
    release: ({ kind, key }) => release.run(kind, key).changes,
  };
}

/** Whether the reading of this run names whom a problem is about, if only by the id. */
export const isNamed = `(
  exists (select 1 from temp.staged s where s.kind = problem.kind and s.key = problem.key)
  or problem.key like 'id %' and exists (
    select 1 from temp.strange s
    where s.kind = problem.kind and s.id = substr(problem.key, 4)))`;

function unreadIn(db: Statements): Pick<RetryLater, 'countUnread' | 'unreadOptOuts'> {
  const counts = db.prepare<KeyRange & { kind: string }, UnreadCounts>(
    `select coalesce(sum(class = 'conflict' and key <> part), 0) conflicts,
       coalesce(sum(class = 'invalid'), 0) invalid,
       coalesce(sum(desired is not null and retry_at is null), 0) rejected,
       coalesce(sum(desired is not null and retry_at is not null), 0) refused
     from problem where ${inRange('problem')} and not ${isNamed}`,
  );
  const optOuts = db.prepare<[string, number], RefusedOptOut>(
    `select kind, key, part, reason, fix, attempts, retry_at retryAt, since from problem
     where kind = ? and desired is not null and retry_at is not null and not ${isNamed}
     order by since, key, part limit ?`,
  );
  const none = { conflicts: 0, invalid: 0, rejected: 0, refused: 0 };
  return {
    countUnread: (kind, range) => counts.get({ kind, ...range }) ?? none,
    unreadOptOuts: (kind) => optOuts.all(kind, mostListed),
  };
}

/** No run lists more problems. */
const mostListed = 100;
