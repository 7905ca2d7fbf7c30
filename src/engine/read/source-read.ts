/** Reads a source completely into staging, in canonical form. */
import { Interrupted, type Problem, Unavailable } from '../../domain/errors.ts';
import type { DesiredRow, Key, RecordTypeName } from '../../domain/record.ts';
import { countUnknown } from '../../domain/unknown-words.ts';
import type { RecordRange } from '../../store/database/key-range.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import type { Certificate, SourceRecord } from '../../sources/source.ts';
import type { FullCode } from '../report/run-summary.ts';
import type { Contacts } from '../../records/contact/contacts.ts';
import { silentBody } from '../../records/contact/observe/contact-state.ts';
import type { RunContext } from '../context/run-context.ts';
import { type MirrorContacts, onlyKey } from '../context/mirror-context.ts';
import { inTurns, pagesOf } from '../context/work-in-parts.ts';
import type { Sizes, Findings } from '../context/run-results.ts';
import { withCommas } from '../../domain/values/counted.ts';
import type { RecordProblem } from '../../domain/record-problem.ts';
import { displayNameOf, identityOf } from '../context/person-identity.ts';
import type { Unread } from '../../store/tables/known-problems.ts';
import type { RunTally } from '../context/run-tally.ts';

/** A reading. If `whole`, a record that is not in it is not in the source. */
export type SourceRead = Certificate & {
  whole: boolean;
  sizes: Sizes;
  /** Why a fast run read the whole source, if the source can report what has changed. */
  because?: FullCode;
};

/** Each pass rewrites most pages of a table. */
const sortedAtOnce = 75_000;

const decidedAtOnce = 1_000;

const sharedId = {
  cause: 'id-shared' as const,
  reason: 'several records with different addresses have this id',
  fix: 'give every record an id of its own in the CRM',
};

const kind = 'contact';

/** What reading a source needs of a run. */
export type ReadingRun = Pick<RunContext, 'snapshot' | 'clock' | 'stop' | 'progress'>;

/**
 * Reads the whole CRM. Unchanged records are not staged if at most `mostCompared` people are
 * recorded. Throws Unavailable if it is empty although people are recorded.
 */
export async function readSource(
  run: ReadingRun,
  contacts: MirrorContacts,
  mostCompared = 0,
): Promise<SourceRead> {
  const { staging, stage } = run.snapshot;
  await rememberRecorded(run, contacts, mostCompared);
  const end: { certificate?: Certificate } = {};
  let share: number | undefined;
  const records = contacts.source.read({
    fields: contacts.fields,
    signal: run.stop,
    progress: (read) => void (share = read),
  });
  const unknown = countUnknown();
  const columns = { dates: new Set<string>(), others: new Set<string>() };
  let count = 0;
  let sorted = 0;
  const add = (rows: readonly DesiredRow[]): void => {
    rows.forEach(unknown.add);
    stage(() => staging.addDesired(rows, count + 1));
    count += rows.length;
  };
  for await (const some of endingIn(records, (last) => (end.certificate = last))) {
    const rows = some.map((record) => desiredOf(contacts, record));
    for (const { column, isDate } of rows.flatMap(({ shapes = [] }) => shapes))
      columns[isDate ? 'dates' : 'others'].add(column);
    const undecided = rows.filter((row) => row.asDates);
    if (undecided.length > 0) stage(() => staging.keepUndecided(undecided));
    add(undecided.length > 0 ? rows.filter((row) => !row.asDates) : rows);
    if (count - sorted >= sortedAtOnce) {
      await sortIn(run);
      sorted = count;
    }
    run.progress({ stage: 'reading', kind, done: count, of: undefined, share });
    if (run.stop.aborted) throw reasonOf(run.stop);
  }
  const { certificate } = end;
  if (!certificate) throw new TypeError('a reading ended without a word on how');
  const dateColumns = [...columns.dates].filter((column) => !columns.others.has(column));
  // The records that have waited for the other values of their columns.
  const undecided = pagesOf(() => {
    let rows: DesiredRow[] = [];
    stage(() => (rows = staging.takeUndecided(kind, decidedAtOnce)));
    return rows;
  });
  for await (const rows of inTurns(run, undecided)) {
    add(rows.map((row) => withSerialsRead(row, dateColumns)));
  }
  await sortIn(run);
  refuseEmpty(run, kind, count);
  const counts = await resolveIds(run, count);
  const sizes = { ...counts, unknown: unknown.words(), dateColumns };
  return { ...withAddresses(run, certificate), whole: true, sizes };
}

/** If records are known, an empty reading is a failure, not data. Throws Unavailable. */
export function refuseEmpty(
  { snapshot: { recorded } }: ReadingRun,
  kind: RecordTypeName,
  count: number,
): void {
  const known = count === 0 ? recorded.count(kind) : 0;
  if (known === 0) return;
  throw new Unavailable(
    `the source of ${kind}s is empty, but ${known} are recorded: ` +
      'taken for a failed export, nothing was changed',
    { fix: 'export it again', acted: 'no' },
  );
}

