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
import { isFirstLoad } from '../context/run-context.ts';
import { onlyKey } from '../context/mirror-context.ts';
import { type RunState, type ReviewState, findingsOf } from '../context/run-state.ts';
import { type GuardClass, guardRows } from '../../domain/guard-classes.ts';
import type { Key, ObservedRow, RecordTypeName } from '../../domain/record.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import type { SentChange } from '../../store/holds/judged-changes.ts';
import { mostOf } from '../report/guard-rules.ts';
import { populationOf } from './guard-population.ts';
import { Interrupted, isExpected, type Problem } from '../../domain/errors.ts';
import { contactDrift } from '../../records/contact/contacts.ts';
import { templateDrift } from '../../records/template/templates.ts';
import { countApprovals } from '../../store/tables/approval-order.ts';
import { nowByBoth } from '../context/platform-knowledge.ts';
import { judgeCanary, type ToldCanary, tellCanary, waitingWords } from '../report/canary-text.ts';

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
export function* deferToCanaries(state: RunState, of: GuardClass): Steps {
  const { run, review } = state;
  const guard = askedClasses.find((one) => one === of);
  if (!run.canary || !review.canaries || !guard) return;
  const { guarded, stage } = run.snapshot;
  if (!review.canaries.classes[guard]) yield* beginIfDue(state, guard, run.canary);
  const canary = review.canaries.classes[guard];
  if (canary?.state !== 'applying' && canary?.state !== 'waiting') return;
  // With the slice pass the records that have been changed and, until all of it is, as many others
  // as it has room for. Newcomers whose hash is in it wait, too.
  const isMember = memberOf(canary);
  const passing = new Set(sentOf(run.snapshot, guard, canary).map(({ key }) => key));
  const room = canary.size - passing.size;
  if (canary.state === 'applying' && room > 0) {
    const among = (key: Key): boolean => isMember(key) && !passing.has(key);
    const next = yield* firstOf(state, guard, { seed: canary.seed, most: room, among });
    for (const { key } of next) passing.add(key);
  }
  yield* eachPart(guarded.ranges(guard), (range) => {
    const keys = guarded.canary.keys({ ...range, guard }).filter((key) => !passing.has(key));
    if (keys.length > 0) stage(() => guarded.deferSome({ ...range, guard, keys, by: 'canary' }));
  });
}

/** Returns the canary of a class if it is out of bounds. */
export function failedCanary(
  { canaries }: ReviewState,
  guard: GuardClass,
): Extract<Canary, { state: 'failed' }> | undefined {
  const canary = guard === 'opt_out' ? undefined : canaries?.classes[guard];
  return canary?.state === 'failed' ? canary : undefined;
}

/**
 * Marks failed canaries as approved if nothing of what was shown is left to approve, which this run
 * may not have planned.
 */
export function passApproved(state: RunState): void {
  const { guarded, holds } = state.run.snapshot;
  const approvals = state.approvals.map(({ id }) => id);
  for (const guard of askedClasses) {
    if (!failedCanary(state.review, guard)) continue;
    if (guarded.canary.countApproved(guard) === 0 || guarded.countHeld(guard) > 0) continue;
    if (!holds.isUndecided({ guard, approvals })) moveCanary(state, guard, { is: 'approved' });
  }
}

