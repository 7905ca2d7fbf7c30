/**
 * Reads a part of a source: what has changed, or the records of one person. The run concludes
 * nothing about other people. Several records with one address are one person, and the strictest of
 * them counts; earlier readings show which records belong to a person.
 *
 * A source that reports changes is read for the changed records, the other records of the same
 * people, and the records of people with unfinished work. Everything is read instead if there is no
 * cursor, if the source no longer knows it, if too much has changed, or if a person with unfinished
 * work has a record that cannot be requested.
 */
import type { Snapshot } from '../../store/snapshot.ts';
import type { DesiredRow, Key } from '../../domain/record.ts';
import {
  withSerialsRead,
  desiredOf,
  endingIn,
  readSource,
  type SourceRead,
  reasonOf,
} from './source-read.ts';
import { storedFact } from '../../store/database/meta-table.ts';
import { countUnknown } from '../../domain/unknown-words.ts';
import { everything } from '../../store/database/key-range.ts';
import { type RunContext, openChanges, isFresh, supersededKeys } from '../context/run-context.ts';
import { inTurns, each } from '../context/work-in-parts.ts';
import {
  type Sizes,
  type Findings,
  noFindings,
  type SourceCursor,
} from '../context/run-results.ts';
import type { FullCode } from '../report/run-summary.ts';
import type { Certificate, SourceRecord } from '../../sources/source.ts';
import { type MirrorContacts, modeName } from '../context/mirror-context.ts';
import type { Contacts } from '../../records/contact/contacts.ts';
import { Busy } from '../../domain/errors.ts';
import type { PersonLock } from '../context/person-locks.ts';
import { retrySchedules } from '../../domain/retry-schedules.ts';

const stagedAtOnce = 1_000;

async function stageRows(run: RunContext, found: readonly DesiredRow[]): Promise<Sizes> {
  const { snapshot } = run;
  const { staging, stage, meta } = snapshot;
  // A few records do not show what their columns hold, so the last complete reading tells.
  const columns = dateColumns.read(meta) ?? [];
  const rows = found.map((row) => withSerialsRead(row, columns));
  const count = Math.ceil(rows.length / stagedAtOnce);
  const starts = Array.from({ length: count }, (_, nth) => nth * stagedAtOnce);
  for await (const start of inTurns(run, starts)) {
    const some = rows.slice(start, start + stagedAtOnce);
    stage(() => staging.addDesired(some, start + 1));
  }
  stage(() => {
    staging.sortKeyless({ kind });
    staging.sortRange({ kind, ...everything });
  });
  staging.endSorting();
  let skipped = 0;
  stage(() => {
    staging.noteKeyless(kind);
    staging.noteStrange({ kind, ...everything });
    staging.nameByOrigin(kind, rows.length);
    skipped = staging.skipUnknown(kind);
  });
  const unknown = countUnknown();
  rows.forEach(unknown.add);
  const invalid = staging.countInvalid(kind);
  const before = meta.get(wanted);
  const news = rows.filter((row) => row.wants && !row.invalid).length;
  return {
    valid: rows.length - invalid - skipped,
    invalid,
    skipped,
    missing: 0,
    unknown: unknown.words(),
    dateColumns: columns,
    // Counted when a guard needs it.
    get wanted() {
      return before === undefined ? snapshot.recorded.count(kind) : Number(before) + news;
    },
  };
}

const dateColumns = storedFact<readonly string[]>(
  'date columns of contacts',
  'the date columns of a reading',
);

const wanted = 'wanted of contacts';
const kind = 'contact';

/** Stores the size and date columns of a complete reading. Must be called in a transaction. */
export function storeReadingFacts({ meta }: Snapshot, sizes: Sizes): void {
  meta.set(wanted, String(sizes.wanted));
  dateColumns.write(meta, sizes.dateColumns.length > 0 ? sizes.dateColumns : undefined);
}

/** By default; a person takes some 70 bytes. */
const mostCompared = 2_000_000;

/** The number of changed records above which everything is read, in batches and with all proofs. */
const mostChanges = 10_000;
const mostAsked = 500;
const askedAtOnce = 4;

