/**
 * Reads a part of a source: what has changed, or the records of one person. The run concludes
 * nothing about other people. Several records with one address are one person, and the strictest of
 * them counts; earlier readings show which records belong to a person.
 *
 * A source that reports changes is read for the changed records, the other records of the same
 * people, and the records of people with unfinished work, so that the duration depends on the
 * number of changes rather than on the size of the CRM. Everything is read instead if there is no
 * cursor, if the source no longer knows it, if too much has changed, or if a person with unfinished
 * work has a record that cannot be requested.
 */
import type { DesiredRow, RecordTypeName, Key } from '../../domain/record.ts';
import { z } from 'zod';
import { withSerialsRead } from '../../domain/date-columns.ts';
import { metaValue } from '../../store/database/meta-table.ts';
import { countUnknown } from '../../domain/unknown-words.ts';
import { everything } from '../../store/database/key-range.ts';
import { type RunContext, openChanges, isFresh, supersededKeys } from '../context/run-context.ts';
import { inTurns, each } from '../context/work-in-parts.ts';
import { type Sizes, type RunState, type Findings, noFindings } from '../context/run-state.ts';
import type { RecordType } from '../../records/record-type.ts';
import type { FullCode } from '../report/run-summary.ts';
import type { Certificate, Source, SourceRecord } from '../../sources/source.ts';
import { type MirrorPart, modeName } from '../context/mirror-context.ts';
import { desiredOf, endingIn, readSource, type SourceRead, reasonOf } from './source-read.ts';
import { Busy } from '../../domain/errors.ts';
import type { LockedPeople, PersonLock } from '../context/person-locks.ts';
import { retrySchedules } from '../../domain/retry-schedules.ts';

const stagedAtOnce = 1_000;

/**
 * Returns the rows with their serial numbers of Excel read as the last complete reading has them. A
 * few records do not show what their columns hold.
 */
function withKnownColumns(
  run: Pick<RunContext, 'snapshot'>,
  kind: RecordTypeName,
  rows: readonly DesiredRow[],
): DesiredRow[] {
  const known = dateColumnsIn(run.snapshot, kind);
  return rows.map((row) => withSerialsRead(row, known));
}

function dateColumnsIn({ meta }: RunContext['snapshot'], kind: RecordTypeName): string[] {
  return metaValue(meta, dateColumnsOf(kind), z.array(z.string())) ?? [];
}

const dateColumnsOf = (kind: RecordTypeName): string => `date columns of ${kind}s`;

/** Stages a few records. Returns how many of them identify no person. */
async function stageIncremental(
  run: Pick<RunContext, 'snapshot' | 'clock'>,
  kind: RecordTypeName,
  rows: readonly DesiredRow[],
): Promise<number> {
  const { staging, stage } = run.snapshot;
  const count = Math.ceil(rows.length / stagedAtOnce);
  const starts = Array.from({ length: count }, (_, nth) => nth * stagedAtOnce);
  for await (const start of inTurns(run, starts)) {
    const some = rows.slice(start, start + stagedAtOnce);
    stage(() => staging.addDesired(some, start + 1));
  }
  stage(() => {
    staging.sortIn(kind, 'keyless');
    staging.sortIn(kind, everything);
  });
  staging.endSorting();
  let skipped = 0;
  stage(() => {
    staging.noteStrange(kind, 'keyless');
    staging.noteStrange(kind, everything);
    staging.nameByOrigin(kind, rows.length);
    skipped = staging.skipUnknown(kind);
  });
  return skipped;
}

/**
 * Returns the sizes of an incremental reading. `wanted` is the count of the last complete reading
 * plus the records added since. Without such a count, it is the number of recorded records, counted
 * when a guard needs it.
 */
