import { inRange, type KeyRange } from '../database/key-range.ts';
import { isHeard } from './unmanaged-people.ts';
import type { Statements } from '../database/prepared-statements.ts';
import type { RecordProblem } from '../../domain/record-problem.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';

/** The number of problems of each kind. */
export interface UnreadCounts {
  conflicts: number;
  invalid: number;
  /** Rejected changes other than opt-outs. */
  rejected: number;
  /** Rejected opt-outs. */
  refused: number;
}

/** The problems of records that an incremental reading does not contain. */
export interface Unread extends UnreadCounts {
  /** The oldest rejected opt-outs. */
  optOuts: RefusedOptOut[];
  /** The oldest opt-outs that may be waiting, because they cannot be read. */
  unreadable: Pick<RecordProblem, 'kind' | 'key' | 'reason' | 'fix'>[];
}

type Named = Pick<RecordProblem, 'kind' | 'key'>;

/** The number of records with problems, for one record type and class. */
export interface ProblemCount extends Pick<RecordProblem, 'kind' | 'class'> {
  parked: 0 | 1;
  n: number;
  /** When the oldest problem became known, in milliseconds since the epoch. */
  since: number;
}

/** An opt-out that the platform rejected; times are in milliseconds since the epoch. */
export interface RefusedOptOut extends Pick<
  RecordProblem,
  'kind' | 'key' | 'part' | 'reason' | 'fix'
> {
  /** The number of rejections; 0 after a release. */
  attempts: number;
  retryAt: number;
  since: number;
}

/** A conflict that concerns a whole part; `since` is in milliseconds since the epoch. */
export interface PartProblem extends Pick<RecordProblem, 'part' | 'reason' | 'fix'> {
  since: number;
}

/** A conflict of one record; `since` is in milliseconds since the epoch. */
export interface RecordConflict extends PartProblem {
  key: Key;
}

/** The value of `desired` after a release, which never equals a fingerprint. */
const released = 'released';

/** Selects the problems of records that this run's reading contains, found by key or only by id. */
export const isNamed = `(
  exists (select 1 from temp.staged s where s.kind = problem.kind and s.key = problem.key)
  or problem.key like 'id %' and exists (
    select 1 from temp.strange s
    where s.kind = problem.kind and s.id = substr(problem.key, 4)))`;

const refused = 'desired is not null and retry_at is not null';
const refusedColumns = 'kind, key, part, reason, fix, attempts, retry_at retryAt, since';

/**
 * Counts and lists the known problems of all records (known-problems.ts), and releases the rejected
 * changes among them that are waiting for a retry (parked).
 */
export function retryLaterIn(db: Statements) {
  const unread = db.one<KeyRange & { kind: string }, UnreadCounts>(
    `select coalesce(sum(class = 'conflict' and key <> part), 0) conflicts,
       coalesce(sum(class = 'invalid'), 0) invalid,
       coalesce(sum(desired is not null and retry_at is null), 0) rejected,
       coalesce(sum(${refused}), 0) refused
     from problem where ${inRange('problem')} and ${isHeard} and not ${isNamed}`,
  );
  const due = db.all<[kind: string, at: number], { key: Key }>(
    `select distinct key from problem
     where kind = ? and desired is not null and (retry_at <= ? or desired = '${released}')`,
  );
  const release = db.run<[kind: string, key: string]>(
    `update problem set desired = '${released}', attempts = 0,
       retry_at = iif(retry_at is null, null, 0)
     where kind = ? and key = ? and desired is not null`,
  );
  const countRefused = db.one<[], { n: number }>(`select count(*) n from problem where ${refused}`);
  return {
    /** Counts the records with a problem, by record type, class, and whether it is parked. */
    counts: db.all<[], ProblemCount>(
      `select kind, class, desired is not null parked, count(distinct key) n, min(since) since
       from problem where ${isHeard} group by kind, class, parked`,
    ),
    /** Returns up to `count` opt-outs that the platform rejected, oldest first. */
    refusedOptOuts: db.all<[count: number], RefusedOptOut>(
      `select ${refusedColumns} from problem
       where ${refused} order by since, key, part limit ?`,
    ),
    /** Counts the opt-outs that the platform rejected. */
    countRefusedOptOuts: () => countRefused()?.n ?? 0,
    /** Returns the conflicts that concern a whole part (a channel); the key is the part. */
    parts: db.all<[RecordTypeName], PartProblem>(
      `select part, reason, fix, since from problem
       where kind = ? and class = 'conflict' and key = part order by since, part`,
    ),
    /** Returns up to `count` conflicts of records, oldest first. */
    conflicts: db.all<[RecordTypeName, count: number], RecordConflict>(
      `select key, part, reason, fix, since from problem
       where kind = ? and class = 'conflict' and key <> part and ${isHeard}
       order by since, key, part limit ?`,
    ),
    /** Returns the records with a parked change that was released, or is due at `at` (epoch ms). */
    due: (kind: RecordTypeName, at: number) => due(kind, at).map(({ key }) => key),
    /** Returns the records with a parked problem. */
    records: db.all<[], Named>(
      'select distinct kind, key from problem where desired is not null order by kind, key',
    ),
    /**
     * Counts the problems of records in a range that this run's incremental reading does not
     * contain.
     */
    countUnread: (kind: RecordTypeName, range: KeyRange) =>
      unread({ kind, ...range }) ?? { conflicts: 0, invalid: 0, rejected: 0, refused: 0 },
    /** Returns up to 100 rejected opt-outs of such records, oldest first. */
    unreadOptOuts: db.all<[RecordTypeName], RefusedOptOut>(
      `select ${refusedColumns} from problem
       where kind = ? and ${refused} and not ${isNamed} order by since, key, part limit 100`,
    ),
    /**
     * Lets the next run send the parked changes of a record as if the record had changed. Until
     * then they remain known, with their `since`. Returns the number of changes.
     */
    release: ({ kind, key }: Named) => release(kind, key),
  };
}