/** Reads the changes of a source if they suffice, or everything; `without`: why no cursor. */
export async function readContacts(
  run: RunContext,
  contacts: MirrorContacts,
  { cursor, without = 'no-cursor' }: SourceCursor,
): Promise<SourceRead> {
  const isFast = modeName(run.mode) === 'fast';
  // Which people are selected depends on everybody who was read.
  const most = isFast && !run.selection ? (run.mostCompared ?? mostCompared) : 0;
  if (!isFast || !contacts.source.changes) return readSource(run, contacts, most);
  let read: SourceRead | FullCode = without;
  // Which people are chosen shows in a reading of the whole source only.
  if (run.selection) read = 'sample';
  else if (cursor !== undefined) read = await readChanges(run, contacts, cursor);
  if (typeof read !== 'string') return read;
  return { ...(await readSource(run, contacts, most)), because: read };
}

/** Returns the reason if everything has to be read. */
async function readChanges(
  run: RunContext,
  contacts: MirrorContacts,
  since: string,
): Promise<SourceRead | FullCode> {
  const { source, fields } = contacts;
  // The current records by id. Of ids that occur twice, it is unknown which record is the newest.
  const rows = new Map<string, DesiredRow>();
  const twice = new Set<string>();
  const nameless: DesiredRow[] = [];
  const end: { certificate?: Certificate | 'lost' } = {};
  const changes = source.changes?.(since, { fields, signal: run.stop });
  if (!changes) return 'cursor-lost';
  for await (const some of endingIn(changes, (last) => (end.certificate = last))) {
    for (const record of some) {
      const row = desiredOf(contacts, record);
      if (rows.has(row.id)) twice.add(row.id);
      if (row.id === '') nameless.push(row);
      else rows.set(row.id, row);
    }
    const done = rows.size + nameless.length;
    run.progress({ stage: 'reading', kind, done, of: undefined });
    if (run.stop.aborted) throw reasonOf(run.stop);
    if (done > mostChanges) return 'changes-many';
  }
  const { certificate } = end;
  if (certificate === undefined || certificate === 'lost') return 'cursor-lost';
  if (!(await readRelated(run, contacts, { rows, twice }))) return 'people-many';
  const sizes = await stageRows(run, [...rows.values(), ...nameless]);
  return { ...certificate, whole: false, sizes };
}

/** Reads these people's other records. Returns false if they are too many to request singly. */
async function readRelated(
  run: RunContext,
  contacts: MirrorContacts,
  { rows, twice }: { rows: Map<string, DesiredRow>; twice: ReadonlySet<string> },
): Promise<boolean> {
  const { source, fields } = contacts;
  const { candidates, retryLater } = run.snapshot;
  // Among them are people with a change whose outcome this run has just found out.
  const waiting = new Set([
    ...openChanges(run, kind).map(({ key }) => key),
    ...candidates.next(kind, '', mostChanges),
    ...retryLater.due(kind, run.clock.now()),
  ]);
  // The ids of people who are not recorded are not all known.
  if ([...waiting].some((key) => !run.snapshot.recorded.get(kind, key))) return false;
  const asked = new Set([...rows.keys()].filter((id) => !twice.has(id)));
  let others = 0;
  let next = [
    ...twice,
    ...[...waiting].flatMap((key) => idsAt(run, key)),
    ...relatedIds(run, [...rows.values()]),
  ];
  for (;;) {
    const fresh = [...new Set(next)].filter((id) => !asked.has(id));
    if (fresh.length === 0) return true;
    others += fresh.length;
    if (others > mostAsked) return false;
    const found: DesiredRow[] = [];
    await each(fresh, askedAtOnce, async (id) => {
      const record = await source.one?.(id, { fields, signal: run.stop });
      asked.add(id);
      if (!record) rows.delete(id);
      if (!record) return;
      const row = rowOf(contacts, id, record);
      found.push(row);
      rows.set(id, row);
    });
    next = relatedIds(run, found);
  }
}

function relatedIds(run: RunContext, rows: readonly DesiredRow[]): string[] {
  const { recorded, duplicates } = run.snapshot;
  const keys = rows.flatMap(({ key, id }) => [
    ...(key === undefined ? [] : [key]),
    ...recorded.ofOrigin(kind, id, '').map((row) => row.key),
    ...duplicates.namesOf(kind, id),
  ]);
  return [...new Set(keys)].flatMap((key) => idsAt(run, key));
}