function incrementalSizes(
  { snapshot }: Pick<RunContext, 'snapshot'>,
  kind: RecordTypeName,
  { rows, skipped }: { rows: readonly DesiredRow[]; skipped: number },
): Sizes {
  const unknown = countUnknown();
  rows.forEach(unknown.add);
  const invalid = snapshot.staging.countInvalid(kind);
  const before = snapshot.meta.get(wantedOf(kind));
  const news = rows.filter((row) => row.wants && !row.invalid).length;
  return {
    valid: rows.length - invalid - skipped,
    invalid,
    skipped,
    missing: 0,
    unknown: unknown.words(),
    dateColumns: dateColumnsIn(snapshot, kind),
    get wanted() {
      return before === undefined ? snapshot.recorded.count(kind) : Number(before) + news;
    },
  };
}

const wantedOf = (kind: RecordTypeName): string => `wanted of ${kind}s`;

/**
 * Stores the size of a complete reading, and which columns hold dates, for incremental runs. Must
 * be called within a transaction.
 */
export function storeReadingFacts(
  { meta }: RunContext['snapshot'],
  kind: RecordTypeName,
  { wanted, dateColumns }: Sizes,
): void {
  meta.set(wantedOf(kind), String(wanted));
  if (dateColumns.length > 0) meta.set(dateColumnsOf(kind), JSON.stringify(dateColumns));
  else meta.drop(dateColumnsOf(kind));
}

/** The number of changed records above which everything is read, in batches and with all proofs. */
const mostChanges = 10_000;
/** The maximum number of other records that are requested one by one. */
const mostAsked = 500;
const askedAtOnce = 4;

/** The cursor of a source, or why there is none. */
interface CursorFound {
  cursor: string | undefined;
  without: FullCode | undefined;
}

/** Reads what the run needs from a source: its changes if they suffice, otherwise everything. */
export async function readPart(
  run: RunContext,
  part: MirrorPart,
  found: CursorFound,
): Promise<SourceRead> {
  if (modeName(run.mode) !== 'fast' || !part.source.changes) return readSource(run, part);
  const changes = await changesOf(run, part, found);
  return typeof changes === 'string'
    ? { ...(await readSource(run, part)), because: changes }
    : changes;
}

async function changesOf(
  run: RunContext,
  part: MirrorPart,
  { cursor, without = 'no-cursor' }: CursorFound,
): Promise<SourceRead | FullCode> {
  // Which people are chosen shows in a reading of the whole source only.
  if (run.selection) return 'sample';
  return cursor === undefined ? without : readChanges(run, part, cursor);
}

/** Reads the changes. Returns the reason if everything has to be read. */
async function readChanges(
  run: RunContext,
  part: MirrorPart,
  since: string,
): Promise<SourceRead | FullCode> {
  const { type, source } = part;
  const told = await readAllChanges(run, type, source.changes?.(since, requestOf(run, type)));
  if (typeof told === 'string') return told;
  if (!(await readRelated(run, part, told))) return 'people-many';
  const found = [...told.rows.values(), ...told.nameless];
  const rows = withKnownColumns(run, type.name, found);
  const skipped = await stageIncremental(run, type.name, rows);
  const sizes = incrementalSizes(run, type.name, { rows, skipped });
  return { ...told.certificate, whole: false, sizes };
}

function requestOf({ stop }: RunContext, { fields }: RecordType) {
  return { fields, signal: stop };
}

interface Changes {
  /** The current records by id. */
  rows: Map<string, DesiredRow>;
  /**
   * Ids that occurred more than once in the source, so it is unknown which record is the newest.
   */
  twice: Set<string>;
  /** Records without an id, which cannot be requested. */
  nameless: DesiredRow[];
  certificate: Certificate;
}

