/**
 * Queries what the people with new changes (`isNew` in guarded-changes.ts) have in common, such as
 * a mail domain or neighbouring ids, and counts the records to compare them with.
 */
import type { RecordTypeName } from '../../domain/record.ts';
import { standsOf } from './approval-holds.ts';
import { isNew, withdraws } from './guarded-changes.ts';
import { countedByPart, type Counts } from './guarded-withdrawals.ts';
import {
  everything,
  inRange,
  isGuarded,
  rangesBy,
  type Guarded,
  type KeyRange,
} from '../database/key-range.ts';
import type { Statements } from '../database/prepared-statements.ts';

/** The queries about people with new changes. */
export interface Shaping {
  /** Returns the mail domains of the people with new changes, at most two. */
  domains(guarded: Guarded): string[];
  /**
   * Counts the owned records of a range (by default of all ranges), and those with this mail
   * domain.
   */
  owned(
    kind: RecordTypeName,
    of?: { range: KeyRange; domain: string },
  ): { all: number; same: number };
  /** Yields the key ranges of all records that are recorded, or noted by a decision. */
  spansOfKnown(kind: RecordTypeName): Iterable<KeyRange>;
  /** Counts the owned records of a range, including those that a decision of this run adopts. */
  known(kind: RecordTypeName, range: KeyRange): number;
  /**
   * Counts the owned records that are subscribed to one of these channels and have no change of
   * this class in this run.
   */
  subscribed(kind: RecordTypeName, guarded: Guarded, parts: readonly string[]): number;
  /** Notes the source ids of the records with new changes. */
  addIds(guarded: Guarded): void;
  /** Returns up to `count` noted ids after `after`, or from the start; shorter ids come first. */
  nextIds(after: FreshId | undefined, count: number): FreshId[];
  /** Returns whether the id of another recorded record is between two noted neighbours. */
  isBetween(kind: RecordTypeName, from: FreshId, to: FreshId): boolean;
  /** Drops the noted ids. */
  clearIds(): void;
  /**
   * Counts the records with a new change of the class, of which the source had stated `from` before
   * this run. Left out is what an earlier run has withheld.
   */
  turnedIn(guarded: Guarded, from: NotIn): Counts;
  /** Counts the records of which the source had stated an opt-in, and now states `to` instead. */
  turnedOut(kind: RecordTypeName, which: InParts & { to: NotIn }): Counts;
  /** Counts the records of which the source has stated an opt-in or an opt-out. */
  stating(kind: RecordTypeName, which: InParts): Counts;
}

/** An opt-out, or no opinion (snapshot/tables/stated-consents.ts). */
export type NotIn = 'opt_out' | 'none';

/** A range of records, and the parts that count. */
interface InParts {
  range: KeyRange;
  parts: readonly string[];
}

/** A noted id of the source. */
export interface FreshId {
  id: string;
  /** The length of the id in characters. */
  length: number;
}

const domainOf = `substr(key, instr(key, '@') + 1)`;

/** Prepares the queries about new changes. */
export function shapingIn(db: Statements): Shaping {
  const domains = db.prepare<Guarded, { domain: string }>(
    `select distinct ${domainOf} domain from temp.planned where ${isGuarded} and ${isNew} limit 2`,
  );
  const owned = db.prepare<
    KeyRange & { kind: string; domain: string },
    { all: number; same: number }
  >(
    `select count(*) "all", coalesce(sum(${domainOf} = @domain), 0) same from recorded
     where ${inRange('recorded')} and ownership <> 'noted'`,
  );
  return {
    domains: (guarded) => domains.all(guarded).map(({ domain }) => domain),
    owned: (kind, { range, domain } = { range: everything, domain: '' }) =>
      owned.get({ kind, domain, ...range }) ?? { all: 0, same: 0 },
    ...knownIn(db),
    ...idsIn(db),
    ...turnsIn(db),
  };
}