/** Withdraws the certificate if the column of addresses is empty, or another one. */
function withAddresses(
  { snapshot: { recorded, staging } }: ReadingRun,
  certificate: Certificate,
): Certificate {
  const lost = staging.countAddressless(kind);
  const known = recorded.count(kind);
  // One or two people prove nothing about a column.
  if (lost < 3 || lost * 2 <= known) return certificate;
  const flaw = {
    why: `${lost} of ${known} recorded people have no valid address any more`,
    fix: 'check that contacts.email names the column with the addresses, and export it again',
  };
  const { reading } = certificate;
  if (certificate.complete) return { complete: false, reading, ...flaw };
  const { why, fix } = certificate;
  return { complete: false, reading, why: `${why}; ${flaw.why}`, fix: `${fix}; ${flaw.fix}` };
}

/** At most this many recorded people, or this share of them, may be missing without a word. */
const missingAtMost = { people: 10, share: 0.05 };

/** Returns a note if many people are missing for the first time, as in a file that was cut. */
export function sayMissing({ recorded }: Snapshot, missing: number): Problem[] {
  if (missing <= missingAtMost.people) return [];
  const known = recorded.count(kind);
  if (missing <= known * missingAtMost.share) return [];
  const counts = [missing, known].map(withCommas).join(' of ');
  const reason = `${counts} recorded people are missing since the last reading`;
  return [{ code: 'note', reason, fix: 'check that the export is whole' }];
}

/** Yields a reading, passes its end to `ended`, and closes it if the caller stops early. */
export async function* endingIn<End>(
  reading: AsyncGenerator<SourceRecord[], End>,
  ended: (end: End) => void,
): AsyncGenerator<SourceRecord[], void> {
  ended(yield* reading);
}

async function rememberRecorded(
  run: ReadingRun,
  { channels }: MirrorContacts,
  most: number,
): Promise<void> {
  const { recorded, ranges, stage, staging } = run.snapshot;
  const size = most > 0 ? recorded.count(kind) : 0;
  if (size === 0 || size > most) return;
  staging.unchanged.begin(size, channels);
  for await (const range of inTurns(run, ranges.ofRecorded(kind))) {
    stage(() => staging.unchanged.remember(range));
  }
  for await (const range of inTurns(run, ranges.ofIds(kind))) {
    stage(() => staging.unchanged.rememberIds(range));
  }
  staging.unchanged.endRemembering();
}

async function sortIn(run: ReadingRun): Promise<void> {
  const { staging, ranges, stage } = run.snapshot;
  staging.beginSorting();
  stage(() => staging.sortKeyless({ kind }));
  for await (const range of inTurns(run, ranges.ofUnsorted(kind))) {
    stage(() => staging.sortRange(range));
  }
  staging.endSorting();
}

/** Finds ids that records share, names invalid records by them, and counts all. */
async function resolveIds(run: ReadingRun, count: number) {
  const { staging, ranges, stage, absences } = run.snapshot;
  // The ranges of all keys, including the names added below.
  const all: RecordRange[] = [];
  const ofRest = staging.unchanged.isCompared();
  for await (const add of inTurns(run, staging.unchanged.addUnseen())) stage(add);
  stage(() => staging.noteKeyless(kind));
  for await (const range of inTurns(run, ofRest ? ranges.ofRest(kind) : ranges.ofKeys(kind))) {
    all.push(range);
    stage(() => staging.noteStrange(range));
  }
  for await (const range of inTurns(run, ofRest ? ranges.ofStrangeIds(kind) : ranges.ofIds(kind))) {
    stage(() => (ofRest ? staging.findSharedStrange(range) : staging.findSharedIds(range)));
  }
  for await (const range of inTurns(run, ofRest ? all : [])) {
    stage(() => staging.findSharedStaged(range));
  }
  const sizes = { ...staging.unchanged.counts(), invalid: 0, missing: 0, skipped: 0 };
  const nameInvalid = (): void => {
    staging.invalidateSharedIds({ kind, ...sharedId });
    staging.nameByOrigin(kind, count);
    sizes.skipped = staging.skipUnknown(kind);
  };
  for await (const work of inTurns(run, [nameInvalid])) stage(work);
  for await (const range of inTurns(run, all)) {
    const { valid, wanted } = staging.countDesired(range);
    sizes.valid += valid;
    sizes.wanted += wanted;
    sizes.missing += ofRest ? absences.countNewOfRest(range) : absences.countNew(range);
  }
  sizes.invalid = staging.countInvalid(kind);
  return sizes;
}

