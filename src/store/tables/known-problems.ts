/**
 * The known problems: of records that cannot be used, conflicts, and changes that the platform
 * rejected and that are stored for a later retry (parked).
 */
import { type Statements, withoutNull } from '../database/prepared-statements.ts';
import { inRange, type RecordName, type RecordRange } from '../database/key-range.ts';
import type { ProblemCause } from '../../domain/problem-causes.ts';
import type { ProblemClass, RecordProblem } from '../../domain/record-problem.ts';
import type { DesiredRow, Key, RecordTypeName } from '../../domain/record.ts';
import { storedJson } from '../../domain/stored-json.ts';
import { unmanagedCauses, type UnmanagedCause } from '../../domain/unmanaged-people.ts';

/** `but`: the keys to skip, because another run has taken over their records. */
interface Others {
  but: readonly Key[];
}

interface Place extends RecordName {
  part: string;
  /** The platform's id, if the problem concerns one of its records; '' means none, too. */
  target?: string | undefined;
}

interface Name extends Place {
  class: ProblemClass;
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
  attempts: number;
  /** When a rejected opt-out is due again; undefined for all other problems. */
  retryAt: number | undefined;
  since: number;
}

interface Parked extends KnownProblem, RecordProblem {
  desired: string;
  /** The platform's id; '' if there is none. */
  target: string;
}

/** The problems of records that an incremental reading does not contain. */
export interface Unread {
  conflicts: number;
  invalid: number;
  /** Rejected changes other than opt-outs, and rejected opt-outs. */
  rejected: number;
  refused: number;
  optOuts: RefusedOptOut[];
  /** The oldest opt-outs that may be waiting, because they cannot be read. */
  unreadable: UnreadableOptOut[];
}

/** An opt-out that the platform rejected; times are in milliseconds since the epoch. */
interface RefusedOptOut extends UnreadableOptOut {
  part: string;
  /** The number of rejections; 0 after a release. */
  attempts: number;
  retryAt: number;
}

interface Conflict {
  part: string;
  reason: string;
  fix: string;
  since: number;
}

interface Common {
  class: ProblemClass;
  cause: ProblemCause;
  about: string;
  option: string | null;
  value: string | null;
  fix: string;
}

/** The number of records with the same problem, and up to three of them. */
export interface CountedProblem extends Common {
  n: number;
  samples: { key: Key; place: string | null }[];
}

export interface StoredProblem extends Common {
  key: Key;
  part: string;
  reason: string;
  place: string | null;
  crmId: string | null;
  since: number;
}

const samples = storedJson<CountedProblem['samples']>('a list of problems');

/** The value of `desired` after a release, which never equals a fingerprint. */
const released = 'released';

/** Selects the problems of records that this run's reading contains, found by key or only by id. */
const isNamed = `(
  exists (select 1 from temp.staged s where s.kind = problem.kind and s.key = problem.key)
  or problem.key like 'id %' and exists (
    select 1 from temp.strange s
    where s.kind = problem.kind and s.id = substr(problem.key, 4)))`;

const inSql = (these: readonly (readonly [cause: string, object])[]): string =>
  `(${these.map(([cause]) => `'${cause}'`).join(', ')})`;
const unmanaged = Object.entries(unmanagedCauses);
const causes = inSql(unmanaged);
const protectedCauses = inSql(unmanaged.filter(([, { isProtected }]) => isProtected));

/** An SQL condition: nobody has acknowledged the problem. */
const isHeard = "decided is not 'acknowledged'";

/** The same of what a run has noticed. */
export const isNoticedHeard = `(cause not in ${causes} or not exists (
  select 1 from problem p where p.kind = noticed.kind and p.key = noticed.key
    and p.class = noticed.class and p.part = noticed.part and p.decided = 'acknowledged'))`;

/** An SQL expression: what stays of the decision when a run notices the problem again. */
const keptDecision = `case
  when excluded.cause not in ${causes} then null
  when excluded.cause in ${protectedCauses} and problem.decided = 'opt_out' then null
  else problem.decided end`;

/** The columns by which problems are grouped, and the place and id of the record. */
const common = 'cause, about, option, value, place, crm';
/** The columns of a problem that a run notices. */
export const noticedColumns = `kind, key, class, part, reason, fix, ${common}`;
export const noticedValues = noticedColumns.replaceAll(/\w+/g, '@$&');

/** The columns of a problem; a part that it lacks is null. */
export function problemColumns(problem: RecordProblem) {
  const { kind, key, class: name, part, reason, fix, cause } = problem;
  const { about = reason, option = null, value = null, place = null, crmId: crm = null } = problem;
  return { kind, key, class: name, part, reason, fix, cause, about, option, value, place, crm };
}

