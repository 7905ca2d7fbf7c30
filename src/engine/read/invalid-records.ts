/**
 * Lists the source records that cannot be used. Each has a name that stays the same when lines of a
 * file move.
 */
import type { RecordProblem } from '../../domain/record-problem.ts';
import type { DesiredRow, Key } from '../../domain/record.ts';
import type { RecordType } from '../../records/record-type.ts';
import type { RunContext } from '../context/run-context.ts';
import { onlyKey } from '../context/mirror-context.ts';
import { displayNameOf, identityOf } from '../context/person-identity.ts';
import type { Findings } from '../context/run-state.ts';
import type { Unread } from '../../store/tables/known-problems.ts';
import type { RunTally } from '../context/run-tally.ts';
import { inTurns, pagesOf } from '../context/work-in-parts.ts';

const page = 500;
/** The maximum number of opt-outs that a run lists, of records that it has not read. */
const mostListed = 100;

/** Lists invalid records. In a run about all people, each unknown word is listed once. */
export async function listInvalid(
  run: RunContext,
  type: RecordType,
  { tally, findings }: { tally: RunTally; findings: Findings },
): Promise<void> {
  const only = onlyKey(run);
  if (only !== undefined) {
    const rows = run.snapshot.staging.desired(type.name, only);
    for (const row of rows) noticeOne(run, type, { row, tally });
    return;
  }
  const { invalid } = run.snapshot.staging;
  const pages = pagesOf((last?: { row: number }) => invalid(type.name, last?.row ?? 0, page));
  for await (const rows of inTurns(run, pages)) {
    run.snapshot.stage(() => {
      for (const row of rows) noticeOne(run, type, { row, tally });
    });
    if (rows.length < page) break;
  }
  tally.unknown(type.name, findings.sizes.unknown);
}

function noticeOne(
  run: RunContext,
  type: RecordType,
  { row, tally }: { row: DesiredRow; tally: RunTally },
): void {
  if (!row.invalid) return;
  const { unreadableOptOuts } = run.snapshot;
  const { key, isErased } = nameRecord(run, type, row);
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
    kind: type.name,
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

/** Returns a record's key, id or place for problems, and only a hash of an erased person. */
function nameRecord(
  run: RunContext,
  type: RecordType,
  { key, id, place }: DesiredRow,
): { key: Key; isErased: boolean } {
  const { meta, recorded } = run.snapshot;
  const name = key ?? (id === '' ? place : `id ${id}`);
  if (!type.capabilities.doNotContact) return { key: name, isErased: false };
  const who = key === undefined ? { key: '', ids: [id] } : identityOf(run, type, key);
  const entries = run.doNotContact.concerning(who);
  const known = key === undefined ? undefined : recorded.get(type.name, key);
  const shown = displayNameOf(meta, name, { recorded: known, entries });
  return { key: shown, isErased: shown !== name };
}

/** Counts and lists the known problems of records that an incremental reading did not contain. */
export async function listUnread(
  run: RunContext,
  { name }: RecordType,
  { tally, findings }: { tally: RunTally; findings: Findings },
): Promise<Unread | undefined> {
  const { whole, reading } = findings;
  if (onlyKey(run) !== undefined || whole || reading === '') return undefined;
  const { retryLater, ranges } = run.snapshot;
  const counts = { conflicts: 0, invalid: 0, rejected: 0, refused: 0 };
  for await (const range of inTurns(run, ranges.ofProblems(name))) {
    const some = retryLater.countUnread(range);
    for (const which of ['conflicts', 'invalid', 'rejected', 'refused'] as const) {
      counts[which] += some[which];
    }
  }
  const optOuts = retryLater.unreadOptOuts(name);
  const unreadable = run.snapshot.unreadableOptOuts.unread(name, mostListed);
  const found = { ...counts, optOuts, unreadable };
  tally.unread(found);
  return found;
}
