/**
 * Sends the planned changes of people or of templates, and records what became of each. The journal
 * stores the state `sent` on disk before a request is sent, and the recorded state changes in the
 * same transaction that writes `acked`.
 *
 *   planned → sent → acked | rejected | stale | unknown
 *
 * Of changes without a response, it finds out the outcome: it reads, and never sends a change
 * again. A creation or a delete may still arrive until one timeout after it was sent. If the read
 * fails, the change keeps its state for the next run.
 */
import pLimit, { type LimitFunction } from 'p-limit';
import { type Change, isStatedOptOut, type JournaledChange } from '../../domain/change.ts';
import { NotSent } from '../../domain/errors.ts';
import { type Answer, requestIdOf } from '../../domain/exchange.ts';
import type { Key, ObservedRow, RecordedRow, RecordTypeName } from '../../domain/record.ts';
import { retryDelayMs, retrySchedules } from '../../domain/retry-schedules.ts';
import {
  type Acked,
  outcomeOf,
  type Sending,
  type SendOutcome,
} from '../../records/change-outcome.ts';
import type { KnownRecord } from '../../records/contact/contacts.ts';
import type { RecordName } from '../../store/database/key-range.ts';
import { alreadyThere, plannedAgain } from '../../store/tables/journal.ts';
import { type WriteOutcome, writeOutcomes } from '../../store/tables/unaudited.ts';
import type { CircuitBreaker } from '../context/circuit-breaker.ts';
import { isFresh, openChanges, type RunContext, writeAuditLog } from '../context/run-context.ts';
import type { Findings } from '../context/run-results.ts';
import type { RunTally } from '../context/run-tally.ts';
import { each, inTurns, pagesOf } from '../context/work-in-parts.ts';
import { isTooLate } from '../judge/plan-rules.ts';
import { decideAgain, desiredFingerprint } from '../decide/decide-changes.ts';

export interface Applying {
  run: RunContext;
  known: Findings;
  /** Whether the platform is listed afterwards, which is then newer than what is read now. */
  toBeListed: boolean;
  breaker: CircuitBreaker;
  tally: RunTally;
  /** Judges, without yielding, a decision that was made anew after a creation. */
  review(): void;
  /** When the slice ends and the source is checked again, in milliseconds since the epoch. */
  endsAt: number;
  /** The number of changes that the guards have let pass so far. */
  passed: number;
}

type Recording = Applying & { records: SendableRecords };

/** How records of one type are read, sent and recorded. */
export interface SendableRecords {
  kind: RecordTypeName;
  /** The phases in the order in which they are sent. */
  phases: readonly number[];
  /** Returns the outcome if the plan's assumptions no longer hold. */
  look(change: Change, known: KnownRecord): Promise<SendOutcome | undefined>;
  /** `seen`: whether this run has read the record recently enough. */
  send(change: Change, how: Sending & { seen: boolean }): Promise<SendOutcome>;
  /** Finds the outcome of a silent change. `late`: the state may be the doing of others. */
  recover(change: Change, how: { late: boolean; signal: AbortSignal }): Promise<SendOutcome>;
  isSuperseded(key: Key): boolean;
  /** Call before a request. Returns false if another run has locked the record: do not send. */
  begin(key: Key): boolean;
  end(key: Key): void;
  /** Is called last before a change is marked as sent. Returns whether it is forbidden. */
  forbids(change: Change): boolean;
  stage(key: Key, rows: readonly ObservedRow[]): void;
  /** Makes a new decision for a record. Returns the number of planned changes. */
  decide(key: Key): number;
  /**
   * Returns the row that follows from an acknowledged change; `follow` is called once it is
   * recorded. Both happen in the transaction that writes `acked`.
   */
  acknowledge(
    change: JournaledChange,
    outcome: Acked,
    at: number,
  ): { row: RecordedRow | undefined; follow?(): void };
}

/** `oneByOne`: limits changes whose records are read again to one at a time. */
type SendingRecords = Recording & { oneByOne: LimitFunction };

/** How many records are changed at a time; the budgets of the routes limit the requests. */
const recordsAtOnce = 32;
const pageOfKeys = 500;

type PlannedRecord = [Key, JournaledChange[]];

/**
 * Sends the planned changes, phase by phase, until the slice ends. If a creation returns the record
 * as the platform made it, a new decision is made at once, so that a person does not stay
 * subscribed if the CRM states an opt-out.
 */
