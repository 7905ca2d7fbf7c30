import { problemCountsIn } from './problem-groups.ts';
import { isNamed } from './retry-later.ts';
import { keptDecision } from './unmanaged-people.ts';
import { inRange, rangesBy, type KeyRange } from '../database/key-range.ts';
import type { Statements } from '../database/prepared-statements.ts';
import type { RecordProblem } from '../../domain/record-problem.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';

export interface Others {
  /** The keys to skip, because another run has taken over their records. */
  but: readonly Key[];
  /** Whether this run has read the whole source. */
  whole: boolean;
}

export interface Name extends Pick<RecordProblem, 'kind' | 'key' | 'class' | 'part'> {
  /**
   * The platform's id, if the problem concerns one of its records; '' means the same as undefined.
   */
  target?: string | undefined;
}

/** The stored state of a problem; times are in milliseconds since the epoch. */
export interface KnownProblem {
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
export interface Parked extends KnownProblem, RecordProblem {
  desired: string;
  /** The platform's id; '' if there is none. */
  target: string;
}

interface Stored {
  reason: string;
  desired: string | null;
  attempts: number;
  retry_at: number | null;
  since: number;
}

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
  const get = db.one<Name, Stored>(
    `select reason, desired, attempts, retry_at, since from problem
     where kind = @kind and key = @key and class = @class and part = @part and target = @target`,
  );
  const put = db.run<object>(
    `insert or replace into problem
       (kind, key, class, part, target, reason, fix, cause, about, option, value, place,
       crm, desired, attempts, retry_at, since, run)
     values (@kind, @key, @class, @part, @target, @reason, @fix, @cause, @about, @option, @value,
       @place, @crm, @desired, @attempts, @retryAt, @since, @run)`,
  );
  const adopt = db.run<object>(
    `insert into problem (kind, key, class, part, reason, fix, ${common}, since, run)
     select kind, key, class, part, reason, fix, ${common}, @at, @run from temp.noticed
     where ${inRange('noticed')} and not exists (
       select 1 from problem p where ${isNoticed('p', 'noticed')} and p.target = ''
         and p.reason = noticed.reason and p.fix = noticed.fix and p.cause = noticed.cause
         and p.value is noticed.value)
     on conflict (kind, key, class, part, target)
     do update set reason = excluded.reason, fix = excluded.fix, run = excluded.run,
       decided = ${keptDecision}, ${common
         .split(', ')
         .map((name) => `${name} = excluded.${name}`)
         .join(', ')}`,
  );
  const drop = db.run<object>(
    `delete from problem
     where kind = @kind and key = @key and part = @part and target = @target`,
  );
  const parked = db.all<
    [kind: string, key: string],
    RecordProblem & Stored & { desired: string; target: string }
  >('select * from problem where kind = ? and key = ? and desired is not null');
  const countParked = db.value<[kind: string], number>(
    'select count(distinct key) n from problem where kind = ? and desired is not null',
  );
  const unnoticed = `delete from problem where desired is null
    and not exists (select 1 from temp.noticed n where ${isNoticed('problem', 'n')})`;
  const others = `${inRange('problem')} and key not in (select value from json_each(@but))`;
  const forget = db.run<object>(`${unnoticed} and ${others}`);
  const forgetNamed = db.run<object>(`${unnoticed} and ${others} and ${isNamed}`);
  const forgetOne = db.run<object>(`${unnoticed} and kind = @kind and key = @only`);
  const unnamed = `delete from problem
     where kind = ? and desired <> '' and retry_at is null
       and key not in (select value from json_each(?)) and not exists (
         select 1 from temp.staged s where s.kind = problem.kind and s.key = problem.key)`;
  const dropUnnamed = db.run<[kind: string, but: string]>(unnamed);
  const dropLeft = db.run<[kind: string, but: string]>(
    `${unnamed} and exists (
       select 1 from twin t join temp.staged s on s.kind = t.kind and s.id = t.id
       where t.kind = problem.kind and t.key = problem.key)`,
  );
  const ranges = rangesBy(db, { column: 'key', of: ['problem'], where: 'kind = @kind' });
  return {
    /** Returns a problem, or undefined if it is not known. */
    get({ kind, key, class: name, part, target = '' }: Name): KnownProblem | undefined {
      const row = get({ kind, key, class: name, part, target });
      if (!row) return undefined;
      const { retry_at: retryAt, desired, ...rest } = row;
      return { ...rest, desired: desired ?? undefined, retryAt: retryAt ?? undefined };
    },
    /** Stores a problem that `run` found, replacing an earlier one with the same identity. */
    put: (problem: RecordProblem & Name & KnownProblem & { run: string }) =>
      put({
        ...problem,
        ...problemColumns(problem),
        target: problem.target ?? '',
        desired: problem.desired ?? null,
        retryAt: problem.retryAt ?? null,
      }),
    /**
     * Stores the invalid records and conflicts that this run noticed in a range. `at` is the time
     * from which new ones are known, in milliseconds since the epoch.
     */
    adopt: (kind: RecordTypeName, { range, ...by }: { run: string; at: number; range: KeyRange }) =>
      adopt({ kind, ...by, ...range }),
    /** Deletes the problems, of every class, of a record's part or of one of its contacts. */
    drop: ({ kind, key, part, target = '' }: Omit<Name, 'class'>) =>
      drop({ kind, key, part, target }),
    /** Returns the parked problems of a record. */
    parked: (kind: RecordTypeName, key: Key): Parked[] =>
      parked(kind, key).map(({ retry_at: retryAt, ...row }) => ({
        ...row,
        retryAt: retryAt ?? undefined,
      })),
    /** Counts the records with a parked problem. */
    countParked: (kind: RecordTypeName) => countParked(kind) ?? 0,
    /** Yields the key ranges of the known problems. */
    ranges: (kind: RecordTypeName) => ranges({ kind }),
    /**
     * Deletes the problems that this run did not notice and that are not parked: those of one
     * record, or of a range without the keys in `but`. After an incremental reading it deletes only
     * problems of records that the reading contains.
     */
    forgetUnnoticed(kind: RecordTypeName, which: Key | (Others & { range: KeyRange })): void {
      if (typeof which === 'string') forgetOne({ kind, only: which });
      else {
        const { range, whole } = which;
        (whole ? forget : forgetNamed)({ kind, ...range, but: JSON.stringify(which.but) });
      }
    },
    /**
     * Deletes the parked problems of records that are no longer in the source, except the keys in
     * `but`. Rejected changes that the absence itself caused are kept, and so are opt-outs, which
     * only a decision deletes. After an incremental reading it deletes only those of former keys of
     * records that the reading has under another key.
     */
    dropUnnamed: (kind: RecordTypeName, { but, whole }: Others) =>
      (whole ? dropUnnamed : dropLeft)(kind, JSON.stringify(but)),
    /** The problems, counted by what they have in common. */
    counted: problemCountsIn(db),
  };
}
