/**
 * What sending people and sending templates have in common: which changes are planned, and how the
 * journal, the problems and the audit log learn what became of one.
 */
import { isStatedOptOut, type JournaledChange } from '../../domain/change.ts';
import { type Answer, requestIdOf } from '../../domain/exchange.ts';
import type { Key, ObservedRow, RecordTypeName } from '../../domain/record.ts';
import type { RecordName } from '../../store/database/key-range.ts';
import type { KnownRecord } from '../../records/contact/contacts.ts';
import type { SendOutcome } from '../../records/change-outcome.ts';
import type { CircuitBreaker } from '../context/circuit-breaker.ts';
import { isFresh, type RunContext, writeAuditLog } from '../context/run-context.ts';
import type { Findings } from '../context/run-results.ts';
import type { RunTally } from '../context/run-tally.ts';
import { inTurns, pagesOf } from '../context/work-in-parts.ts';
import { plannedAgain } from '../../store/tables/journal.ts';
import type { WriteOutcome } from '../../store/tables/unaudited.ts';
import { desiredFingerprint } from '../plan/decide-changes.ts';
import { retryDelayMs, retrySchedules } from '../../domain/retry-schedules.ts';

/** Shared by all sends of people, or of templates. */
export interface Applying {
  run: RunContext;
  known: Findings;
  /** Whether the platform is listed afterwards, which is then newer than what is read now. */
  toBeListed: boolean;
  breaker: CircuitBreaker;
  tally: RunTally;
  /** Judges, without yielding, a decision that was made anew after a creation. */
  review(): void;
  /** How long a request may be in flight, in milliseconds. */
  timeoutMs: number;
  /** When the slice ends and the source is checked again, in milliseconds since the epoch. */
  endsAt: number;
  /** The number of changes that the guards have let pass so far. */
  passed: number;
}

/** How many records are changed at a time; the budgets of the routes limit the requests. */
export const recordsAtOnce = 32;
const pageOfKeys = 500;

type PlannedRecord = [Key, JournaledChange[]];

/** Yields the planned changes by record. No other code modifies one before it is sent. */
export async function* plannedRecords(
  { run, breaker, endsAt }: Applying,
  part: { kind: RecordTypeName; phase: number },
): AsyncGenerator<PlannedRecord> {
  const { plannedNext } = run.snapshot.journal;
  const pages = pagesOf((last?: PlannedRecord) => [
    ...plannedNext({ ...part, run: run.id, after: last?.[0] ?? '', count: pageOfKeys }),
  ]);
  // If sending has stopped, the loop has no other await than its turns.
  for await (const page of inTurns(run, pages)) {
    for (const record of page) {
      if (run.stop.aborted || breaker.stopped() || run.clock.now() >= endsAt) return;
      yield record;
    }
    await writeAuditLog(run);
  }
}

/** Adds the record's id to a change that was planned before the record was created. */
export function withTarget({ snapshot }: RunContext, change: JournaledChange): JournaledChange {
  if (change.op === 'create' || change.target !== undefined) return change;
  return { ...change, target: snapshot.recorded.get(change.kind, change.key)?.id };
}

/** Marks changes as stale because the state they were based on has changed. */
function dropStale(
  { snapshot, clock }: RunContext,
  changes: readonly JournaledChange[],
  reason?: string,
) {
  if (changes.length === 0) return;
  snapshot.transaction(() => {
    for (const { seq } of changes) snapshot.journal.move(seq, 'stale', { at: clock.now(), reason });
  });
}

/** Returns what this run, and no other with its own clock, knows about a record, since when. */
export function knownOf(
  { run, known }: Applying,
  change: JournaledChange,
): KnownRecord & { at: number } {
  const { recorded, staging } = run.snapshot;
  const listed = known.listing?.complete ? known.listing.startedAt : 0;
  const looked = staging.lookedAt(change.kind, change.key);
  const alone = typeof looked === 'number' ? looked : 0;
  const sighted = change.op === 'create' ? 0 : (staging.sightedAt(change.kind, change.key) ?? 0);
  const at = Math.max(listed, alone, sighted);
  return {
    // Read on demand, because for most changes the record is not read a second time.
    get recorded() {
      return recorded.get(change.kind, change.key);
    },
    fresh: isFresh(run, at),
    listed: isFresh(run, listed),
    partial: known.listing?.complete === false && alone === 0,
    at,
    signal: run.abort,
  };
}