const isNoticed = (problem: string, noticed: string): string =>
  ['kind', 'key', 'class', 'part']
    .map((name) => `${problem}.${name} = ${noticed}.${name}`)
    .join(' and ');

/**
 * Stores the known problems, so that each is listed once and counted in every run. A parked change
 * is not sent again until the desired fingerprint of its record differs from `desired`; an opt-out
 * also from `retryAt` on. All other problems have no `desired`, and are deleted by the first run
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
    ReturnType<typeof problemColumns> & KnownProblem & { target: string; run: string }
  >(
    `insert or replace into problem
       (${noticedColumns}, target, desired, attempts, retry_at, since, run)
     values (${noticedValues}, @target, @desired, @attempts, @retryAt, @since, @run)`,
  );
  const get = db.one<Name, KnownProblem>(
    `select reason, desired, attempts, retry_at "retryAt", since from problem
     where kind = @kind and key = @key and class = @class and part = @part and target = @target`,
    withoutNull,
  );
  const drop = db.run<Place>(
    `delete from problem
     where kind = @kind and key = @key and part = @part and target = @target`,
  );
  return {
    get: ({ target = '', ...name }: Name) => get({ ...name, target }),
    put: (problem: RecordProblem & Name & KnownProblem & { run: string }) =>
      put({ ...problem, ...problemColumns(problem), target: problem.target ?? '' }),
    /** Stores the invalid records and conflicts that `run` noticed in a range. */
    adopt: db.run<RecordRange & { run: string; at: number }>(
      `insert into problem (${noticedColumns}, since, run)
       select ${noticedColumns}, @at, @run from temp.noticed
       where ${inRange('noticed')} and not exists (
         select 1 from problem p where ${isNoticed('p', 'noticed')} and p.target = ''
           and p.reason = noticed.reason and p.fix = noticed.fix and p.cause = noticed.cause
           and p.value is noticed.value)
       on conflict (kind, key, class, part, target)
       do update set reason = excluded.reason, fix = excluded.fix, run = excluded.run,
         decided = ${keptDecision}, ${common.replaceAll(/\w+/g, '$& = excluded.$&')}`,
    ),
    /** Deletes the problems, of every class, of a record's part or of one of its contacts. */
    drop: ({ target = '', ...name }: Place) => drop({ ...name, target }),
    parked: db.all<[RecordTypeName, Key], Parked>(
      `select ${noticedColumns}, target, desired, attempts, retry_at "retryAt", since
       from problem where kind = ? and key = ? and desired is not null`,
      withoutNull,
    ),
    countParked: db.number<[RecordTypeName]>(
      'select count(distinct key) from problem where kind = ? and desired is not null',
    ),
    /** Those of a range that this run did not notice and that are not parked. */
    forgetUnnoticed: db.run<RecordRange & Others>(`${unnoticed} and ${others}`),
    /** Those of them whose records are in this run's incremental reading. */
    forgetUnnoticedNamed: db.run<RecordRange & Others>(`${unnoticed} and ${others} and ${isNamed}`),
    forgetUnnoticedOf: db.run<RecordName>(`${unnoticed} and kind = @kind and key = @key`),
    /**
     * The parked problems of records that are no longer in the source; not changes that the absence
     * itself caused, nor opt-outs, which only a decision deletes.
     */
    dropUnnamed: db.run<Others & { kind: RecordTypeName }>(unnamed),
    /** Of these, only former keys of records that the reading has under another key. */
    dropRenamed: db.run<Others & { kind: RecordTypeName }>(
      `${unnamed} and exists (
         select 1 from twin t join temp.staged s on s.kind = t.kind and s.id = t.id
         where t.kind = problem.kind and t.key = problem.key)`,
    ),
    counted: problemCountsIn(db),
  };
}

/**
 * Counts problems by what they have in common, without those that an operator has acknowledged. A
 * record counts once, even if several of its channels have the problem.
 */
