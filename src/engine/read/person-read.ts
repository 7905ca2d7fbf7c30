/**
 * Reads one record of a source by its id, and the other records of the same person. Several records
 * with one address are one person, and the strictest of them counts. Earlier readings show which
 * records belong to the person. Nothing is concluded about any other person.
 */
import type { RecordType } from '../../records/record-type.ts';
import { Busy } from '../../domain/errors.ts';
import type { DesiredRow, Key } from '../../domain/record.ts';
import { everything } from '../../store/database/key-range.ts';
import type { SourceRecord } from '../../sources/source.ts';
import type { LockedPeople, PersonLock } from '../context/person-locks.ts';
import { isFresh, type RunContext, supersededKeys } from '../context/run-context.ts';
import type { MirrorPart } from '../context/mirror-context.ts';
import type { RunState } from '../context/run-state.ts';
import { incrementalSizes, stageIncremental, withKnownColumns } from './incremental-read.ts';
import { desiredOf } from './source-read.ts';
import { type Findings, noFindings } from '../context/run-findings.ts';
import { inTurns } from '../context/work-in-parts.ts';
import { retrySchedules } from '../../domain/retry-schedules.ts';

/** The maximum number of records read for one person; with more, only opt-outs are applied. */
export const most = 50;

/** Returns the error for a person that another run of this process has locked. */
export function personIsLocked(): Busy {
  return new Busy('another run is at this person', { fix: 'run again when it has ended' });
}

/** The records that the source currently has for a person. */
interface PersonRecords {
  rows: DesiredRow[];
  /** Every key that the records have or had; the current one is the first. */
  keys: Key[];
  /** The ids of all records that were requested. */
  ids: string[];
  complete: boolean;
}

/** The result of reading a person. */
export interface PersonRead {
  /** Keeps other runs from the person until it is released. */
  lock: PersonLock;
  /** The person's key; undefined if this record belongs to no known person and never did. */
  key: Key | undefined;
  findings: Findings;
}

/**
 * Locks the person of the record with this id, and stages the person's records in the source.
 * Throws the source's errors, and Busy if the person's address changes on every attempt.
 */
export async function readPerson(
  run: RunContext,
  part: MirrorPart,
  id: string,
): Promise<PersonRead> {
  let people: LockedPeople = { keys: keysOf(run, part, id), ids: [id] };
  for (let tries = 0; tries < retrySchedules.personRead.tries; tries += 1) {
    const taken = await run.locks.take(people);
    try {
      const asked = await readRecords(run, part, id);
      // A record that was read before its key was locked may be out of date.
      if (isAmong(asked, people)) {
        return { lock: taken, ...(await stage(run, part, asked)) };
      }
      people = union(asked, people);
    } catch (error) {
      taken.release();
      throw error;
    }
    taken.release();
  }
  throw personIsLocked();
}

/**
 * Stores which people have several records and which of them are not recorded, for later runs that
 * read one record. Deletes people who were erased in the meantime.
 */
export async function keepDuplicates(
  { run, parts, known }: Pick<RunState, 'run' | 'parts' | 'known'>,
  when: 'read' | 'done',
): Promise<void> {
  const { ranges, duplicates, transaction } = run.snapshot;
  for (const { type, source } of parts) {
    if (!source.one || !type.capabilities.personRead) continue;
    // An incremental reading does not need a scan of all recorded people.
    const all = known.get(type)?.whole ? ranges.ofKeys(type.name) : [everything];
    for await (const range of inTurns(run, all)) {
      transaction(() => duplicates.note(type.name, range, when));
    }
    transaction(() => {
      const knowledge = known.get(type);
      const isNewest = when === 'done' && knowledge?.certified && knowledge.whole;
      if (isNewest) duplicates.dropOld(type.name);
      const isErased = run.doNotContact.erased();
      const gone = isErased ? supersededKeys(run, type).filter(isErased) : [];
      for (const key of gone) duplicates.drop(type.name, key);
    });
  }
}

function isAmong({ keys, ids }: LockedPeople, people: LockedPeople): boolean {
  return (
    keys.every((key) => people.keys.includes(key)) && ids.every((id) => people.ids.includes(id))
  );
}

function union(one: LockedPeople, other: LockedPeople): LockedPeople {
  const united = (of: keyof LockedPeople) => [...new Set([...one[of], ...other[of]])];
  return { keys: united('keys'), ids: united('ids') };
}

/** Returns the keys that the record was last observed with. */
function keysOf({ snapshot }: RunContext, { type }: MirrorPart, id: string): Key[] {
  return snapshot.recorded.ofOrigins(type.name, [id], '').map(({ key }) => key);
}

/** Returns the known ids of a person's records in the source, without repetitions. */
export function idsAt(
  { snapshot }: Pick<RunContext, 'snapshot'>,
  { name }: RecordType,
  key: Key,
): string[] {
  return [
    ...new Set([...snapshot.recorded.originsOf(name, key), ...snapshot.duplicates.of(name, key)]),
  ];
}

async function readRecords(
  run: RunContext,
  part: MirrorPart,
  first: string,
): Promise<PersonRecords> {
  const { type, source } = part;
  const ids = [first];
  const now = new Set<Key>();
  const before = new Set<Key>();
  const rows: DesiredRow[] = [];
  for (const [at, id] of ids.entries()) {
    if (at >= most) break;
    const record = await source.one?.(id, { fields: type.fields, signal: run.stop });
    const row = record && rowOf(type, id, record);
    if (row) rows.push(row);
    if (row?.key !== undefined) now.add(row.key);
    for (const old of keysOf(run, part, id)) before.add(old);
    const others = [...now, ...before].flatMap((key) => idsAt(run, type, key));
    ids.push(...new Set(others.filter((other) => !ids.includes(other))));
  }
  return { rows, keys: [...new Set([...now, ...before])], ids, complete: ids.length <= most };
}

/** Returns the record's row. A record that cannot be read keeps this id. */
export function rowOf(type: RecordType, id: string, record: SourceRecord): DesiredRow {
  const row = desiredOf(type, record);
  return row.id === '' ? { ...row, id } : row;
}

async function stage(
  run: RunContext,
  { type }: MirrorPart,
  { rows: found, keys: [key], complete }: PersonRecords,
): Promise<Omit<PersonRead, 'lock'>> {
  const rows = withKnownColumns(run, type.name, found);
  const skipped = await stageIncremental(run, type.name, rows);
  const sizes = incrementalSizes(run, type.name, { rows, skipped });
  const readAt = run.clock.now();
  const still = (): boolean => isFresh(run, readAt);
  return { key, findings: { ...noFindings, certified: complete, sizes, still } };
}
