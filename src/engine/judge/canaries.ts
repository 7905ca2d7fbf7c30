/**
 * Runs the canaries of a mirror: chooses the slice of a class that is changed first, leaves
 * everybody else to a later run, reads the slice back once its wait is over and judges what the
 * platform shows, and moves the canaries on when the run ends. How they are stored comes last.
 *
 * Who is in a slice follows from a hash of the record's key and of the canary's seed, so that it is
 * the same in every run, in a plan before it without a snapshot too, and that another canary meets
 * other people. A full run finds the slice in its listing. A fast run reads the people one by one,
 * if they are not too many; otherwise the next full run does it.
 */
import { hash } from 'node:crypto';
import {
  advance,
  bookOf,
  type Canary,
  type CanaryBook,
  type CanaryEvent,
  type CanaryPolicy,
  seedOf,
  sliceSize,
  canaryBounds,
  endOf,
  type CanaryCounts,
  mended,
  waitedMs,
} from '../../domain/guards/canary.ts';
import { type Steps, eachPart, each } from '../context/work-in-parts.ts';
import { askedClasses, type AskedClass } from '../../domain/guards/plan-rule.ts';
import { type Meta, storedFact } from '../../store/database/meta-table.ts';
import { isFirstLoad, type RunContext } from '../context/run-context.ts';
import type { MirrorContacts } from '../context/mirror-context.ts';
import { findingsOf, type Known, type RunParts, type RunResults } from '../context/run-results.ts';
import { type GuardClass, guardRows } from '../../domain/guard-classes.ts';
import type { Key, ObservedRow, RecordTypeName } from '../../domain/record.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import type { SentChange } from '../../store/holds/judged-changes.ts';
import { mostOf } from '../../domain/guards/guard-limits.ts';
import type { Populations } from './guard-counts.ts';
import type { PlanDecision } from '../../store/holds/holds.ts';
import { Interrupted, isExpected, type Problem } from '../../domain/errors.ts';
import { contactDrift } from '../../records/contact/contacts.ts';
import { templateDrift } from '../../records/template/templates.ts';
import { countApprovals } from '../../store/tables/journal.ts';
import { nowByBoth } from '../context/platform-knowledge.ts';
import { judgeCanary, type ToldCanary, tellCanary, waitingWords } from '../report/guard-text.ts';

/** Returns a function that tells whether a record is in the slice, unless it is a newcomer. */
export function memberOf({ seed, through }: { seed: string; through: string }) {
  const hashOf = hasher(seed);
  return (key: Key): boolean => hashOf(key) <= through;
}

/** Returns the changes of a slice that have been sent and have an outcome. */
function sentOf({ guarded }: Snapshot, guard: AskedClass, canary: Canary): SentChange[] {
  const isMember = memberOf(canary);
  return guarded.canary.sent({ guard, run: canary.run }).filter(({ key }) => isMember(key));
}

function hasher(seed: string) {
  return (key: Key): string => hash('sha256', `${seed} ${key}`).slice(0, 12);
}

/** Begins the canary of a class if one is due, and leaves what waits for it to a later run. */
export function* deferToCanaries(
  run: RunContext,
  of: GuardClass,
  { book: before, populations }: { book: CanaryBook | undefined; populations: Populations },
): Steps<CanaryBook | undefined> {
  const guard = askedClasses.find((one) => one === of);
  if (!run.canary || !before || !guard) return before;
  const { guarded, stage } = run.snapshot;
  const book = before.classes[guard]
    ? before
    : yield* beginIfDue(run, guard, { book: before, populations, policy: run.canary });
  const canary = book.classes[guard];
  if (canary?.state !== 'applying' && canary?.state !== 'waiting') return book;
  // With the slice pass the records that have been changed and, until all of it is, as many others
  // as it has room for. Newcomers whose hash is in it wait, too.
  const isMember = memberOf(canary);
  const passing = new Set(sentOf(run.snapshot, guard, canary).map(({ key }) => key));
  const room = canary.size - passing.size;
  if (canary.state === 'applying' && room > 0) {
    const among = (key: Key): boolean => isMember(key) && !passing.has(key);
    const next = yield* firstOf(run, guard, { seed: canary.seed, most: room, among });
    for (const { key } of next) passing.add(key);
  }
  yield* eachPart(guarded.ranges({ guard }), (range) => {
    const keys = guarded.canary.keys(range).filter((key) => !passing.has(key));
    if (keys.length > 0) stage(() => guarded.deferSome({ ...range, keys, by: 'canary' }));
  });
  return book;
}

