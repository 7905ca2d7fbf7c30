/**
 * Reads only what has changed, from a source that reports changes: the changed records, the other
 * records of the same people (several records with one address are one person), and the records of
 * people with unfinished work. The run concludes nothing about other people, and its duration
 * depends on the number of changes rather than on the size of the CRM.
 *
 * Everything is read instead if there is no cursor, if the source no longer knows it, if too much
 * has changed, or if a person with unfinished work has a record that cannot be requested.
 */
import type { RecordType } from '../../records/record-type.ts';
import type { FullCode } from '../report/full-reasons.ts';
import type { DesiredRow, Key } from '../../domain/record.ts';
import type { Certificate, Source } from '../../sources/source.ts';
import { each } from '../context/work-in-parts.ts';
import { openChanges, type RunContext } from '../context/run-context.ts';
import { type MirrorPart, modeName } from '../context/mirror-context.ts';
import { idsAt, rowOf } from './person-read.ts';
import { incrementalSizes, stageIncremental, withKnownColumns } from './incremental-read.ts';
import { desiredOf, endingIn, readSource, type SourceRead, reasonOf } from './source-read.ts';

/** The number of changed records above which everything is read, in batches and with all proofs. */
const most = 10_000;
/** The maximum number of other records that are requested one by one. */
const mostAsked = 500;
const askedAtOnce = 4;

/** The cursor of a source, or why there is none. */
export interface CursorFound {
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
    if (done > most) return 'changes-many';
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
  const found = candidates.next(name, '', most);
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