async function readAllChanges(
  run: RunContext,
  type: RecordType,
  changes: ReturnType<NonNullable<Source['changes']>> | undefined,
): Promise<Changes | FullCode> {
  const rows = new Map<string, DesiredRow>();
  const twice = new Set<string>();
  const nameless: DesiredRow[] = [];
  const end: { certificate?: Certificate | 'lost' } = {};
  if (!changes) return 'cursor-lost';
  for await (const some of endingIn(changes, (last) => (end.certificate = last))) {
    for (const record of some) {
      const row = desiredOf(type, record);
      if (rows.has(row.id)) twice.add(row.id);
      if (row.id === '') nameless.push(row);
      else rows.set(row.id, row);
    }
    const done = rows.size + nameless.length;
    run.progress({ stage: 'reading', kind: type.name, done, of: undefined });
    if (run.stop.aborted) throw reasonOf(run.stop);
    if (done > mostChanges) return 'changes-many';
  }
  const { certificate } = end;
  if (certificate === undefined || certificate === 'lost') return 'cursor-lost';
  return { rows, twice, nameless, certificate };
}

/**
 * Reads the other records of these people, and the records of people with unfinished work. Returns
 * false if they cannot all be requested one by one.
 */
async function readRelated(
  run: RunContext,
  part: MirrorPart,
  { rows, twice }: Pick<Changes, 'rows' | 'twice'>,
): Promise<boolean> {
  const { type, source } = part;
  const waiting = waitingKeys(run, type);
  // The ids of people who are not recorded are not all known.
  if (waiting.some((key) => !run.snapshot.recorded.get(type.name, key))) return false;
  const asked = new Set([...rows.keys()].filter((id) => !twice.has(id)));
  let others = 0;
  let next = [
    ...twice,
    ...waiting.flatMap((key) => idsAt(run, type, key)),
    ...relatedIds(run, type, [...rows.values()]),
  ];
  for (;;) {
    const fresh = [...new Set(next)].filter((id) => !asked.has(id));
    if (fresh.length === 0) return true;
    others += fresh.length;
    if (others > mostAsked) return false;
    const found: DesiredRow[] = [];
    await each(fresh, askedAtOnce, async (id) => {
      const record = await source.one?.(id, requestOf(run, type));
      asked.add(id);
      if (!record) rows.delete(id);
      if (!record) return;
      const row = rowOf(type, id, record);
      found.push(row);
      rows.set(id, row);
    });
    next = relatedIds(run, type, found);
  }
}

/** Returns the people with an open change, or with a refused change that is due again. */
function waitingKeys(run: RunContext, { name }: RecordType): Key[] {
  const { candidates, retryLater } = run.snapshot;
  const open = openChanges(run, name).map(({ key }) => key);
  // People with a change whose outcome this run has just found out.
  const found = candidates.next(name, '', mostChanges);
  return [...new Set([...open, ...found, ...retryLater.due(name, run.clock.now())])];
}

/** Returns all ids of records that share a current or former key with these records. */
function relatedIds(run: RunContext, type: RecordType, rows: readonly DesiredRow[]): string[] {
  const { recorded, duplicates } = run.snapshot;
  const keys = rows.flatMap(({ key, id }) => [
    ...(key === undefined ? [] : [key]),
    ...recorded.ofOrigins(type.name, [id], '').map((row) => row.key),
    ...duplicates.namesOf(type.name, id),
  ]);
  return [...new Set(keys)].flatMap((key) => idsAt(run, type, key));
}

/** The maximum number of records read for one person; with more, only opt-outs are applied. */
export const mostRecords = 50;

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
interface PersonRead {
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
    if (at >= mostRecords) break;
    const record = await source.one?.(id, { fields: type.fields, signal: run.stop });
    const row = record && rowOf(type, id, record);
    if (row) rows.push(row);
    if (row?.key !== undefined) now.add(row.key);
    for (const old of keysOf(run, part, id)) before.add(old);
    const others = [...now, ...before].flatMap((key) => idsAt(run, type, key));
    ids.push(...new Set(others.filter((other) => !ids.includes(other))));
  }
  return {
    rows,
    keys: [...new Set([...now, ...before])],
    ids,
    complete: ids.length <= mostRecords,
  };
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