/** Returns the canary of a class if it is out of bounds. */
export function failedCanary(
  book: CanaryBook | undefined,
  guard: GuardClass,
): Extract<Canary, { state: 'failed' }> | undefined {
  const canary = guard === 'opt_out' ? undefined : book?.classes[guard];
  return canary?.state === 'failed' ? canary : undefined;
}

/**
 * Marks failed canaries as approved if nothing of what was shown is left to approve, which this run
 * may not have planned.
 */
export function passApproved(
  run: RunContext,
  before: CanaryBook | undefined,
  approved: readonly PlanDecision[],
): CanaryBook | undefined {
  const { guarded, holds } = run.snapshot;
  const approvals = approved.map(({ id }) => id);
  let book = before;
  for (const guard of askedClasses) {
    if (!book || !failedCanary(book, guard)) continue;
    if (guarded.canary.countApproved(guard) === 0 || guarded.countHeld(guard) > 0) continue;
    if (!holds.isUndecided({ guard, approvals }))
      book = moveCanary(run, book, guard, { is: 'approved' });
  }
  return book;
}

function* beginIfDue(
  run: RunContext,
  guard: AskedClass,
  {
    book,
    populations,
    policy,
  }: { book: CanaryBook; populations: Populations; policy: CanaryPolicy },
): Steps<CanaryBook> {
  const { guarded } = run.snapshot;
  const isTemplate = guardRows[guard].recordType === 'template';
  const because = isTemplate ? ('templates' as const) : book.occasion;
  if (!because) return book;
  let planned = 0;
  yield* eachPart(guarded.ranges({ guard }), (range) => {
    planned += guarded.canary.keys(range).length;
  });
  if (planned === 0) return book;
  let { floor } = policy;
  if (isTemplate) {
    // More than the guard's limit passes only if somebody has approved it: that is many, too.
    const of = yield* populations.count(guard, planned);
    floor = Math.min(floor, mostOf({ of }, run.guards[guard]));
  }
  if (planned <= floor) return book;
  const seed = seedOf(run.name, book);
  const most = sliceSize(guard, policy, planned);
  const first = yield* firstOf(run, guard, { seed, most, among: () => true });
  return putCanary(run, book, guard, {
    because,
    run: run.id,
    seed,
    begunAt: run.clock.now(),
    through: first.at(-1)?.hash ?? '',
    size: first.length,
    of: planned,
    state: 'applying',
  });
}

/** Returns the planned records with the smallest hashes, by hash. */
function* firstOf(
  { snapshot }: RunContext,
  guard: AskedClass,
  { seed, most, among }: { seed: string; most: number; among: (key: Key) => boolean },
): Steps<{ key: Key; hash: string }[]> {
  const { guarded } = snapshot;
  const hashOf = hasher(seed);
  let first: { key: Key; hash: string }[] = [];
  yield* eachPart(guarded.ranges({ guard }), (range) => {
    const last = first.length < most ? undefined : first.at(-1)?.hash;
    const nearer = guarded.canary
      .keys(range)
      .filter(among)
      .map((key) => ({ key, hash: hashOf(key) }))
      .filter(({ hash }) => last === undefined || hash < last);
    if (nearer.length === 0) return;
    const all = [...first, ...nearer].toSorted((a, b) => (a.hash < b.hash ? -1 : 1));
    first = all.slice(0, most);
  });
  return first;
}

/** A fast run reads at most so many people; each costs a request or two. */
const readAtMost = 500;
const readAtOnce = 16;

/**
 * Opens the canaries of a run, and returns those that the snapshot holds. Runs about one person or
 * a list of people have none, and neither has a run that undoes another: they are about people that
 * somebody has named.
 */
export function openCanaries(run: RunContext): CanaryBook {
  const { meta, runs, transaction } = run.snapshot;
  const book = bookOf(storedCanaries(meta), {
    mapping: run.contacts?.manner,
    last: runs.lastMapping(run.id),
    isFirstLoad: isFirstLoad({ snapshot: run.snapshot }),
    at: run.clock.now(),
  });
  if (run.writes) transaction(() => canaryFact.write(meta, book));
  return book;
}

/**
 * Reads back the slice of a class if its wait is over. Returns the canaries, and a note if the
 * slice could not be read.
 */