function turnsIn(db: Statements): Pick<Shaping, 'turnedIn' | 'turnedOut' | 'stating'> {
  const stated = (of: string, part: string, says: string): string => `exists (
    select 1 from stated s
    where s.kind = ${of}.kind and s.key = ${of}.key and s.part = ${part} and s.says ${says})`;
  const turnedIn = db.prepare<Guarded & { from: NotIn }, Counts[number]>(
    countedByPart(`select key, part from temp.planned indexed by planned_by_guard
       where ${isGuarded} and ${isNew} and not ${standsOf('planned')}
         and iif(@from = 'opt_out', ${withdraws('planned')}, not ${withdraws('planned')}
           and ${stated('planned', 'planned.part', "= 'none'")}
           and not ${stated('planned', 'planned.part', "<> 'none'")})`),
  );
  type Parts = KeyRange & { kind: string; parts: string };
  const isPart = 'in (select value from json_each(@parts))';
  const stating = db.prepare<Parts, Counts[number]>(
    countedByPart(`select key, part from stated
       where ${inRange('stated')} and gone_at is null
         and says in ('opt_in', 'opt_out') and part ${isPart}`),
  );
  const turnedOut = db.prepare<Parts & { to: NotIn }, Counts[number]>(
    countedByPart(`select d.key, c.key part from temp.desired d, json_each(d.body, '$.channels') c
       where ${inRange('d')} and c.key ${isPart}
         and ${stated('d', 'c.key', "= 'opt_in'")} and not ${stated('d', 'c.key', "= 'opt_out'")}
       group by d.key, c.key having max(coalesce(c.value, 'none')) = @to`),
  );
  return {
    turnedIn: (guarded, from) => turnedIn.all({ ...guarded, from }),
    stating: (kind, { range, parts }) =>
      stating.all({ kind, ...range, parts: JSON.stringify(parts) }),
    turnedOut: (kind, { range, parts, to }) =>
      turnedOut.all({ kind, ...range, parts: JSON.stringify(parts), to }),
  };
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

function knownIn(db: Statements): Pick<Shaping, 'spansOfKnown' | 'known' | 'subscribed'> {
  const of = ['recorded', 'temp.noted'];
  const ranges = rangesBy(db, { column: 'key', of, where: 'kind = @kind' });
  const known = db.prepare<KeyRange & { kind: string }, { n: number }>(
    `select count(*) n from (${knownRows})`,
  );
  const isAsked = ['temp.planned', 'temp.passed', 'temp.withheld'].map(
    (table) => `exists (select 1 from ${table} t
      where t.guard = @guard and t.key = k.key and t.kind = k.kind)`,
  );
  const subscribed = db.prepare<Guarded & { kind: string; parts: string }, { n: number }>(
    `select count(*) n from (${knownRows}) k
     where instr(k.body, '"opt_in"') > 0
       and exists (select 1 from json_each(k.body, '$.channels') c
         where c.value ->> '$.is' = 'opt_in' and c.key in (select value from json_each(@parts)))
       and not (${isAsked.join(' or ')})`,
  );
  return {
    spansOfKnown: (kind) => ranges({ kind }),
    known: (kind, range) => known.get({ kind, ...range })?.n ?? 0,
    subscribed: (kind, guarded, parts) =>
      subscribed.get({ kind, ...guarded, parts: JSON.stringify(parts) })?.n ?? 0,
  };
}

type Ids = Pick<Shaping, 'addIds' | 'nextIds' | 'isBetween' | 'clearIds'>;

const isOurs = `o.kind = @kind
  and exists (select 1 from recorded r where r.kind = o.kind and r.key = o.key)`;

function idsIn(db: Statements): Ids {
  const add = db.prepare<Guarded>(
    `insert or ignore into temp.fresh_id (length, id)
     select length(o.id), o.id
     from (select kind, key from temp.planned where ${isGuarded} and ${isNew}) p
       join recorded r on r.kind = p.kind and r.key = p.key
       join origin o indexed by origin_by_key on o.kind = r.kind and o.key = r.key`,
  );
  const next = db.prepare<FreshId & { count: number }, FreshId>(
    `select id, length from temp.fresh_id where (length, id) > (@length, @id)
     order by length, id limit @count`,
  );
  const alike = db.prepare<KeyRange & { kind: string; length: number }>(
    `select 1 from origin o where o.id > @after and o.id < @upTo and length(o.id) = @length
       and ${isOurs} limit 1`,
  );
  const shorter = db.prepare<{ kind: string; from: number; to: number }>(
    `select 1 from origin o where length(o.id) > @from and length(o.id) < @to and ${isOurs} limit 1`,
  );
  return {
    addIds: (guarded) => void add.run(guarded),
    nextIds: (after, count) => next.all({ ...(after ?? { id: '', length: -1 }), count }),
    isBetween(kind, from, to) {
      const isAlike = (length: number, range: KeyRange): boolean =>
        alike.get({ kind, length, ...range }) !== undefined;
      if (from.length === to.length) return isAlike(to.length, { after: from.id, upTo: to.id });
      return (
        isAlike(from.length, { ...everything, after: from.id }) ||
        isAlike(to.length, { ...everything, upTo: to.id }) ||
        // The query scans all ids, so it runs only if a length between the two is possible.
        (to.length > from.length + 1 &&
          shorter.get({ kind, from: from.length, to: to.length }) !== undefined)
      );
    },
    clearIds: () => db.exec('delete from temp.fresh_id'),
  };
}