/** Returns the row of a record; a record that cannot be read becomes an invalid row. */
export function desiredOf({ desire }: Contacts, record: SourceRecord): DesiredRow {
  if ('value' in record) return desire(record.value, record.where);
  return {
    kind,
    id: '',
    key: undefined,
    alias: '',
    place: record.where,
    body: silentBody,
    fingerprint: '',
    wants: false,
    presence: 'present',
    invalid: { cause: 'unreadable-record', reason: record.broken, fix: record.fix },
  };
}

export function reasonOf(stop: AbortSignal): Error {
  return stop.reason instanceof Error ? stop.reason : new Interrupted('SIGTERM');
}

/**
 * Returns the row with its serial numbers of Excel (45900) as dates that lost their format, if
 * their columns hold nothing but dates.
 */
export function withSerialsRead(row: DesiredRow, dateColumns: readonly string[]): DesiredRow {
  const { asDates } = row;
  const isRead = asDates?.columns.every((column) => dateColumns.includes(column));
  return asDates && isRead ? asDates.row : row;
}

const page = 500;
const mostListed = 100;

/** Lists invalid records. In a run about all people, each unknown word is listed once. */
export async function listInvalid(
  run: RunContext,
  { tally, findings }: { tally: RunTally; findings: Findings },
): Promise<void> {
  const only = onlyKey(run);
  if (only !== undefined) {
    for (const row of run.snapshot.staging.desired(kind, only)) noticeInvalid(run, row, tally);
    return;
  }
  const { invalid } = run.snapshot.staging;
  const pages = pagesOf((last?: { row: number }) => invalid(kind, last?.row ?? 0, page));
  for await (const rows of inTurns(run, pages)) {
    run.snapshot.stage(() => {
      for (const row of rows) noticeInvalid(run, row, tally);
    });
    if (rows.length < page) break;
  }
  tally.unknown(kind, findings.sizes.unknown);
}

function noticeInvalid(run: RunContext, row: DesiredRow, tally: RunTally): void {
  if (!row.invalid) return;
  const { unreadableOptOuts } = run.snapshot;
  const { key, isErased } = nameRecord(run, row);
  const isLost = row.invalid.cause === 'address-invalid';
  // An opt-out may wait if the person is subscribed, or if nobody knows who it is.
  const urgent = row.invalid.mayOptOut && (unreadableOptOuts.isSubscribed(row) ?? isLost);
  const { about, fix, option, value } = row.invalid;
  const isUnsure = urgent && !isLost;
  const reason = isUnsure
    ? `${row.invalid.reason}, and may say that this person, who is subscribed, wants no mail`
    : row.invalid.reason;
  // Other places than lines of a file name the record by its id.
  const place = isErased && !/^(line|row) \d+$/.test(row.place) ? undefined : row.place;
  const problem: RecordProblem = {
    kind,
    key,
    class: 'invalid',
    part: '',
    cause: urgent ? 'opt-out-unreadable' : (row.invalid.cause ?? 'unreadable-record'),
    about: isUnsure ? reason : (about ?? reason),
    option,
    place,
    ...(isErased ? {} : { value, crmId: row.id === '' ? undefined : row.id }),
    reason: place === undefined ? reason : `${place}: ${reason}`,
    fix,
    ...(urgent && { urgent: true }),
  };
  tally.notice(problem, onlyKey(run) === undefined ? option : undefined);
}

/** Names a record by key, id or place, and an erased person by a hash. */
function nameRecord(
  run: RunContext,
  { key, id, place }: DesiredRow,
): { key: Key; isErased: boolean } {
  const { meta, recorded } = run.snapshot;
  const name = key ?? (id === '' ? place : `id ${id}`);
  const who = key === undefined ? { key: '', ids: [id] } : identityOf(run, key);
  const entries = run.doNotContact.concerning(who);
  const known = key === undefined ? undefined : recorded.get(kind, key);
  const shown = displayNameOf(meta, name, { recorded: known, entries });
  return { key: shown, isErased: shown !== name };
}

/** Counts and lists the known problems of records that an incremental reading lacks. */
export async function listUnread(
  run: RunContext,
  { tally, findings }: { tally: RunTally; findings: Findings },
): Promise<Unread | undefined> {
  const { whole, reading } = findings;
  if (onlyKey(run) !== undefined || whole || reading === '') return undefined;
  const { retryLater, ranges } = run.snapshot;
  const counts = { conflicts: 0, invalid: 0, rejected: 0, refused: 0 };
  for await (const range of inTurns(run, ranges.ofProblems(kind))) {
    const some = retryLater.countUnread(range);
    for (const which of ['conflicts', 'invalid', 'rejected', 'refused'] as const) {
      counts[which] += some[which];
    }
  }
  const optOuts = retryLater.unreadOptOuts(kind);
  const unreadable = run.snapshot.unreadableOptOuts.unread(kind, mostListed);
  const found = { ...counts, optOuts, unreadable };
  tally.unread(found);
  return found;
}