export async function readBackCanary(
  run: RunContext,
  before: CanaryBook,
  guard: AskedClass,
  { parts, known }: { parts: RunParts; known: Known },
): Promise<{ book: CanaryBook; notes: Problem[] }> {
  const { snapshot, canary: policy } = run;
  const kind = guardRows[guard].recordType;
  const canary = before.classes[guard];
  const isRead = parts[`${kind}s`] !== undefined;
  if (!policy || canary?.state !== 'waiting' || !isRead) return { book: before, notes: [] };
  const first = waitBefore(run, before, guard, canary);
  if (first.waitedMs < policy.waitMs) return { book: first.book, notes: [] };
  const sent = sentOf(snapshot, guard, canary);
  const people = kind === 'contact' ? parts.contacts : undefined;
  const shown = await readSlice(run, sent, { kind, people, known });
  if (typeof shown === 'string') {
    const reason = `the canary is not read back yet: ${shown}`;
    return { book: first.book, notes: [{ code: 'note', reason }] };
  }
  // A fast run may have the platform's time only from this reading.
  const { book, waitedMs: afterMs } = waitBefore(run, first.book, guard, canary);
  if (afterMs < policy.waitMs) return { book, notes: [] };
  // The records by what is wrong with them; each counts once in a bound.
  const counts: CanaryCounts = { unsubscribed: 0, refused: 0, drift: 0, of: 0 };
  for (const [key, changes] of Map.groupBy(sent, (change) => change.key)) {
    const rows = shown(key);
    const recorded = snapshot.recorded.get(kind, key);
    const all = changes.map((change) => {
      if (change.state === 'rejected') return 'refused';
      return kind === 'contact' ? contactDrift(change, rows) : templateDrift(rows, recorded);
    });
    counts.of += 1;
    for (const bound of canaryBounds) if (all.includes(bound)) counts[bound] += 1;
  }
  const says = judgeCanary(guard, counts, { ...policy, afterMs });
  const approvalsGiven = countApprovals(snapshot.meta);
  return {
    book: moveCanary(run, book, guard, { is: 'read', says, counts, approvalsGiven }),
    notes: [],
  };
}

type WaitingCanary = Extract<Canary, { state: 'waiting' }>;

/**
 * Returns how long the canary had waited when the run began, because everything that the run has
 * read is at least as new as that. Stores times that were mended.
 */
function waitBefore(
  run: RunContext,
  book: CanaryBook,
  guard: AskedClass,
  canary: WaitingCanary,
): { book: CanaryBook; waitedMs: number } {
  const { startedAt } = run;
  const { at, platformAt } = nowByBoth(run);
  const begun = {
    at: startedAt,
    platformAt: platformAt === null ? null : platformAt - (at - startedAt),
  };
  const since = mended(canary.since, begun);
  const isMended = since.at !== canary.since.at || since.platformAt !== canary.since.platformAt;
  const kept = isMended ? putCanary(run, book, guard, { ...canary, since }) : book;
  return { book: kept, waitedMs: waitedMs(since, begun) };
}

/** Returns what the platform shows of a slice, or why that is not known. */
async function readSlice(
  run: RunContext,
  sent: readonly SentChange[],
  {
    kind,
    people,
    known,
  }: { kind: RecordTypeName; people: MirrorContacts | undefined; known: Known },
): Promise<((key: Key) => readonly ObservedRow[]) | string> {
  const { staging, recorded } = run.snapshot;
  const { listing } = findingsOf(known, kind);
  if (listing?.complete) return (key) => staging.observed(kind, key);
  if (run.mode !== 'fast') return `the listing of the ${kind}s is not complete`;
  const keys = [...new Set(sent.map(({ key }) => key))];
  if (!people || keys.length > readAtMost) return `the next full run reads ${keys.length} ${kind}s`;
  const rows = new Map<Key, ObservedRow[]>();
  try {
    await each(keys, readAtOnce, async (key) => {
      const id = recorded.get(kind, key)?.id;
      rows.set(key, await people.read({ key, id }, run.stop));
    });
  } catch (error) {
    if (!isExpected(error) || error instanceof Interrupted) throw error;
    return error.message;
  }
  return (key) => rows.get(key) ?? [];
}

/**
 * Moves the canaries on when a run ends, and returns them: a slice whose changes have all been made
 * begins to wait, and what no canary is needed for any more ends.
 */
