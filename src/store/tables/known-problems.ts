/**
 * The known problems: of records that cannot be used, conflicts, and changes that the platform
 * rejected and that are stored for a later retry (parked). Below is how they are counted by what
 * they have in common, and how parked ones are listed and released.
 */
import { type Statements, withoutNull } from '../database/prepared-statements.ts';
import { inRange, type RecordName, type RecordRange } from '../database/key-range.ts';
import type { ProblemCause } from '../../domain/problem-causes.ts';
import type { ProblemClass, RecordProblem } from '../../domain/record-problem.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';
import { storedJson } from '../../domain/stored-json.ts';
import { isHeard, isNoticedHeard, keptDecision } from './unmanaged-people.ts';

interface Others {
  /** The keys to skip, because another run has taken over their records. */
  but: readonly Key[];
}

interface Name extends Pick<RecordProblem, 'kind' | 'key' | 'class' | 'part'> {
  /**
   * The platform's id, if the problem concerns one of its records; '' means the same as undefined.
   */
  target?: string | undefined;
}

/** The stored state of a problem; times are in milliseconds since the epoch. */
interface KnownProblem {
  reason: string;
  /**
   * The desired fingerprint of the record when the platform rejected the change ('' if the record
   * was missing from the source), or 'released' after a release; undefined if the problem is not
   * parked.
   */
  desired: string | undefined;
  /** The number of times that the change was rejected. */
  attempts: number;
  /** When a rejected opt-out is due again; undefined for all other problems. */
  retryAt: number | undefined;
  since: number;
}

/** A rejected change that is retried later. */
interface Parked extends KnownProblem, RecordProblem {
  desired: string;
  /** The platform's id; '' if there is none. */
  target: string;
}