export async function apply(applying: Applying, records: SendableRecords): Promise<void> {
  const { journal } = applying.run.snapshot;
  const sending: SendingRecords = { ...applying, records, oneByOne: pLimit(1) };
  const { kind, phases } = records;
  for (const phase of phases) {
    await each(plannedRecords(sending, phase), recordsAtOnce, async ([key, changes]) => {
      try {
        if (!(await sendInOrder(sending, changes, false))) return;
        for (const next of phases) {
          const more = journal.planned({ run: applying.run.id, kind, phase: next, key });
          await sendInOrder(sending, more, true);
        }
      } finally {
        records.end(key);
      }
    });
  }
}

async function* plannedRecords(
  { run, breaker, endsAt, records: { kind } }: SendingRecords,
  phase: number,
): AsyncGenerator<PlannedRecord> {
  const { plannedNext } = run.snapshot.journal;
  const pages = pagesOf((last?: PlannedRecord) => [
    ...plannedNext({ kind, phase, run: run.id, after: last?.[0] ?? '', count: pageOfKeys }),
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

/**
 * Sends the changes of one record in order. A response with news about the record drops the rest of
 * its plan. Returns whether a new decision has planned more changes. `isFollowUp`: they complete a
 * creation, which no window interrupts; opt-outs are then sent even if the run was asked to stop.
 */
async function sendInOrder(
  sending: SendingRecords,
  changes: readonly JournaledChange[],
  isFollowUp: boolean,
): Promise<boolean> {
  const { run, breaker, records, review } = sending;
  for (const [at, planned] of changes.entries()) {
    const stays = isFollowUp && isStatedOptOut(planned);
    if ((run.stop.aborted && !stays) || breaker.stopped()) return false;
    if (breaker.holds(planned)) continue;
    const change = withTarget(run, planned);
    const { kind, key } = change;
    if (change.target === undefined && change.op !== 'create') {
      // The platform was not read, so nothing is concluded.
      dropStale(run, [change], 'its creation did not come to pass');
      continue;
    }
    const heard: Attempt['heard'] = {};
    const stop = stays ? run.abort : run.stop;
    const attempted = await attempt(sending, change, { stop, heard, isFollowUp });
    if (typeof attempted === 'string') {
      // This run cannot make a new decision for the record. The next run reads the current source.
      if (attempted === 'closed') run.snapshot.guarded.deferSent(change.seq);
      dropStale(run, [change], lateReasons[attempted]);
      continue;
    }
    breaker.note(change, attempted);
    // An attempt before the stop may have acted.
    const isOpenStop = attempted.is === 'stopped' && attempted.acted === 'maybe';
    const outcome = isOpenStop ? ({ is: 'unknown', why: attempted.why } as const) : attempted;
    const isMade = change.op === 'create';
    const brought = isMade && outcome.is === 'acked' && outcome.observed;
    // After a creation without a known outcome the record may not exist.
    const isOpen = isMade && outcome.is === 'unknown';
    const ends = outcome.is === 'stale' || isOpen || Boolean(brought);
    let isPlanned = false;
    const follow = (isSettled: boolean): void => {
      if (ends) dropStale(run, changes.slice(at + 1), brought ? plannedAgain : undefined);
      // Its other changes were planned before the result of the creation was known.
      const decide = () => records.decide(key);
      if (brought) isPlanned = decideAgain(run, { kind, key }, { isSettled, decide, review });
    };
    await record(sending, change, { outcome, follow, ...heard });
    records.end(key);
    if (ends) return isPlanned;
  }
  return false;
}

function withTarget({ snapshot }: RunContext, change: JournaledChange): JournaledChange {
  if (change.op === 'create' || change.target !== undefined) return change;
  return { ...change, target: snapshot.recorded.get(change.kind, change.key)?.id };
}

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

interface Attempt {
  stop: AbortSignal;
  /** Receives the platform's answer, once there is one. */
  heard: { answer?: Answer };
  isFollowUp: boolean;
}

/** Why a change is left to another run: a new source, another run's lock, or no window. */
type Late = 'outdated' | 'superseded' | 'closed';
const lateReasons: Readonly<Record<Late, string>> = {
  outdated: 'the source has changed since it was read',
  superseded: 'another run brought this person in line meanwhile',
  closed: 'no window allows it now',
};

/**
 * Reads the record from the platform if what is known about it is too old, then sends the change.
 * If it waits for the rate limit until this read is too old as well, records are read again one at
 * a time, because with many reads at once all of them would be too old again.
 */
async function attempt(
  sending: SendingRecords,
  change: JournaledChange,
  how: Attempt,
): Promise<SendOutcome | Late> {
  const first = await tryOnce(sending, change, how);
  if (first !== 'too old') return first;
  return sending.oneByOne(async () => {
    for (;;) {
      const next = await tryOnce(sending, change, how);
      if (next !== 'too old') return next;
    }
  });
}

/**
 * Tries to send a change. It is marked as `sent` only at the moment the request is sent; a delete
 * may have waited for hours, so the source is checked again at that moment, too.
 */
async function tryOnce(
  sending: SendingRecords,
  change: JournaledChange,
  { stop, heard, isFollowUp }: Attempt,
): Promise<SendOutcome | 'too old' | Late> {
  const { run, breaker, records, known: findings } = sending;
  const isOutdated = () => change.op === 'delete' && !findings.still();
  const isClosed = () => !isFollowUp && isTooLate(run, change);
  if (isClosed()) return 'closed';
  if (isOutdated()) return 'outdated';
  if (records.isSuperseded(change.key)) return 'superseded';
  const known = knownOf(sending, change);
  if (!known.fresh && breaker.blinds(change)) {
    return { is: 'held', why: 'it cannot be looked at before it is sent' };
  }
  const provenAt = known.fresh ? known.at : run.clock.now();
  const looked = await records.look(change, known);
  if (looked) {
    // The outcome will be recorded, which is not allowed while another run has locked the person.
    if (!records.begin(change.key)) return 'superseded';
    return looked.is === 'unknown' ? { is: 'unsent', why: looked.why } : looked;
  }
  let late: 'too old' | Late | undefined;
  let isBarred = false;
  const outcome = await records.send(change, {
    signal: stop,
    abort: run.abort,
    seen: known.fresh,
    answered: (answer) => void (heard.answer = answer),
    leaves: async () =>
      run.groupCommit(() => {
        if (stop.aborted || breaker.holds(change)) throw new NotSent('stopped before it was sent');
        // Stated opt-outs do not wait for a new reading.
        const isPastSlice = !isStatedOptOut(change) && run.clock.now() >= sending.endsAt;
        if (isPastSlice && !findings.still()) throw new NotSent('the source is read again first');
        late = isOutdated() ? 'outdated' : undefined;
        if (isClosed()) late = 'closed';
        if (change.op !== 'opt_out' && !isFresh(run, provenAt)) late ??= 'too old';
        // This comes last, so that no other run waits while a record is read again.
        if (!late && !records.begin(change.key)) late = 'superseded';
        if (late) throw new NotSent(`what is known of it is ${late}`);
        isBarred = records.forbids(change);
        if (isBarred) throw new NotSent('the do-not-contact list forbids it');
        run.snapshot.journal.move(change.seq, 'sent', { at: run.clock.now() });
      }),
  });
  if (outcome.is !== 'held') return outcome;
  if (isBarred) return { is: 'stale', observed: undefined, why: outcome.why };
  return late ?? outcome;
}

/** Returns what this run, and no other with its own clock, knows about a record, since when. */
function knownOf({ run, known }: Applying, change: JournaledChange): KnownRecord & { at: number } {
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

/** Finds out the outcomes that are not known, but not those of changes of other runs. */
export async function recover(applying: Applying, records: SendableRecords): Promise<void> {
  const { run, breaker, toBeListed } = applying;
  const { staging, candidates } = run.snapshot;
  const { kind } = records;
  for (const open of openChanges(run, kind)) {
    if (run.stop.aborted || breaker.stopped()) return;
    // The run that has locked the person recovers this change.
    if (!records.begin(open.key)) continue;
    try {
      const change = withTarget(run, open);
      await waitForArrival(run, change);
      const outcome = await findOutcome(applying, records, change);
      if (outcome) await record({ ...applying, records }, change, { outcome });
      if (outcome?.is !== 'acked') continue;
      const isNews = outcome.undone || outcome.observed !== undefined || change.op === 'create';
      if (!isNews) continue;
      // A listing that follows is newer, and shows which other record has the address.
      if (!toBeListed) staging.assume(kind, change.key);
      candidates.add(kind, change.key);
    } finally {
      records.end(open.key);
    }
  }
}

/** Returns undefined if the platform cannot be read. */
async function findOutcome(
  applying: Applying,
  { recover: read }: SendableRecords,
  change: JournaledChange,
): Promise<SendOutcome | undefined> {
  const { run, breaker } = applying;
  // An opt-out is sent without a read, and the person may have unsubscribed since an earlier one.
  const isUnseen = change.op === 'opt_out' && !knownOf(applying, change).fresh;
  const late = change.run !== run.id || isUnseen || !isFresh(run, change.sentAt ?? 0);
  try {
    return await read(change, { late, signal: run.abort });
  } catch (error) {
    const outcome = outcomeOf(error);
    if (outcome.is !== 'rejected') breaker.note(change, outcome);
    return undefined;
  }
}

/** Waits until the request of an unanswered creation or delete can no longer arrive. */
async function waitForArrival(
  run: RunContext,
  { op, run: by, sentAt }: JournaledChange,
): Promise<void> {
  const mayArrive = sentAt !== undefined && (op === 'create' || op === 'delete');
  // Another run sent it before this one began.
  const wait = mayArrive ? (by === run.id ? sentAt : run.startedAt) + run.timeoutMs : 0;
  if (wait > run.clock.now()) await run.clock.sleep(wait - run.clock.now(), run.stop);
}

interface Sent {
  outcome: SendOutcome;
  answer?: Answer | undefined;
  follow?(isSettled: boolean): void;
}

/**
 * Records an outcome, what has to be decided again because of it, its entry of the audit log, and
 * what follows, in one transaction.
 */
async function record(
  recording: Recording,
  change: JournaledChange,
  { outcome, answer, follow }: Sent,
): Promise<void> {
  const { run, tally, passed } = recording;
  const at = run.clock.now();
  await run.groupCommit(() => {
    const isSettled = outcome.is === 'acked' && acknowledge(recording, change, outcome);
    if (outcome.is !== 'acked') recordFailure(recording, change, outcome);
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

/** Records an acknowledged change. Returns whether the record is now as desired. */
function acknowledge(
  { run, toBeListed, records }: Recording,
  change: JournaledChange,
  outcome: Acked,
): boolean {
  const { journal, recorded, problems, staging, candidates } = run.snapshot;
  const { kind, key } = change;
  const at = run.clock.now();
  const { row, follow } = records.acknowledge(change, outcome, at);
  if (outcome.undone) journal.move(change.seq, 'stale', { at, reason: 'taken back since' });
  else
    journal.move(change.seq, 'acked', { at, reason: outcome.wasThere ? alreadyThere : undefined });
  if (outcome.renamed || outcome.more) {
    // The listing contains a renamed record under its former key.
    staging.assume(kind, key);
    candidates.add(kind, key);
  } else if (row?.seenAt === at) staging.addSighted(kind, key, at);
  if (row) recorded.put(row);
  else recorded.drop(kind, key);
  // What was observed is older than the change just made; a listing that follows is newer.
  if (!toBeListed && candidates.has(kind, key)) staging.assume(kind, key);
  problems.drop(change);
  follow?.();
  return row?.desired !== undefined;
}

function recordFailure(
  recording: Recording,
  change: JournaledChange,
  outcome: Exclude<SendOutcome, { is: 'acked' }>,
): void {
  const { run, toBeListed, records } = recording;
  const { journal, staging, candidates } = run.snapshot;
  const { kind, key } = change;
  const at = run.clock.now();
  if (outcome.is === 'rejected') reject(run, change, outcome);
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
      records.stage(about, observed);
      staging.addLooked(kind, about, at);
    }
  }
  if (!observed || about !== key) reconsider(recording, { kind, key });
}

function reject(
  run: RunContext,
  change: JournaledChange,
  { reason, fix }: Extract<SendOutcome, { is: 'rejected' }>,
): void {
  const { journal, problems, staging } = run.snapshot;
  const { kind, key, part, target, op } = change;
  const at = run.clock.now();
  const problem = { kind, key, class: 'rejected', part, target } as const;
  const before = problems.get(problem);
  const attempts = (before?.attempts ?? 0) + 1;
  const delay = retryDelayMs(retrySchedules.rejectedOptOut, attempts);
  journal.move(change.seq, 'rejected', { at, reason, fix });
  problems.put({
    ...problem,
    cause: op === 'opt_out' ? 'opt-out-refused' : 'platform-refused',
    reason,
    fix,
    attempts,
    retryAt: op === 'opt_out' ? at + delay : undefined,
    desired: desiredFingerprint(staging.desired(kind, key)),
    since: before?.since ?? at,
    run: run.id,
  });
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
  return writeOutcomes.find((one) => one === outcome.is);
}
