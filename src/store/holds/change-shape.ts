/**
 * Queries what the people with new changes (`isNew` in judged-changes.ts) have in common, such as
 * a mail domain or neighbouring ids, and counts the records to compare them with.
 */
import type { RecordTypeName } from '../../domain/record.ts';
import { standsOf } from './hold-sql.ts';
import { countedByPart, type Counts, isNew, withdraws } from './judged-changes.ts';
import {
  everything,
  type Guarded,
  inRange,
  isGuarded,
  type KeyRange,
  rangesBy,
  type RecordRange,
} from '../database/key-range.ts';
import type { Statements } from '../database/prepared-statements.ts';

/** An opt-out, or no opinion (store/tables/stated-consents.ts). */
export type NotIn = 'opt_out' | 'none';

/** A range of records, and the parts that count. */
type InParts = RecordRange & { parts: readonly string[] };

/** A noted id of the source. */
export interface FreshId {
  id: string;
  /** The length of the id in characters. */
  length: number;
}

/** Prepares the queries about people with new changes. */
export function shapingIn(db: Statements) {
  return { ...knownIn(db), ...idsIn(db), ...turnsIn(db) };
}

/** Selects the records of a range. A row that a decision has noted replaces the recorded one. */
const rowsOf = (which: (row: string) => string) => `select n.kind, n.key, n.body from temp.noted n
  where ${inRange('n')} and ${which('n')}
  union all
  select r.kind, r.key, r.body from recorded r
  where ${inRange('r')} and ${which('r')}
    and not exists (select 1 from temp.noted n where n.kind = r.kind and n.key = r.key)`;

/** Selects the owned records of a range. */
const knownRows = rowsOf((row) => `${row}.ownership <> 'noted'`);

function knownIn(db: Statements) {
  const domainOf = `substr(key, instr(key, '@') + 1)`;
  const ranges = rangesBy(db, {
    column: 'key',
    of: ['recorded', 'temp.noted'],
    where: 'kind = @kind',
  });
  const isAsked = ['temp.planned', 'temp.judged'].map(
    (table) => `exists (select 1 from ${table} t
      where t.guard = @guard and t.key = k.key and t.kind = k.kind)`,
  );
  return {
    /** Returns the mail domains of the people with new changes, at most two. */
    domains: db.values<Guarded, string>(
      `select distinct ${domainOf} from temp.planned where ${isGuarded} and ${isNew} limit 2`,
    ),
    /** Counts the owned records of a range, and those with this mail domain. */
    owned: db.only<RecordRange & { domain: string }, { all: number; same: number }>(
      `select count(*) "all", coalesce(sum(${domainOf} = @domain), 0) same from recorded
       where ${inRange('recorded')} and ownership <> 'noted'`,
    ),
    /** Yields the key ranges of all records that are recorded, or noted by a decision. */
    spansOfKnown: (kind: RecordTypeName): Generator<RecordRange> => ranges({ kind }),
    /** Counts the owned records of a range, including those that a decision of this run adopts. */
    known: db.number<RecordRange>(`select count(*) n from (${knownRows})`),
    /**
     * Counts the owned records that are subscribed to one of these channels and have no change of
     * this class in this run.
     */
    subscribed: db.number<InParts & Guarded>(
      `select count(*) n from (${knownRows}) k
       where instr(k.body, '"opt_in"') > 0
         and exists (select 1 from json_each(k.body, '$.channels') c
           where c.value ->> '$.is' = 'opt_in' and c.key in (select value from json_each(@parts)))
         and not (${isAsked.join(' or ')})`,
    ),
  };
}

const isOurs = `o.kind = @kind
  and exists (select 1 from recorded r where r.kind = o.kind and r.key = o.key)`;

