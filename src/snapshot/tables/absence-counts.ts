import type { Statements } from '../database/prepared-statements.ts';
import type { Absence, Key, RecordTypeName } from '../../domain/record.ts';
import { inRange, type KeyRange } from '../database/key-range.ts';

/**
 * In how many readings of a source the records that are ours were not named, or only as gone or out
 * of scope. Whoever is named again starts anew.
 *
 * Time is added up from one mark to the next, a reading or an opt-out of ours: the lesser of what
 * the platform's clock and ours show, and nothing where either was put back. So one clock that is
 * wrong for a while, or was, makes nobody's absence longer than it is. Of a platform that has not
 * told its time yet our clock counts alone; where it tells it sometimes, the mark stays until then.
 */
export interface Absences {
  get(kind: RecordTypeName, key: Key): Absence | undefined;
  /**
   * Counts what was staged as one more whole reading for everybody in this range it does not name,
   * but for those of whom there is a newer one. A reading of the same name as the one before is
   * the same.
   */
  count(kind: RecordTypeName, range: KeyRange, reading: Counted): void;
  /** Of our people who are subscribed: how many are missing, and how many flagged as gone. */
  countSubscribed(kind: RecordTypeName, range: KeyRange): { missing: number; flagged: number };
  /**
   * How many of our people are missing, how many of them are due, and how long the first of those
   * who may be deleted has waited for it; `adopted`: adopted people may be, too.
   */
  summary(kind: RecordTypeName, adopted: boolean): Missed;
  /** Has whoever is due wait for their deletion from now on. */
  waitAnew(kind: RecordTypeName, key: Key, now: Times): void;
  /** Forgets the absence of everybody whom what was staged names, and of what is not ours. */
  dropNamed(kind: RecordTypeName): void;
  /** … of one record. */
  dropIfNamed(kind: RecordTypeName, key: Key): void;
}

/** A moment by two clocks; milliseconds since the epoch. */
export interface Times {
  /** By ours. */
  at: number;
  /** By the platform's, in whole seconds; undefined: it did not tell. */
  platformAt: number | undefined;
}

interface Missed {
  people: number;
  due: number;
  waitedMs: number | null;
}

interface Counted extends Times {
  name: string;
  but: readonly Key[];
  /** So many readings, and so much time, make an absence due. */
  absentReadings: number;
  absentForMs: number;
}

/** Whether a record stands in scope, or may: what is invalid is not absent. */
const isNamed = (of: string) => `exists (
  select 1 from temp.desired d where d.kind = @kind and d.key = ${of}.key
    and (d.presence = 'present' or d.reason is not null))`;

/** What the platform cuts off its seconds is given back: ours shows no less than is added. */
const added = `max(0, min(@at - marked_at, case
  when marked_platform_at is null then @at - marked_at
  when @platformAt > marked_platform_at then @platformAt - marked_platform_at + 999
  else 0 end))`;

const marked = `marked_at = iif(@platformAt is null and marked_platform_at > 0, marked_at, @at),
  marked_platform_at = coalesce(@platformAt, marked_platform_at)`;

const isDue = (readings: string, ageMs: string) =>
  `(${readings} >= @absentReadings and ${ageMs} >= @absentForMs)`;

export function absencesIn(db: Statements): Absences {
  const get = db.prepare<[string, string], Absence>(
    `select readings, first_at firstAt, last_at lastAt, age_ms ageMs, waited_ms waitedMs
     from absence where kind = ? and key = ?`,
  );
  const count = db.prepare(
    `insert into absence (kind, key, first_at, last_at, readings, reading,
       marked_at, marked_platform_at, age_ms, waited_ms)
     select kind, key, @at, @at, 1, @reading, @at, @platformAt, 0, iif(${isDue('1', '0')}, 0, null)
     from recorded
     where ${inRange('recorded')} and not ${isNamed('recorded')}
       and key not in (select value from json_each(@but))
     on conflict (kind, key) do update
       set last_at = @at, readings = readings + 1, reading = @reading,
         ${marked}, age_ms = age_ms + ${added},
         waited_ms = coalesce(
           waited_ms + ${added}, iif(${isDue('readings + 1', `age_ms + ${added}`)}, 0, null))
       where reading <> @reading`,
  );
  const wait = db.prepare(
    `update absence set waited_ms = 0, marked_at = @at,
       marked_platform_at = coalesce(@platformAt, marked_platform_at)
     where kind = @kind and key = @key and waited_ms is not null`,
  );
  const over = `delete from absence where kind = @kind and (${isNamed('absence')}
    or not exists (select 1 from recorded r where r.kind = @kind and r.key = absence.key))`;
  const drop = db.prepare(over);
  const dropOne = db.prepare(`${over} and key = @key`);
  return {
    ...countsIn(db),
    get: (kind, key) => get.get(kind, key),
    count: (kind, range, { name, at, platformAt = null, but, absentReadings, absentForMs }) =>
      void count.run({
        kind,
        ...range,
        reading: name,
        at,
        platformAt,
        but: JSON.stringify(but),
        absentReadings,
        absentForMs,
      }),
    waitAnew: (kind, key, { at, platformAt = null }) =>
      void wait.run({ kind, key, at, platformAt }),
    dropNamed: (kind) => void drop.run({ kind }),
    dropIfNamed: (kind, key) => void dropOne.run({ kind, key }),
  };
}

/** How many people are missing. */
function countsIn(db: Statements): Pick<Absences, 'countSubscribed' | 'summary'> {
  const subscribed = db.prepare<KeyRange & { kind: string }, { missing: number; flagged: number }>(
    `select count(*) filter (where not isFlagged) missing, count(*) filter (where isFlagged) flagged
     from (
       select exists (
         select 1 from temp.desired d where d.kind = r.kind and d.key = r.key
           and d.presence = 'flagged') isFlagged
       from recorded r
       where ${inRange('r')} and not ${isNamed('r')} and r.id is not null
         and r.ownership <> 'noted' and exists (
           select 1 from json_each(r.body, '$.channels') c where c.value ->> 'is' = 'opt_in'))`,
  );
  const summary = db.prepare<{ kind: string; adopted: number }, Missed>(
    `select count(*) people, count(a.waited_ms) due,
       max(iif(r.ownership = 'created' or @adopted, a.waited_ms, null)) waitedMs
     from absence a cross join recorded r on r.kind = a.kind and r.key = a.key
     where a.kind = @kind and r.ownership <> 'noted' and r.id is not null`,
  );
  return {
    countSubscribed: (kind, range) =>
      subscribed.get({ kind, ...range }) ?? { missing: 0, flagged: 0 },
    summary: (kind, adopted) =>
      summary.get({ kind, adopted: Number(adopted) }) ?? { people: 0, due: 0, waitedMs: null },
  };
}