function problemCountsIn(db: Statements) {
  const within = inRange('problem');
  const same = 'class, cause, about, option, value';
  const counting = <Where extends object = RecordRange>(table: string, where: string) =>
    db.all<Where, CountedProblem, Omit<CountedProblem, 'samples'> & { samples: string }>(
      `select ${same}, min(fix) fix, count(*) n,
         json_group_array(json_object('key', key, 'place', place)) filter (where nth <= 3) samples
       from (
         select ${same}, key, min(place) place, min(fix) fix,
           row_number() over (partition by ${same} order by length(place), place, key) nth
         from ${table} where ${where} group by key, ${same})
       group by ${same}`,
      (row) => ({ ...row, samples: samples.decode(row.samples) }),
    );
  const listed = `select kind, key, class, part, reason, fix, cause, about, option, value, place,
    crm "crmId", since from problem`;
  const order = 'order by key, class, part';
  return {
    noticed: counting('temp.noticed', `${inRange('noticed')} and ${isNoticedHeard}`),
    parked: counting('problem', `${within} and desired is not null`),
    parkedOf: counting<RecordName>(
      'problem',
      'kind = @kind and key = @key and desired is not null',
    ),
    /** Those that are not parked, of records that an incremental reading does not contain. */
    unread: counting(
      'problem',
      `${within} and desired is null and not ${isNamed} and ${isHeard}
         and (class = 'invalid' or class = 'conflict' and key <> part)`,
    ),
    known: counting('problem', `${within} and ${isHeard}`),
    list: db.all<RecordRange, StoredProblem>(`${listed} where ${within} and ${isHeard} ${order}`),
    /** Those that a run was the first to find, since a time (epoch ms). */
    listNew: db.all<
      [run: string, since: number, count: number],
      StoredProblem & { kind: RecordTypeName }
    >(`${listed} where run = ? and since >= ? and class <> 'held' and ${isHeard} ${order} limit ?`),
    /** With the acknowledged. */
    listOf: db.all<[RecordTypeName, Key], StoredProblem>(
      `${listed} where kind = ? and key = ? ${order}`,
    ),
  };
}

const refused = 'desired is not null and retry_at is not null';
const refusedColumns = 'kind, key, part, reason, fix, attempts, retry_at retryAt, since';