/** How one change is tried. */
export interface Attempt {
  stop: AbortSignal;
  /** Receives the platform's answer, once there is one. */
  heard: { answer?: Answer };
  /** Whether the change completes a creation, which no window interrupts. */
  isFollowUp: boolean;
}

/** Why a change is left to another run: a new source, another run's lock, or no window. */
export type Late = 'outdated' | 'superseded' | 'closed';
const reasonOf: Readonly<Record<Late, string>> = {
  outdated: 'the source has changed since it was read',
  superseded: 'another run brought this person in line meanwhile',
  closed: 'no window allows it now',
};

/** What became of a change. `follow` is called when it is recorded, in the same transaction. */
export interface Sent {
  outcome: SendOutcome;
  answer?: Answer | undefined;
  follow?(isSettled: boolean): void;
}

/** How the changes of one record are sent and recorded. */
interface InOrder {
  /** Whether they complete a creation; opt-outs are then sent even if the run was asked to stop. */
  isFollowUp: boolean;
  attempt(change: JournaledChange, how: Attempt): Promise<SendOutcome | Late>;
  /**
   * Makes a new decision for a record immediately after its creation, because its other changes
   * were planned before the result of the creation was known. Returns whether there is anything to
   * send.
   */
  replan(key: Key, isSettled: boolean): boolean;
  record(change: JournaledChange, sent: Sent): Promise<void>;
}

/**
 * Sends the changes of one record. If a response brings news about the record, the rest of its plan
 * is dropped. Returns whether a new decision was made for the record and more changes are planned.
 */
export async function sendInOrder(
  applying: Applying,
  changes: readonly JournaledChange[],
  { isFollowUp, attempt, replan, record }: InOrder,
): Promise<boolean> {
  const { run, breaker } = applying;
  for (const [at, planned] of changes.entries()) {
    const stays = isFollowUp && isStatedOptOut(planned);
    if ((run.stop.aborted && !stays) || breaker.stopped()) return false;
    if (breaker.holds(planned)) continue;
    const change = withTarget(run, planned);
    if (change.target === undefined && change.op !== 'create') {
      // The platform was not read, so nothing is concluded, and certainly not that the person is
      // absent.
      dropStale(run, [change], 'its creation did not come to pass');
      continue;
    }
    const heard: Attempt['heard'] = {};
    const stop = stays ? run.abort : run.stop;
    const attempted = await attempt(change, { stop, heard, isFollowUp });
    if (typeof attempted === 'string') {
      // This run cannot make a new decision for the record. The next run reads the current source.
      if (attempted === 'closed') run.snapshot.guarded.deferSent(change.seq);
      dropStale(run, [change], reasonOf[attempted]);
      continue;
    }
    breaker.note(change, attempted);
    // An attempt before the stop may have acted.
    const isOpenStop = attempted.is === 'stopped' && attempted.acted === 'maybe';
    const outcome = isOpenStop ? ({ is: 'unknown', why: attempted.why } as const) : attempted;
    const isMade = change.op === 'create';
    const brought = isMade && outcome.is === 'acked' && outcome.observed;
    // After a creation without a known outcome the record may not exist, so nothing else is sent
    // for it.
    const isOpen = isMade && outcome.is === 'unknown';
    const ends = outcome.is === 'stale' || isOpen || Boolean(brought);
    let isPlanned = false;
    const follow = (isSettled: boolean): void => {
      if (ends) dropStale(run, changes.slice(at + 1), brought ? plannedAgain : undefined);
      if (brought) isPlanned = replan(change.key, isSettled);
    };
    await record(change, { outcome, follow, ...heard });
    if (ends) return isPlanned;
  }
  return false;
}

/**
 * Waits until the request of an unanswered creation or delete can no longer arrive. Another run
 * sent it before this one began.
 */
export async function waitForArrival(
  { run, timeoutMs }: Applying,
  { op, run: by, sentAt }: JournaledChange,
): Promise<void> {
  const mayArrive = sentAt !== undefined && (op === 'create' || op === 'delete');
  const wait = mayArrive ? (by === run.id ? sentAt : run.startedAt) + timeoutMs : 0;
  if (wait > run.clock.now()) await run.clock.sleep(wait - run.clock.now(), run.stop);
}