function* beginIfDue(state: RunState, guard: AskedClass, policy: CanaryPolicy) {
  const { mirror, run, review } = state;
  const { guarded } = run.snapshot;
  const isTemplate = guardRows[guard].recordType === 'template';
  const because = isTemplate ? ('templates' as const) : review.canaries?.occasion;
  if (!because || !review.canaries) return;
  let planned = 0;
  yield* eachPart(guarded.ranges(guard), (range) => {
    planned += guarded.canary.keys({ ...range, guard }).length;
  });
  if (planned === 0) return;
  let { floor } = policy;
  if (isTemplate) {
    // More than the guard's limit passes only if somebody has approved it: that is many, too.
    const of = yield* populationOf(state, guard, planned);
    floor = Math.min(floor, mostOf({ of }, run.guards[guard]));
  }
  if (planned <= floor) return;
  const seed = seedOf(mirror.name, review.canaries);
  const most = sliceSize(guard, policy, planned);
  const first = yield* firstOf(state, guard, { seed, most, among: () => true });
  putCanary(state, guard, {
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
  { run: { snapshot } }: RunState,
  guard: AskedClass,
  { seed, most, among }: { seed: string; most: number; among: (key: Key) => boolean },
): Steps<{ key: Key; hash: string }[]> {
  const { guarded } = snapshot;
  const hashOf = hasher(seed);
  let first: { key: Key; hash: string }[] = [];
  yield* eachPart(guarded.ranges(guard), (range) => {
    const last = first.length < most ? undefined : first.at(-1)?.hash;
    const nearer = guarded.canary
      .keys({ ...range, guard })
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
 * Opens the canaries of a run, and reads back the slices whose wait is over. Runs about one person
 * or a list of people have none, and neither has a run that undoes another: they are about people
 * that somebody has named.
 */
export async function readBackCanaries(state: RunState): Promise<void> {
  const { run, options, review } = state;
  if (!run.canary || run.undo || options.onlyPeople || onlyKey(run) !== undefined) return;
  const { meta, runs, transaction } = run.snapshot;
  review.canaries = bookOf(storedCanaries(meta), {
    mapping: run.contacts?.manner,
    last: runs.lastMapping(run.id),
    isFirstLoad: isFirstLoad({ snapshot: run.snapshot, firstLoad: false }),
    at: run.clock.now(),
  });
  if (run.writes) transaction(() => canaryFact.write(meta, review.canaries));
  for (const [guard, canary] of openIn(review.canaries)) {
    if (canary.state === 'waiting' && state[`${guardRows[guard].recordType}s`])
      await readBack(state, guard, { canary, policy: run.canary });
  }
}

async function readBack(
  state: RunState,
  guard: AskedClass,
  { canary, policy }: { canary: WaitingCanary; policy: CanaryPolicy },
): Promise<void> {
  const { snapshot } = state.run;
  const kind = guardRows[guard].recordType;
  if (waitBefore(state, guard, canary) < policy.waitMs) return;
  const sent = sentOf(snapshot, guard, canary);
  const shown = await readSlice(state, kind, sent);
  if (typeof shown === 'string') {
    state.notes.push({ code: 'note', reason: `the canary is not read back yet: ${shown}` });
    return;
  }
  // A fast run may have the platform's time only from this reading.
  const afterMs = waitBefore(state, guard, canary);
  if (afterMs < policy.waitMs) return;
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
  moveCanary(state, guard, { is: 'read', says, counts, approvalsGiven });
}

type WaitingCanary = Extract<Canary, { state: 'waiting' }>;

/**
 * Returns how long the canary had waited when the run began, because everything that the run has
 * read is at least as new as that. Stores times that were mended.
 */
function waitBefore(state: RunState, guard: AskedClass, canary: WaitingCanary): number {
  const { startedAt } = state.run;
  const { at, platformAt } = nowByBoth(state.run);
  const begun = {
    at: startedAt,
    platformAt: platformAt === null ? null : platformAt - (at - startedAt),
  };
  const since = mended(canary.since, begun);
  if (since.at !== canary.since.at || since.platformAt !== canary.since.platformAt)
    putCanary(state, guard, { ...canary, since });
  return waitedMs(since, begun);
}

/** Returns what the platform shows of a slice, or why that is not known. */
async function readSlice(
  state: RunState,
  kind: RecordTypeName,
  sent: readonly SentChange[],
): Promise<((key: Key) => readonly ObservedRow[]) | string> {
  const { run } = state;
  const { staging, recorded } = run.snapshot;
  const { listing } = findingsOf(state, kind);
  if (listing?.complete) return (key) => staging.observed(kind, key);
  if (run.mode !== 'fast') return `the listing of the ${kind}s is not complete`;
  const people = kind === 'contact' ? state.contacts : undefined;
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
 * Moves the canaries on when a run ends: a slice whose changes have all been made begins to wait,
 * and what no canary is needed for any more ends.
 */
export function closeCanaries(state: RunState): void {
  const { run, review, breaker } = state;
  const { guarded, journal } = run.snapshot;
  if (!run.writes || !review.canaries || run.quarantined || !state.plan) return;
  for (const guard of askedClasses) {
    const canary = review.canaries.classes[guard];
    const { recordType } = guardRows[guard];
    if (!canary || !state[`${recordType}s`]) continue;
    // Has the run made what it could of the class, from a complete reading?
    const isCut = state.failure !== undefined || run.stop.aborted || breaker.endsEarly(recordType);
    const { certified, listing } = findingsOf(state, recordType);
    if (isCut || !certified) continue;
    const left = guarded.countDeferred(guard, 'window') + guarded.canary.countOpen(run.id, guard);
    if (left > 0 || journal.open(recordType).some((change) => change.guard === guard)) continue;
    if (canary.state === 'applying') {
      const isApplied = sentOf(run.snapshot, guard, canary).length > 0;
      moveCanary(
        state,
        guard,
        isApplied ? { is: 'applied', time: nowByBoth(run) } : { is: 'not applied' },
      );
      continue;
    }
    // Only a full run knows all that is planned of a class. What was rejected is in no plan, but a
    // canary that has failed is not over while the CRM wants it.
    const isFailed = canary.state === 'failed';
    const isWhole = run.mode === 'full' && listing?.complete;
    const waiting = guarded.countDeferred(guard) + guarded.countHeld(guard);
    const isRejected = isFailed && guarded.ops(recordType, 'rejected').length > 0;
    if (isWhole && waiting === 0 && !isRejected)
      moveCanary(state, guard, { is: isFailed ? 'nothing planned' : 'all made' });
  }
}

/** Returns the canaries of a run as its summary shows them; undefined without `policy.canary`. */
export function canariesOf({ run, review }: RunState): ToldCanary[] | undefined {
  const { canary: policy } = run;
  if (!policy) return undefined;
  return askedClasses.flatMap((guard) => {
    const canary = review.canaries?.classes[guard];
    return canary ? [tellCanary(guard, canary, policy)] : [];
  });
}

/** States what waits for canaries, until when, and what to run next. */
export function sayCanaries(state: RunState): Problem[] {
  const { guarded } = state.run.snapshot;
  return (canariesOf(state) ?? []).flatMap((told): Problem[] => {
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
 * class that has none is counted.
 */
function putCanary(state: RunState, guard: AskedClass, canary: Canary | undefined): void {
  const { run, review } = state;
  if (!review.canaries) return;
  const { canaries } = review;
  const isNew = canary !== undefined && canaries.classes[guard] === undefined;
  const begun = canaries.begun + (isNew ? 1 : 0);
  review.canaries = { ...canaries, begun, classes: { ...canaries.classes, [guard]: canary } };
  if (run.writes)
    run.snapshot.transaction(() => canaryFact.write(run.snapshot.meta, review.canaries));
}

function moveCanary(state: RunState, guard: AskedClass, event: CanaryEvent): void {
  const { run, review } = state;
  const before = review.canaries?.classes[guard];
  if (!before || !review.canaries) return;
  const after = advance(before, event);
  const end = endOf({ guard, before, after, at: run.clock.now() }, 'unwanted');
  if (end) review.canaries = { ...review.canaries, last: end };
  putCanary(state, guard, after);
}

/** Returns the canaries that are under way or have failed; none without a book. */
export function openIn(book: CanaryBook | undefined): [AskedClass, Canary][] {
  return askedClasses.flatMap((guard): [AskedClass, Canary][] => {
    const canary = book?.classes[guard];
    return canary && canary.state !== 'passed' ? [[guard, canary]] : [];
  });
}
