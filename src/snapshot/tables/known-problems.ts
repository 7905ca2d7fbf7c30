import { isNamed } from './retry-later.ts';
import { inRange, rangesBy, type KeyRange } from '../database/key-range.ts';
import type { Statements } from '../database/prepared-statements.ts';
import type { RecordProblem } from '../../domain/record-problem.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';

/**
 * Problems that are known, so that each is listed once and counted always. One that the platform
 * refused is parked: `desired` names what was wanted when it did, and the change is not tried again
 * until that changes; only an opt-out is, from `retryAt` on. All others have no `desired`, and are
 * forgotten by the first run that does not notice them any more.
 */
export interface Problems {
  get(problem: Name): KnownProblem | undefined;
  put(problem: RecordProblem & Name & KnownProblem & { run: string }): void;
  /**
   * Takes over what this run noticed (invalid records and conflicts) and forgets what it did not:
   * of one record, or of all of a range (of a reading that is not whole: those it names) but those
   * that another run was at meanwhile.
   */
  adopt(kind: RecordTypeName, by: { run: string; at: number; range: KeyRange }): void;
  forgetUnnoticed(kind: RecordTypeName, which: Key | (Others & { range: KeyRange })): void;
  /** All that are known, by the keys. */
  ranges(kind: RecordTypeName): Iterable<KeyRange>;
  parked(kind: RecordTypeName, key: Key): Parked[];
  countParked(kind: RecordTypeName): number;
  drop(problem: Omit<Name, 'class'>): void;
  /**
   * Forgets what is parked of records that the source, read wholly, no longer names; what was
   * refused about them for that very absence stays, and an opt-out is forgotten only when it is
   * decided that it is wanted no more. Not of those that another run was at meanwhile. Where only
   * some was read: of the names that its records had before, and nobody has now.
   */
  dropUnnamed(kind: RecordTypeName, which: Others): void;
}

interface Others {
  but: readonly Key[];
  whole: boolean;
}

interface Name extends Pick<RecordProblem, 'kind' | 'key' | 'class' | 'part'> {
  /** The platform's id, where it concerns one of its records; '' is the same as none. */
  target?: string | undefined;
}

export interface KnownProblem {
  reason: string;
  desired: string | undefined;
  attempts: number;
  /** Milliseconds since the epoch. */
  retryAt: number | undefined;
  since: number;
}

export interface Parked extends KnownProblem, RecordProblem {
  desired: string;
  target: string;
}

interface Stored {
  reason: string;
  desired: string | null;
  attempts: number;
  retry_at: number | null;
  since: number;
}

export function problemsIn(db: Statements): Problems {
  const get = db.prepare<Name, Stored>(
    `select reason, desired, attempts, retry_at, since from problem
     where kind = @kind and key = @key and class = @class and part = @part and target = @target`,
  );
  const put = db.prepare(
    `insert or replace into problem
       (kind, key, class, part, target, reason, fix, desired, attempts, retry_at, since, run)
     values (@kind, @key, @class, @part, @target, @reason, @fix,
       @desired, @attempts, @retryAt, @since, @run)`,
  );
  const adopt = db.prepare(
    `insert into problem (kind, key, class, part, reason, fix, since, run)
     select kind, key, class, part, reason, fix, @at, @run from temp.noticed
     where ${inRange('noticed')} and not exists (
       select 1 from problem p where ${isNoticed('p', 'noticed')} and p.target = ''
         and p.reason = noticed.reason and p.fix = noticed.fix)
     on conflict (kind, key, class, part, target)
     do update set reason = excluded.reason, fix = excluded.fix, run = excluded.run`,
  );
  const drop = db.prepare(
    `delete from problem
     where kind = @kind and key = @key and part = @part and target = @target`,
  );
  const parked = db.prepare<
    [string, string],
    RecordProblem & Stored & { desired: string; target: string }
  >('select * from problem where kind = ? and key = ? and desired is not null');
  const countParked = db.prepare<[string], { n: number }>(
    'select count(distinct key) n from problem where kind = ? and desired is not null',
  );
  return {
    get: ({ kind, key, class: name, part, target = '' }) => {
      const row = get.get({ kind, key, class: name, part, target });
      if (!row) return undefined;
      const { retry_at: retryAt, desired, ...rest } = row;
      return { ...rest, desired: desired ?? undefined, retryAt: retryAt ?? undefined };
    },
    put: (problem) =>
      void put.run({
        ...problem,
        target: problem.target ?? '',
        desired: problem.desired ?? null,
        retryAt: problem.retryAt ?? null,
      }),
    adopt: (kind, { range, ...by }) => void adopt.run({ kind, ...by, ...range }),
    parked: (kind, key) =>
      parked
        .all(kind, key)
        .map(({ retry_at: retryAt, ...row }) => ({ ...row, retryAt: retryAt ?? undefined })),
    countParked: (kind) => countParked.get(kind)?.n ?? 0,
    drop: ({ kind, key, part, target = '' }) => void drop.run({ kind, key, part, target }),
    ...forgettingIn(db),
  };
}

/** That a problem, and what was noticed, are the same. */
function isNoticed(problem: string, noticed: string): string {
  const columns = ['kind', 'key', 'class', 'part'];
  return columns.map((name) => `${problem}.${name} = ${noticed}.${name}`).join(' and ');
}

function forgettingIn(
  db: Statements,
): Pick<Problems, 'forgetUnnoticed' | 'dropUnnamed' | 'ranges'> {
  const unnoticed = `delete from problem where desired is null
    and not exists (select 1 from temp.noticed n where ${isNoticed('problem', 'n')})`;
  const others = `${inRange('problem')} and key not in (select value from json_each(@but))`;
  const forget = db.prepare(`${unnoticed} and ${others}`);
  const forgetNamed = db.prepare(`${unnoticed} and ${others} and ${isNamed}`);
  const forgetOne = db.prepare(`${unnoticed} and kind = @kind and key = @only`);
  const unnamed = `delete from problem
     where kind = ? and desired <> '' and retry_at is null
       and key not in (select value from json_each(?)) and not exists (
         select 1 from temp.staged s where s.kind = problem.kind and s.key = problem.key)`;
  const dropUnnamed = db.prepare(unnamed);
  const dropLeft = db.prepare(
    `${unnamed} and exists (
       select 1 from twin t join temp.staged s on s.kind = t.kind and s.id = t.id
       where t.kind = problem.kind and t.key = problem.key)`,
  );
  const ranges = rangesBy(db, { column: 'key', of: ['problem'], where: 'kind = @kind' });
  return {
    ranges: (kind) => ranges({ kind }),
    forgetUnnoticed(kind, which) {
      if (typeof which === 'string') forgetOne.run({ kind, only: which });
      else {
        const { range, whole } = which;
        (whole ? forget : forgetNamed).run({ kind, ...range, but: JSON.stringify(which.but) });
      }
    },
    dropUnnamed(kind, { but, whole }) {
      (whole ? dropUnnamed : dropLeft).run(kind, JSON.stringify(but));
    },
  };
}