/**
 * Records an outcome in one transaction: first by `record`, which returns whether the record is as
 * desired, then in the audit log; then calls `follow`.
 */
export async function recordOutcome(
  { run, tally, passed }: Applying,
  change: JournaledChange,
  { outcome, answer, record, follow }: Sent & { record(): boolean },
): Promise<void> {
  const at = run.clock.now();
  await run.groupCommit(() => {
    const isSettled = record();
    const word = auditWord(outcome);
    if (word !== undefined) {
      const status = outcome.is === 'rejected' ? outcome.status : answer?.status;
      const request = answer && requestIdOf(answer);
      run.snapshot.unaudited.addOutcome(change.seq, { at, outcome: word, status, request });
    }
    follow?.(isSettled);
  });
  tally.outcome(change, outcome);
  const done = tally.outcomeCount(change.kind);
  run.progress({ stage: 'applying', kind: change.kind, done, of: Math.max(done, passed) });
}

/**
 * Records a change that was not acknowledged, and what has to be decided again because of it.
 * `stage` stages what was read about a record. Must be called in a transaction.
 */
export function recordFailure(
  applying: Applying,
  change: JournaledChange,
  outcome: Exclude<SendOutcome, { is: 'acked' }>,
  stage: (key: Key, rows: readonly ObservedRow[]) => void,
): void {
  const { run, toBeListed } = applying;
  const { journal, staging, candidates } = run.snapshot;
  const { kind, key } = change;
  const at = run.clock.now();
  if (outcome.is === 'rejected') reject(applying, change, outcome);
  else if (outcome.is === 'stale' || outcome.is === 'unknown')
    journal.move(change.seq, outcome.is, { at, reason: outcome.why });
  else journal.move(change.seq, 'planned', { at });
  if (outcome.is !== 'stale') return;
  const { about = key, observed } = outcome;
  if (observed) {
    candidates.add(kind, about);
    // What was just read replaces the listed state, unless another listing follows.
    if (!toBeListed) {
      staging.forgetObserved(kind, about);
      stage(about, observed);
      staging.addLooked(kind, about, at);
    }
  }
  if (!observed || about !== key) reconsider(applying, { kind, key });
}

/** Requests a new decision, by the recorded state if that is newer than the observation. */
export function reconsider({ run, known, toBeListed }: Applying, { kind, key }: RecordName): void {
  const { staging, candidates, journal } = run.snapshot;
  const seenAt = staging.lookedAt(kind, key) ?? known.listing?.startedAt;
  const isOlder = typeof seenAt === 'number' && journal.isDoneSince(kind, key, seenAt);
  if (isOlder && !toBeListed) staging.assume(kind, key);
  candidates.add(kind, key);
}

/** Returns the outcome as the audit log names it; undefined if the platform did nothing. */
function auditWord(outcome: SendOutcome): WriteOutcome | undefined {
  if (outcome.is === 'acked') {
    if (outcome.undone) return 'undone';
    return outcome.found ? 'found' : 'acked';
  }
  if (outcome.is === 'stale' && outcome.undone) return 'undone';
  return outcome.is === 'rejected' || outcome.is === 'stale' || outcome.is === 'unknown'
    ? outcome.is
    : undefined;
}

/** Records a rejection. The change waits until the record changes, an opt-out for a while. */
function reject(
  { run }: Applying,
  change: JournaledChange,
  { reason, fix }: Extract<SendOutcome, { is: 'rejected' }>,
): void {
  const { journal, problems, staging } = run.snapshot;
  const at = run.clock.now();
  const problem = {
    kind: change.kind,
    key: change.key,
    class: 'rejected' as const,
    part: change.part,
    target: change.target,
  };
  const before = problems.get(problem);
  const attempts = (before?.attempts ?? 0) + 1;
  const delay = retryDelayMs(retrySchedules.rejectedOptOut, attempts);
  journal.move(change.seq, 'rejected', { at, reason, fix });
  problems.put({
    ...problem,
    cause: change.op === 'opt_out' ? ('opt-out-refused' as const) : ('platform-refused' as const),
    reason,
    fix,
    attempts,
    retryAt: change.op === 'opt_out' ? at + delay : undefined,
    desired: desiredFingerprint(staging.desired(change.kind, change.key)),
    since: before?.since ?? at,
    run: run.id,
  });
}
