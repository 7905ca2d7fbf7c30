import type { Statements } from './statements.ts';
import type { Absence, Key, KindName } from '../model/record.ts';
import { inSpan, type Span } from './spans.ts';

/**
 * In how many readings of a source the records that are ours were not named, or only as out of
 * scope. Whoever is named again starts anew.
 */
export interface Absences {
  get(kind: KindName, key: Key): Absence | undefined;
  /**
   * Counts what was staged as one more whole reading, made at `at` (milliseconds since the epoch),
   * for everybody in this span it does not name, but for those of whom there is a newer one. A
   * reading of the same name as the one before is the same.
   */
  count(
    kind: KindName,
    span: Span,
    reading: { name: string; at: number; but: readonly Key[] },
  ): void;
  /** Forgets the absence of everybody whom what was staged names, and of what is not ours. */
  dropNamed(kind: KindName): void;
  /** … of one record. */
  dropIfNamed(kind: KindName, key: Key): void;
}

/** Whether a record stands in scope, or may: what is invalid is not absent. */
const isNamed = (of: string) => `exists (
  select 1 from temp.desired d where d.kind = @kind and d.key = ${of}.key
    and (d.presence <> 'outside' or d.reason is not null))`;

export function absencesIn(db: Statements): Absences {
  const get = db.prepare<[string, string], Absence>(
    'select readings, first_at firstAt, last_at lastAt from absence where kind = ? and key = ?',
  );
  const count = db.prepare(
    `insert into absence (kind, key, first_at, last_at, readings, reading)
     select kind, key, @at, @at, 1, @reading from recorded
     where ${inSpan('recorded')} and not ${isNamed('recorded')}
       and key not in (select value from json_each(@but))
     on conflict (kind, key) do update
       set last_at = @at, readings = readings + 1, reading = @reading where reading <> @reading`,
  );
  const over = `delete from absence where kind = @kind and (${isNamed('absence')}
    or not exists (select 1 from recorded r where r.kind = @kind and r.key = absence.key))`;
  const drop = db.prepare(over);
  const dropOne = db.prepare(`${over} and key = @key`);
  return {
    get: (kind, key) => get.get(kind, key),
    count: (kind, span, { name, at, but }) =>
      void count.run({ kind, ...span, reading: name, at, but: JSON.stringify(but) }),
    dropNamed: (kind) => void drop.run({ kind }),
    dropIfNamed: (kind, key) => void dropOne.run({ kind, key }),
  };
}
