import { apartMs } from '../../domain/clock.ts';
import type { Statements } from '../database/prepared-statements.ts';
import type { Absence, Key, RecordTypeName } from '../../domain/record.ts';
import { inRange, type RecordName, type RecordRange, restRecorded } from '../database/key-range.ts';

/** One moment by our clock and by the platform's, in milliseconds since the epoch. */
export interface Times {
  at: number;
  /** In whole seconds; undefined if the platform did not state it. */
  platformAt: number | undefined;
}

/**
 * A reading to count. An absence is due when both `absentReadings` and `absentForMs` are reached.
 */
export interface Counted extends Times {
  /** By how much our clock is ahead of the platform's, in milliseconds; null if unknown. */
  aheadMs: number | null;
  reading: string;
  /** The keys to skip, because another run has read their records more recently. */
  but: readonly Key[];
  absentReadings: number;
  absentForMs: number;
}

/** Selects the rows that the staged reading contains in scope. An invalid record is not absent. */
const isNamed = (of: string) => `exists (
  select 1 from temp.desired d where d.kind = @kind and d.key = ${of}.key
    and (d.presence = 'present' or d.reason is not null))`;

const isOwned = `r.ownership <> 'noted' and r.id is not null`;
const hasOptIn = `select 1 from json_each(r.body, '$.channels') c
  where c.value ->> 'is' = 'opt_in'`;

/** One that is flagged as gone is in scope, too. */
const isInScope = `(d.presence <> 'outside' or d.reason is not null)`;

/**
 * The milliseconds since the mark, by the slower clock. The 999 compensate for the fraction of a
 * second that the platform's clock cuts off; our clock still limits the sum.
 */
const added = `max(0, min(@at - marked_at, case
  when marked_platform_at is null then iif(abs(@aheadMs) > ${apartMs}, 0, @at - marked_at)
  when @platformAt > marked_platform_at then @platformAt - marked_platform_at + 999
  else 0 end))`;

/** Moves the mark, unless the platform stated its time before and does not now. */
const marked = `marked_at = iif(@platformAt is null and marked_platform_at > 0, marked_at, @at),
  marked_platform_at = coalesce(@platformAt, marked_platform_at)`;

const isDue = (readings: string, ageMs: string) =>
  `(${readings} >= @absentReadings and ${ageMs} >= @absentForMs)`;

/**
 * Counts in how many consecutive readings of a source a recorded record was missing, flagged as
 * gone or out of scope. If the record returns to the source, its count starts from zero again.
 *
 * Time is added up from one mark to the next; a mark is a reading, or an opt-out of ours. Each step
 * adds the smaller of the times measured by the platform's clock and by ours, and nothing if either
 * clock was set back. One wrong clock therefore never makes an absence longer than it is. Until the
 * platform has stated its time, only our clock counts, unless it is known to be an hour apart. If
 * the platform states its time only sometimes, the mark stays until it does.
 */
export function absencesIn(db: Statements) {
  const over = `delete from absence where kind = @kind and (${isNamed('absence')}
    or not exists (select 1 from recorded r where r.kind = @kind and r.key = absence.key))`;
  const countNewIn = (people: string): string => `select count(*) from ${people} and not exists (
       select 1 from temp.desired d where d.kind = r.kind and d.key = r.key and ${isInScope})
     and not exists (select 1 from absence a where a.kind = r.kind and a.key = r.key)
     and not exists (
       select 1 from origin o indexed by origin_by_key
       where o.kind = r.kind and o.key = r.key and exists (
         select 1 from temp.stands s join temp.desired d
           on d.kind = s.kind and d.key = s.key and d.id = s.id
         where s.kind = o.kind and s.id = o.id and ${isInScope}))`;
  const ownedAbsences = `from absence a cross join recorded r on r.kind = a.kind and r.key = a.key
    where a.kind = @kind and ${isOwned}`;
  return {
    get: db.one<[RecordTypeName, Key], Absence>(
      `select readings, first_at firstAt, last_at lastAt, age_ms ageMs, waited_ms waitedMs
       from absence where kind = ? and key = ?`,
    ),
    /**
     * Counts the staged, complete reading as an absence of every recorded record in the range that
     * it does not contain. A reading with the same name as the previous one is not counted again.
     */
    count: db.run<RecordRange & Counted>(
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
    ),
    /** Counts the recorded records of a range whose absence this reading is the first to show. */
    countNew: db.number<RecordRange>(countNewIn(`recorded r where ${inRange('r')}`)),
    /** The same, among those that were not found unchanged. */
    countNewOfRest: db.number<RecordRange>(countNewIn(restRecorded)),
    /**
     * Counts the owned records with an absence, and those whose absence is due. `waitedMs`: of the
     * oldest that may be deleted; with `adopted`, adopted records may be, too.
     */
    summary: db.only<
      { kind: RecordTypeName; adopted: boolean },
      { people: number; due: number; waitedMs: number | null }
    >(
      `select count(*) people, count(a.waited_ms) due,
         max(iif(r.ownership = 'created' or @adopted, a.waited_ms, null)) waitedMs
       ${ownedAbsences}`,
    ),
    /** The owned records with an absence. Waiting: with an opt-in and not due yet. */
    people: db.all<{ kind: RecordTypeName }, { key: Key; isWaiting: 0 | 1 }>(
      `select a.key, a.waited_ms is null and exists (${hasOptIn}) isWaiting ${ownedAbsences}`,
    ),
    waitAnew: db.run<RecordName & Times>(
      `update absence set waited_ms = 0, marked_at = @at,
         marked_platform_at = coalesce(@platformAt, marked_platform_at)
       where kind = @kind and key = @key and waited_ms is not null`,
    ),
    /** Drops those of records that the staged reading contains, or that are not recorded. */
    dropNamed: db.run<{ kind: RecordTypeName }>(over),
    dropIfNamed: db.run<RecordName>(`${over} and key = @key`),
  };
}