/** The maximum number of records read for one person; with more, only opt-outs are applied. */
export const mostRecords = 50;

export function personIsLocked(): Busy {
  return new Busy('another run is at this person', { fix: 'run again when it has ended' });
}

/**
 * Locks the person of the record with this id, and stages the person's records in the source. The
 * key is undefined if the record belongs to no known person and never did. Throws the source's
 * errors, and Busy if the person's address changes on every attempt.
 */
export async function readPerson(
  run: RunContext,
  contacts: MirrorContacts,
  id: string,
): Promise<{ lock: PersonLock; key: Key | undefined; findings: Findings }> {
  const locked = { keys: new Set(keysOf(run, id)), ids: new Set([id]) };
  for (let tries = 0; tries < retrySchedules.personRead.tries; tries += 1) {
    const lock = await run.locks.take({ keys: [...locked.keys], ids: [...locked.ids] });
    try {
      const { rows, keys, ids } = await readRecords(run, contacts, id);
      // A record that was read before its key was locked may be out of date.
      if (keys.every((one) => locked.keys.has(one)) && ids.every((one) => locked.ids.has(one))) {
        const certified = ids.length <= mostRecords;
        const sizes = await stageRows(run, rows);
        const readAt = run.clock.now();
        const still = (): boolean => isFresh(run, readAt);
        return { lock, key: keys[0], findings: { ...noFindings, certified, sizes, still } };
      }
      for (const one of keys) locked.keys.add(one);
      for (const one of ids) locked.ids.add(one);
    } catch (error) {
      lock.release();
      throw error;
    }
    lock.release();
  }
  throw personIsLocked();
}

/** Stores which people have several records, for later runs that read one; not of erased people. */
export async function keepDuplicates(
  run: RunContext,
  contacts: MirrorContacts | undefined,
  { whole, certified }: Findings,
  when: 'read' | 'done',
): Promise<void> {
  if (!contacts?.source.one) return;
  const { ranges, duplicates, staging, transaction } = run.snapshot;
  // An incremental reading does not need a scan of all recorded people.
  const ofRest = staging.unchanged.isCompared();
  const people = ofRest ? ranges.ofRest(kind) : ranges.ofKeys(kind);
  const all = whole ? people : [{ kind, ...everything } as const];
  for await (const range of inTurns(run, all)) {
    transaction(() => duplicates.note({ ...range, done: when === 'done' }));
  }
  transaction(() => {
    if (when === 'done' && certified && whole) duplicates.dropOld({ kind });
    const isErased = run.doNotContact.erased();
    const gone = isErased ? supersededKeys(run).filter(isErased) : [];
    for (const key of gone) duplicates.drop(kind, key);
  });
}

function keysOf({ snapshot }: RunContext, id: string): Key[] {
  return snapshot.recorded.ofOrigin(kind, id, '').map(({ key }) => key);
}

/** The known ids of a person's records in the source. */
export function idsAt({ snapshot }: { snapshot: Snapshot }, key: Key): string[] {
  const { recorded, duplicates } = snapshot;
  return [...new Set([...recorded.originsOf(kind, key), ...duplicates.of(kind, key)])];
}

/** Reads a person's records. Returns them, their keys, the present one first, and their ids. */
async function readRecords(run: RunContext, contacts: MirrorContacts, first: string) {
  const { source, fields } = contacts;
  const ids = [first];
  const now = new Set<Key>();
  const before = new Set<Key>();
  const rows: DesiredRow[] = [];
  for (const [at, id] of ids.entries()) {
    if (at >= mostRecords) break;
    const record = await source.one?.(id, { fields, signal: run.stop });
    const row = record && rowOf(contacts, id, record);
    if (row) rows.push(row);
    if (row?.key !== undefined) now.add(row.key);
    for (const old of keysOf(run, id)) before.add(old);
    const others = [...now, ...before].flatMap((key) => idsAt(run, key));
    ids.push(...new Set(others.filter((other) => !ids.includes(other))));
  }
  return { rows, keys: [...new Set([...now, ...before])], ids };
}

/** Returns the record's row. A record that cannot be read keeps this id. */
export function rowOf(contacts: Contacts, id: string, record: SourceRecord): DesiredRow {
  const row = desiredOf(contacts, record);
  return row.id === '' ? { ...row, id } : row;
}