export function closeCanaries(results: RunResults): CanaryBook | undefined {
  const { run, parts, known, breaker } = results;
  const { guarded, journal } = run.snapshot;
  let { canaries: book } = results.verdict;
  if (!run.writes || run.quarantined || !results.plan) return book;
  for (const guard of book ? askedClasses : []) {
    const canary = book?.classes[guard];
    const { recordType } = guardRows[guard];
    if (!book || !canary || !parts[`${recordType}s`]) continue;
    // Has the run made what it could of the class, from a complete reading?
    const isCut =
      results.failure !== undefined || run.stop.aborted || breaker.endsEarly(recordType);
    const { certified, listing } = findingsOf(known, recordType);
    if (isCut || !certified) continue;
    const left = guarded.countDeferred(guard, 'window') + guarded.canary.countOpen(run.id, guard);
    if (left > 0 || journal.open(recordType).some((change) => change.guard === guard)) continue;
    if (canary.state === 'applying') {
      const isApplied = sentOf(run.snapshot, guard, canary).length > 0;
      const event = isApplied
        ? ({ is: 'applied', time: nowByBoth(run) } as const)
        : ({ is: 'not applied' } as const);
      book = moveCanary(run, book, guard, event);
      continue;
    }
    // Only a full run knows all that is planned of a class. What was rejected is in no plan, but a
    // canary that has failed is not over while the CRM wants it.
    const isFailed = canary.state === 'failed';
    const isWhole = run.mode === 'full' && listing?.complete;
    const waiting = guarded.countDeferred(guard) + guarded.countHeld(guard);
    const isRejected = isFailed && guarded.ops(recordType, 'rejected').length > 0;
    if (isWhole && waiting === 0 && !isRejected)
      book = moveCanary(run, book, guard, { is: isFailed ? 'nothing planned' : 'all made' });
  }
  return book;
}

/** Returns the canaries of a run as its summary shows them; undefined without `policy.canary`. */
export function canariesOf(
  { canary: policy }: RunContext,
  book: CanaryBook | undefined,
): ToldCanary[] | undefined {
  if (!policy) return undefined;
  return askedClasses.flatMap((guard) => {
    const canary = book?.classes[guard];
    return canary ? [tellCanary(guard, canary, policy)] : [];
  });
}

/** States what waits for canaries, until when, and what to run next. */
export function sayCanaries(run: RunContext, book: CanaryBook | undefined): Problem[] {
  const { guarded } = run.snapshot;
  return (canariesOf(run, book) ?? []).flatMap((told): Problem[] => {
    const waiting = guarded.countDeferred(told.class, 'canary');
    return waiting === 0 ? [] : [{ code: 'note', ...waitingWords(told.class, waiting, told) }];
  });
}

const canaryFact = storedFact<CanaryBook>('canary', 'the canaries');

/** Returns the canaries that the snapshot holds; undefined if it holds none. */
export function storedCanaries(meta: Meta): CanaryBook | undefined {
  return canaryFact.read(meta);
}

/**
 * Stores a canary of a class at once, if the run writes; undefined ends it. The first one of a
 * class that has none is counted. Returns the canaries with it.
 */
function putCanary(
  run: RunContext,
  before: CanaryBook,
  guard: AskedClass,
  canary: Canary | undefined,
): CanaryBook {
  const isNew = canary !== undefined && before.classes[guard] === undefined;
  const begun = before.begun + (isNew ? 1 : 0);
  const book = { ...before, begun, classes: { ...before.classes, [guard]: canary } };
  const { meta, transaction } = run.snapshot;
  if (run.writes) transaction(() => canaryFact.write(meta, book));
  return book;
}

function moveCanary(
  run: RunContext,
  book: CanaryBook,
  guard: AskedClass,
  event: CanaryEvent,
): CanaryBook {
  const before = book.classes[guard];
  if (!before) return book;
  const after = advance(before, event);
  const end = endOf({ guard, before, after, at: run.clock.now() }, 'unwanted');
  return putCanary(run, end ? { ...book, last: end } : book, guard, after);
}

/** Returns the canaries that are under way or have failed; none without a book. */
export function openIn(book: CanaryBook | undefined): [AskedClass, Canary][] {
  return askedClasses.flatMap((guard): [AskedClass, Canary][] => {
    const canary = book?.classes[guard];
    return canary && canary.state !== 'passed' ? [[guard, canary]] : [];
  });
}