/** Counts and lists the known problems of all records, and releases the parked ones. */
export function retryLaterIn(db: Statements) {
  return {
    /** Counts the records with a problem. */
    counts: db.all<
      [],
      { kind: RecordTypeName; class: ProblemClass; parked: 0 | 1; n: number; since: number }
    >(
      `select kind, class, desired is not null parked, count(distinct key) n, min(since) since
       from problem where ${isHeard} group by kind, class, parked`,
    ),
    refusedOptOuts: db.all<[count: number], RefusedOptOut>(
      `select ${refusedColumns} from problem
       where ${refused} order by since, key, part limit ?`,
    ),
    countRefusedOptOuts: db.number<[]>(`select count(*) from problem where ${refused}`),
    /** Counts the records with a problem that is new since a time (epoch ms), by its run. */
    since: db.all<[since: number], { run: string; at: number; n: number }>(
      `select run, max(since) at, count(distinct key) n from problem
       where since >= ? and class <> 'held' and ${isHeard} group by run`,
    ),
    /** The conflicts that concern a whole part (a channel); the key is the part. */
    parts: db.all<[RecordTypeName], Conflict>(
      `select part, reason, fix, since from problem
       where kind = ? and class = 'conflict' and key = part order by since, part`,
    ),
    conflicts: db.all<[RecordTypeName, count: number], Conflict & { key: Key }>(
      `select key, part, reason, fix, since from problem
       where kind = ? and class = 'conflict' and key <> part and ${isHeard}
       order by since, key, part limit ?`,
    ),
    /** The records with a parked change that was released, or is due at `at` (epoch ms). */
    due: db.values<[RecordTypeName, at: number], Key>(
      `select distinct key from problem
       where kind = ? and desired is not null and (retry_at <= ? or desired = '${released}')`,
    ),
    records: db.all<[], RecordName>(
      'select distinct kind, key from problem where desired is not null order by kind, key',
    ),
    countUnread: db.only<RecordRange, Omit<Unread, 'optOuts' | 'unreadable'>>(
      `select coalesce(sum(class = 'conflict' and key <> part), 0) conflicts,
         coalesce(sum(class = 'invalid'), 0) invalid,
         coalesce(sum(desired is not null and retry_at is null), 0) rejected,
         coalesce(sum(${refused}), 0) refused
       from problem where ${inRange('problem')} and ${isHeard} and not ${isNamed}`,
    ),
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

type UnmanagedDecision = 'opt_out' | 'acknowledged';

export interface UnmanagedPart {
  key: Key;
  part: string;
  cause: UnmanagedCause;
  decided: UnmanagedDecision | null;
}

/**
 * The problems of people who are gone from the CRM and subscribed with a contact that is not ours,
 * and what an operator decided about each. A later decision replaces an earlier one. A decision
 * ends with its problem: when the person is opted out, or is in the CRM again. A decision to opt
 * out also ends when contacts.protect covers the person.
 */
export function unmanagedIn(db: Statements) {
  return {
    list: db.all<[RecordTypeName], UnmanagedPart>(
      `select key, part, cause, decided from problem
       where kind = ? and cause in ${causes} order by key, part`,
    ),
    counts: db.all<[RecordTypeName], { cause: UnmanagedCause; count: number }>(
      `select cause, count(distinct key) count from problem
       where kind = ? and cause in ${causes} and ${isHeard} group by cause`,
    ),
    decided: db.values<[RecordTypeName, Key, as: UnmanagedDecision], string>(
      `select part from problem
       where kind = ? and key = ? and cause in ${causes} and decided = ?`,
    ),
    /** Stores a decision, or takes it back (null). `fix`: what remains to be done. */
    decide: db.run<RecordName & { part: string; as: UnmanagedDecision | null; fix: string }>(
      `update problem set decided = @as, fix = @fix
       where kind = @kind and key = @key and part = @part and cause in ${causes}`,
    ),
    /**
     * Notices again those who are still gone from the CRM, and whom this run did not look for on
     * the platform.
     */
    carry: db.run<[RecordTypeName]>(
      `insert or ignore into temp.noticed (${noticedColumns})
       select ${noticedColumns} from problem p where kind = ? and cause in ${causes}
         and not exists (select 1 from temp.observed o where o.kind = p.kind and o.key = p.key)
         and exists (select 1 from temp.staged s where s.kind = p.kind and s.key = p.key)
         and not exists (select 1 from temp.desired d where d.kind = p.kind and d.key = p.key
           and (d.presence = 'present' or d.reason is not null))`,
    ),
    mend: db.run<[RecordTypeName, Key, part: string]>(
      `delete from temp.noticed where kind = ? and key = ? and part = ? and cause in ${causes}`,
    ),
  };
}

/** An opt-out that may be waiting; `since` is in milliseconds since the epoch. */
interface UnreadableOptOut extends RecordName {
  reason: string;
  fix: string;
  since: number;
}

const unreadable: ProblemCause = 'opt-out-unreadable';

/**
 * Selects the people of `r` who are ours and subscribed, and have a contact that has not left all
 * mail; `body` is what is known of them.
 */
const isOurs = (body: string, channel = 'true'): string =>
  `r.ownership <> 'noted' and r.id is not null
   and exists (
     select 1 from json_each(${body}, '$.channels') c where c.value ->> 'is' = 'opt_in' and ${channel})
   and (${body} ->> '$.contacts[0]' is null or exists (
     select 1 from json_each(${body}, '$.contacts') c where not (c.value ->> 'left')))`;

/** Selects the keys under which a person may be recorded. */
const keysOf = (kind: string, key: string, id: string): string =>
  `select ${key} union select o.key from origin o where o.kind = ${kind} and o.id = ${id}`;

/**
 * Finds the people who are still subscribed through this mirror, and whose CRM record may state an
 * opt-out that cannot be read; and the records with an opt-out whose address cannot be read.
 */
export function unreadableOptOutsIn(db: Statements) {
  const noted = `coalesce(
    (select n.body from temp.noted n where n.kind = r.kind and n.key = r.key), r.body)`;
  const isUnread = `c.key in (select value from json_each(@body, '$.unread'))`;
  const subscribed = db.value<Record<'kind' | 'key' | 'id' | 'body', string>, 0 | 1>(
    `select max(${isOurs(noted, isUnread)}) from recorded r
     where r.kind = @kind and r.key in (${keysOf('@kind', '@key', '@id')})`,
  );
  const found = `problem.class = 'invalid' and problem.cause = '${unreadable}' and coalesce((
    select max(${isOurs('r.body')}) from recorded r
    where r.kind = problem.kind
      and r.key in (${keysOf('problem.kind', 'problem.key', 'problem.crm')})), 1)`;
  const listed = (where: string): string =>
    `select kind, key, reason, fix, since from problem where ${where} order by since, key limit ?`;
  return {
    /**
     * Returns whether the person is ours and subscribed in a channel from which the record may opt
     * out, by what is recorded and what this run has noted. Its `id` may have had another key
     * before. Returns undefined if nothing is recorded under these.
     */
    isSubscribed({ kind, key = '', id, body }: DesiredRow): boolean | undefined {
      const is = subscribed({ kind, key, id, body });
      return is === undefined ? is : is === 1;
    },
    count: db.number<[]>(`select count(*) from problem where ${found}`),
    list: db.all<[count: number], UnreadableOptOut>(listed(found)),
    /** Returns up to `count` of those whose record is not in this run's incremental reading. */
    unread: db.all<[RecordTypeName, count: number], UnreadableOptOut>(
      listed(`kind = ? and ${found} and not ${isNamed}`),
    ),
  };
}