/** The number of problems of each kind. */
interface UnreadCounts {
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

/** The number of records with problems, for one record type and class. */
interface ProblemCount extends Pick<RecordProblem, 'kind' | 'class'> {
  parked: 0 | 1;
  n: number;
  /** When the oldest problem became known, in milliseconds since the epoch. */
  since: number;
}

/** An opt-out that the platform rejected; times are in milliseconds since the epoch. */
interface RefusedOptOut extends Pick<RecordProblem, 'kind' | 'key' | 'part' | 'reason' | 'fix'> {
  /** The number of rejections; 0 after a release. */
  attempts: number;
  retryAt: number;
  since: number;
}

/** A conflict that concerns a whole part; `since` is in milliseconds since the epoch. */
interface PartProblem extends Pick<RecordProblem, 'part' | 'reason' | 'fix'> {
  since: number;
}

/** A conflict of one record; `since` is in milliseconds since the epoch. */
interface RecordConflict extends PartProblem {
  key: Key;
}

const samples = storedJson<CountedProblem['samples']>('a list of problems');

interface Common {
  class: ProblemClass;
  cause: ProblemCause;
  about: string;
  option: string | null;
  value: string | null;
  fix: string;
}

/** The number of records with the same problem. */
export interface CountedProblem extends Common {
  n: number;
  /** Up to three of the records. */
  samples: { key: Key; place: string | null }[];
}

/** A known problem of one record; `since` is in milliseconds since the epoch. */
export interface StoredProblem extends Common {
  key: Key;
  part: string;
  reason: string;
  place: string | null;
  crmId: string | null;
  since: number;
}

/** The value of `desired` after a release, which never equals a fingerprint. */
const released = 'released';

/** Selects the problems of records that this run's reading contains, found by key or only by id. */
export const isNamed = `(
  exists (select 1 from temp.staged s where s.kind = problem.kind and s.key = problem.key)
  or problem.key like 'id %' and exists (
    select 1 from temp.strange s
    where s.kind = problem.kind and s.id = substr(problem.key, 4)))`;

/** The columns by which problems are grouped, and the place and id of the record. */
const common = 'cause, about, option, value, place, crm';

/** Returns the columns of a problem, with null for what it lacks. */
export function problemColumns(problem: RecordProblem) {
  const { kind, key, class: name, part, reason, fix, cause } = problem;
  const { about = reason, option = null, value = null, place = null, crmId: crm = null } = problem;
  return { kind, key, class: name, part, reason, fix, cause, about, option, value, place, crm };
}

/** Returns an SQL condition: a known problem and a noticed one are the same. */
function isNoticed(problem: string, noticed: string): string {
  const columns = ['kind', 'key', 'class', 'part'];
  return columns.map((name) => `${problem}.${name} = ${noticed}.${name}`).join(' and ');
}

/**
 * Stores the known problems, so that each is listed once and counted in every run. A change that
 * the platform rejected is stored for a later retry (parked): it is not sent again until the
 * desired fingerprint of its record differs from `desired`. Only an opt-out is sent again without
 * that, from `retryAt` on. All other problems have no `desired`; they are deleted by the first run
 * that does not find them again.
 */
export function problemsIn(db: Statements) {
  const unnoticed = `delete from problem where desired is null
    and not exists (select 1 from temp.noticed n where ${isNoticed('problem', 'n')})`;
  const others = `${inRange('problem')} and key not in (select value from json_each(@but))`;
  const unnamed = `delete from problem
    where kind = @kind and desired <> '' and retry_at is null
      and key not in (select value from json_each(@but)) and not exists (
        select 1 from temp.staged s where s.kind = problem.kind and s.key = problem.key)`;
  const put = db.run<
    ReturnType<typeof problemColumns> & { target: string } & Omit<KnownProblem, 'reason'> & {
        run: string;
      }
  >(
    `insert or replace into problem
       (kind, key, class, part, target, reason, fix, cause, about, option, value, place,
       crm, desired, attempts, retry_at, since, run)
     values (@kind, @key, @class, @part, @target, @reason, @fix, @cause, @about, @option, @value,
       @place, @crm, @desired, @attempts, @retryAt, @since, @run)`,
  );
  const get = db.one<Name, KnownProblem>(
    `select reason, desired, attempts, retry_at "retryAt", since from problem
     where kind = @kind and key = @key and class = @class and part = @part and target = @target`,
    withoutNull,
  );
  const drop = db.run<Omit<Name, 'class'>>(
    `delete from problem
     where kind = @kind and key = @key and part = @part and target = @target`,
  );
  return {
    /** Returns a problem, or undefined if it is not known. */
    get: ({ target = '', ...name }: Name) => get({ ...name, target }),
    /** Stores a problem that `run` found, replacing an earlier one with the same identity. */
    put: (problem: RecordProblem & Name & KnownProblem & { run: string }) =>
      put({ ...problem, ...problemColumns(problem), target: problem.target ?? '' }),
    /**
     * Stores the invalid records and conflicts that `run` noticed in a range. `at` is the time from
     * which new ones are known, in milliseconds since the epoch.
     */
    adopt: db.run<RecordRange & { run: string; at: number }>(
      `insert into problem (kind, key, class, part, reason, fix, ${common}, since, run)
       select kind, key, class, part, reason, fix, ${common}, @at, @run from temp.noticed
       where ${inRange('noticed')} and not exists (
         select 1 from problem p where ${isNoticed('p', 'noticed')} and p.target = ''
           and p.reason = noticed.reason and p.fix = noticed.fix and p.cause = noticed.cause
           and p.value is noticed.value)
       on conflict (kind, key, class, part, target)
       do update set reason = excluded.reason, fix = excluded.fix, run = excluded.run,
         decided = ${keptDecision}, ${common.replaceAll(/\w+/g, '$& = excluded.$&')}`,
    ),
    /** Deletes the problems, of every class, of a record's part or of one of its contacts. */
    drop: ({ target = '', ...name }: Omit<Name, 'class'>) => drop({ ...name, target }),
    /** Returns the parked problems of a record. */
    parked: db.all<[RecordTypeName, Key], Parked>(
      `select kind, key, class, part, target, reason, fix, ${common}, desired, attempts,
         retry_at "retryAt", since
       from problem where kind = ? and key = ? and desired is not null`,
      withoutNull,
    ),
    /** Counts the records with a parked problem. */
    countParked: db.number<[RecordTypeName]>(
      'select count(distinct key) from problem where kind = ? and desired is not null',
    ),
    /** Deletes the problems of a range that this run did not notice and that are not parked. */
    forgetUnnoticed: db.run<RecordRange & Others>(`${unnoticed} and ${others}`),
    /** Deletes those of them whose records are in this run's incremental reading. */
    forgetUnnoticedNamed: db.run<RecordRange & Others>(`${unnoticed} and ${others} and ${isNamed}`),
    /** Deletes those of one record. */
    forgetUnnoticedOf: db.run<RecordName>(`${unnoticed} and kind = @kind and key = @key`),
    /**
     * Deletes the parked problems of records that are no longer in the source. Rejected changes
     * that the absence itself caused are kept, and so are opt-outs, which only a decision deletes.
     */
    dropUnnamed: db.run<Others & { kind: RecordTypeName }>(unnamed),
    /**
     * Deletes, after an incremental reading, only those of former keys of records that the reading
     * has under another key.
     */
    dropRenamed: db.run<Others & { kind: RecordTypeName }>(
      `${unnamed} and exists (
         select 1 from twin t join temp.staged s on s.kind = t.kind and s.id = t.id
         where t.kind = problem.kind and t.key = problem.key)`,
    ),
    /** The problems, counted by what they have in common. */
    counted: problemCountsIn(db),
  };
}

/**
 * Counts problems by what they have in common, without those that an operator has acknowledged. All
 * problems of a record are in the same range.
 */
function problemCountsIn(db: Statements) {
  const within = inRange('problem');
  const counting = <Where extends object = RecordRange>(table: string, where: string) =>
    db.all<Where, CountedProblem, Omit<CountedProblem, 'samples'> & { samples: string }>(
      countedBy(table, where),
      (row) => ({ ...row, samples: samples.decode(row.samples) }),
    );
  const listed = `select key, class, part, reason, fix, cause, about, option, value, place,
    crm "crmId", since from problem`;
  const order = 'order by key, class, part';
  return {
    /** Counts what this run noticed. */
    noticed: counting('temp.noticed', `${inRange('noticed')} and ${isNoticedHeard}`),
    /** Counts the changes that the platform refused before, of all records or of one. */
    parked: counting('problem', `${within} and desired is not null`),
    parkedOf: counting<RecordName>(
      'problem',
      'kind = @kind and key = @key and desired is not null',
    ),
    /** Counts the other known problems of records that an incremental reading does not contain. */
    unread: counting(
      'problem',
      `${within} and desired is null and not ${isNamed} and ${isHeard}
         and (class = 'invalid' or class = 'conflict' and key <> part)`,
    ),
    /** Counts all known problems. */
    known: counting('problem', `${within} and ${isHeard}`),
    /** Returns the known problems of a range, by key. */
    list: db.all<RecordRange, StoredProblem>(`${listed} where ${within} and ${isHeard} ${order}`),
    /** Returns those of one record, with the acknowledged. */
    listOf: db.all<[RecordTypeName, Key], StoredProblem>(
      `${listed} where kind = ? and key = ? ${order}`,
    ),
  };
}

/** Selects the counts. A record counts once, even if several of its channels have the problem. */
function countedBy(table: string, where: string): string {
  const common = 'class, cause, about, option, value';
  return `
    select ${common}, min(fix) fix, count(*) n,
      json_group_array(json_object('key', key, 'place', place)) filter (where nth <= 3) samples
    from (
      select ${common}, key, min(place) place, min(fix) fix,
        row_number() over (partition by ${common} order by length(place), place, key) nth
      from ${table} where ${where} group by key, ${common})
    group by ${common}`;
}

const refused = 'desired is not null and retry_at is not null';
const refusedColumns = 'kind, key, part, reason, fix, attempts, retry_at retryAt, since';

/** Counts and lists the known problems of all records, and releases the parked ones. */
export function retryLaterIn(db: Statements) {
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
    countRefusedOptOuts: db.number<[]>(`select count(*) from problem where ${refused}`),
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
    due: db.values<[RecordTypeName, at: number], Key>(
      `select distinct key from problem
       where kind = ? and desired is not null and (retry_at <= ? or desired = '${released}')`,
    ),
    /** Returns the records with a parked problem. */
    records: db.all<[], RecordName>(
      'select distinct kind, key from problem where desired is not null order by kind, key',
    ),
    /**
     * Counts the problems of records in a range that this run's incremental reading does not
     * contain.
     */
    countUnread: db.only<RecordRange, UnreadCounts>(
      `select coalesce(sum(class = 'conflict' and key <> part), 0) conflicts,
         coalesce(sum(class = 'invalid'), 0) invalid,
         coalesce(sum(desired is not null and retry_at is null), 0) rejected,
         coalesce(sum(${refused}), 0) refused
       from problem where ${inRange('problem')} and ${isHeard} and not ${isNamed}`,
    ),
    /** Returns up to 100 rejected opt-outs of such records, oldest first. */
    unreadOptOuts: db.all<[RecordTypeName], RefusedOptOut>(
      `select ${refusedColumns} from problem
       where kind = ? and ${refused} and not ${isNamed} order by since, key, part limit 100`,
    ),
    /**
     * Lets the next run send the parked changes of a record as if the record had changed. Until
     * then they remain known, with their `since`. Returns the number of changes.
     */
    release: db.run<RecordName>(
      `update problem set desired = '${released}', attempts = 0,
         retry_at = iif(retry_at is null, null, 0)
       where kind = @kind and key = @key and desired is not null`,
    ),
  };
}
