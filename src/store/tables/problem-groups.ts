import { z } from 'zod';
import type { ProblemCause } from '../../domain/problem-causes.ts';
import type { ProblemClass } from '../../domain/record-problem.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';
import { inRange, type KeyRange } from '../database/key-range.ts';
import type { Statements } from '../database/prepared-statements.ts';
import { isNamed } from './retry-later.ts';
import { isHeard, isNoticedHeard } from './unmanaged-people.ts';

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

/**
 * Counts problems by what they have in common, without those that an operator has acknowledged. All
 * problems of a record are in the same range.
 */
export function problemCountsIn(db: Statements) {
  const counting = (table: 'temp.noticed' | 'problem', where: string) => {
    const rows = db.all<
      { kind: string } & (KeyRange | { key: Key }),
      Omit<CountedProblem, 'samples'> & { samples: string }
    >(countedBy(table, where));
    return (kind: RecordTypeName, which: KeyRange | Key): CountedProblem[] =>
      rows(typeof which === 'string' ? { kind, key: which } : { kind, ...which }).map((row) => ({
        ...row,
        samples: samples.parse(JSON.parse(row.samples)).map(([key, place]) => ({ key, place })),
      }));
  };
  const within = inRange('problem');
  const parked = counting('problem', `${within} and desired is not null`);
  const parkedOf = counting('problem', 'kind = @kind and key = @key and desired is not null');
  const isUnread = `(class = 'invalid' or class = 'conflict' and key <> part) and not ${isNamed}`;
  const listed = (where: string): string =>
    `select key, class, part, reason, fix, cause, about, option, value, place, crm "crmId", since
     from problem where ${where} order by key, class, part`;
  const list = db.all<KeyRange & { kind: string }, StoredProblem>(
    listed(`${within} and ${isHeard}`),
  );
  const listOf = db.all<[kind: string, key: string], StoredProblem>(listed('kind = ? and key = ?'));
  return {
    /** Counts what this run noticed. */
    noticed: counting('temp.noticed', `${inRange('noticed')} and ${isNoticedHeard}`),
    /** Counts the changes that the platform refused before, of all records or of one. */
    parked: (kind: RecordTypeName, which: KeyRange | Key) =>
      (typeof which === 'string' ? parkedOf : parked)(kind, which),
    /** Counts the other known problems of records that an incremental reading does not contain. */
    unread: counting('problem', `${within} and desired is null and ${isUnread} and ${isHeard}`),
    /** Counts all known problems. */
    known: counting('problem', `${within} and ${isHeard}`),
    /** Returns the known problems of a range, by key; or of one record, with the acknowledged. */
    list: (kind: RecordTypeName, which: KeyRange | Key) =>
      typeof which === 'string' ? listOf(kind, which) : list({ kind, ...which }),
  };
}

const samples = z.array(z.tuple([z.string(), z.string().nullable()]));

/** Selects the counts. A record counts once, even if several of its channels have the problem. */
function countedBy(table: string, where: string): string {
  const common = 'class, cause, about, option, value';
  return `
    select ${common}, min(fix) fix, count(*) n,
      json_group_array(json_array(key, place)) filter (where nth <= 3) samples
    from (
      select ${common}, key, min(place) place, min(fix) fix,
        row_number() over (partition by ${common} order by length(place), place, key) nth
      from ${table} where ${where} group by key, ${common})
    group by ${common}`;
}