function idsIn(db: Statements) {
  const next = db.all<FreshId & { count: number }, FreshId>(
    `select id, length from temp.fresh_id where (length, id) > (@length, @id)
     order by length, id limit @count`,
  );
  const alike = db.one<KeyRange & { kind: string; length: number }, { one: 1 }>(
    `select 1 from origin o where o.id > @after and o.id < @upTo and length(o.id) = @length
       and ${isOurs} limit 1`,
  );
  const shorter = db.one<{ kind: string; from: number; to: number }, { one: 1 }>(
    `select 1 from origin o where length(o.id) > @from and length(o.id) < @to and ${isOurs} limit 1`,
  );
  return {
    /** Notes the source ids of the records with new changes. */
    addIds: db.run<Guarded>(
      `insert or ignore into temp.fresh_id (length, id)
       select length(o.id), o.id
       from (select kind, key from temp.planned where ${isGuarded} and ${isNew}) p
         join recorded r on r.kind = p.kind and r.key = p.key
         join origin o indexed by origin_by_key on o.kind = r.kind and o.key = r.key`,
    ),
    /** Returns up to `count` noted ids after `after`, or from the start; shorter ids come first. */
    nextIds: (after: FreshId | undefined, count: number) =>
      next({ ...(after ?? { id: '', length: -1 }), count }),
    /** Returns whether the id of another recorded record is between two noted neighbours. */
    isBetween(kind: RecordTypeName, from: FreshId, to: FreshId): boolean {
      const isAlike = (length: number, range: KeyRange): boolean =>
        alike({ kind, length, ...range }) !== undefined;
      if (from.length === to.length) return isAlike(to.length, { after: from.id, upTo: to.id });
      return (
        isAlike(from.length, { ...everything, after: from.id }) ||
        isAlike(to.length, { ...everything, upTo: to.id }) ||
        // The query scans all ids, so it runs only if a length between the two is possible.
        (to.length > from.length + 1 &&
          shorter({ kind, from: from.length, to: to.length }) !== undefined)
      );
    },
    /** Drops the noted ids. */
    clearIds: () => db.exec('delete from temp.fresh_id'),
  };
}

function turnsIn(db: Statements) {
  const stated = (of: string, part: string, says: string): string => `exists (
    select 1 from stated s
    where s.kind = ${of}.kind and s.key = ${of}.key and s.part = ${part} and s.says ${says})`;
  const isPart = 'in (select value from json_each(@parts))';
  return {
    /**
     * Counts the records with a new change of the class, of which the source had stated `from`
     * before this run. Left out is what an earlier run has withheld.
     */
    turnedIn: db.all<Guarded & { from: NotIn }, Counts[number]>(
      countedByPart(`select key, part from temp.planned indexed by planned_by_guard
         where ${isGuarded} and ${isNew} and not ${standsOf('planned')}
           and iif(@from = 'opt_out', ${withdraws('planned')}, not ${withdraws('planned')}
             and ${stated('planned', 'planned.part', "= 'none'")}
             and not ${stated('planned', 'planned.part', "<> 'none'")})`),
    ),
    /**
     * Counts the records of which the source had stated an opt-in, and now states `to` instead,
     * also those of which incomplete readings since then have stored it.
     */
    turnedOut: db.all<InParts & { to: NotIn }, Counts[number]>(
      countedByPart(`select d.key, c.key part
         from temp.desired d, json_each(d.body, '$.channels') c
         where ${inRange('d')} and c.key ${isPart}
           and ${stated('d', 'c.key', "= 'opt_in'")} and not ${stated('d', 'c.key', "= 'opt_out'")}
         group by d.key, c.key having max(coalesce(c.value, 'none')) = @to
         union all
         select s.key, s.part from stated s
         where ${inRange('s')} and s.was_in is not null and s.says = @to and s.gone_at is null
           and s.part ${isPart} and (
             not exists (select 1 from temp.staged d where d.kind = s.kind and d.key = s.key)
             or exists (select 1 from temp.desired d, json_each(d.body, '$.channels') c
               where d.kind = s.kind and d.key = s.key and c.key = s.part and c.value = @to))`),
    ),
    /** Counts the records of which the source has stated an opt-in or an opt-out. */
    stating: db.all<InParts, Counts[number]>(
      countedByPart(`select key, part from stated
         where ${inRange('stated')} and gone_at is null
           and says in ('opt_in', 'opt_out') and part ${isPart}`),
    ),
  };
}
