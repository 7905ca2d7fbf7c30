/**
 * Sends the planned changes. The journal stores the state `sent` on disk before a request is sent,
 * and the recorded state changes in the same transaction that writes `acked`.
 *
 * For changes that were sent but got no response, it finds out the outcome: it reads, and never
 * sends a change again. A creation or a delete may still arrive until one timeout has passed since
 * it was sent. If the read fails, the change keeps its state for the next run.
 *
 * It remembers which content of a template was sent as a test to which addresses, so that nobody
 * gets the same test twice. A claim is on disk before the test is sent: after a crash in between,
 * the test counts as sent.
 */
import { isStatedOptOut, type JournaledChange } from '../../domain/change.ts';
import { NotSent } from '../../domain/errors.ts';
import { type Answer, requestIdOf } from '../../domain/exchange.ts';
import type { Key } from '../../domain/record.ts';
import { plannedAgain, alreadyThere } from '../../store/tables/journal.ts';
import { type SendOutcome, outcomeOf, type TestClaim } from '../../records/record-type.ts';
import {
  isFresh,
  isSuperseded,
  type RunContext,
  writeAuditLog,
  openChanges,
} from '../context/run-context.ts';
import { isTooLate } from '../guard/plan-rules.ts';
import {
  type ApplyContext,
  isPastSlice,
  knownOf,
  beginInFlight,
  endInFlight,
  isForbidden,
  rememberDeleted,
  identityInFlight,
  rememberAcknowledged,
} from './apply-context.ts';
import { each, inTurns, pagesOf } from '../context/work-in-parts.ts';
import { storedFact } from '../../store/database/meta-table.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import type { WriteOutcome } from '../../store/tables/unaudited.ts';
import { desiredFingerprint } from '../plan/decide-changes.ts';
import { latestNow } from '../context/platform-knowledge.ts';
import { stageObservation } from '../observe/person-observation.ts';
import { retryDelayMs, retrySchedules } from '../../domain/retry-schedules.ts';

const peopleAtOnce = 32;
const pageOfKeys = 500;

/**
 * Sends the planned changes of one record type, phase by phase, until the slice ends. The changes
 * of one record are sent in order. If a creation returns the contact as the platform made it, a new
 * decision is made for the record immediately, so that the person does not stay subscribed if the
 * CRM states an opt-out.
 */
export async function apply(applying: ApplyContext): Promise<void> {
  const { run, type } = applying;
  const { journal } = run.snapshot;
  for (const phase of type.phases) {
    await each(planned(applying, phase), peopleAtOnce, async ([key, changes]) => {
      try {
        if (!(await sendAll(applying, changes))) return;
        for (const next of type.phases) {
          const more = journal.planned({ run: run.id, kind: type.name, phase: next, key });
          await sendAll(applying, more, true);
        }
      } finally {
        endInFlight(applying, key);
      }
    });
  }
}

type PlannedRecord = [Key, JournaledChange[]];

/** Returns the planned changes by record. No other code modifies one before it is sent. */
async function* planned(applying: ApplyContext, phase: number): AsyncGenerator<PlannedRecord> {
  const { run, type, breaker, endsAt } = applying;
  const part = { run: run.id, kind: type.name, phase };
  const { plannedNext } = run.snapshot.journal;
  const pages = pagesOf((last?: PlannedRecord) => [
    ...plannedNext({ ...part, after: last?.[0] ?? '', count: pageOfKeys }),
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
 * Sends the changes of one record. If a response brings news about the record, the rest of its plan
 * is dropped. Returns whether a new decision was made for the record and more changes are planned.
 * `urgent`: opt-outs are sent even if the run was asked to stop.
 */
async function sendAll(
  applying: ApplyContext,
  changes: readonly JournaledChange[],
  urgent = false,
): Promise<boolean> {
  const { run, type, breaker } = applying;
  for (const [at, planned] of changes.entries()) {
    const stays = urgent && isStatedOptOut(planned);
    if ((run.stop.aborted && !stays) || breaker.stopped()) return false;
    if (breaker.holds(type, planned)) continue;
    const change = withTarget(applying, planned);
    if (change.target === undefined && change.op !== 'create') {
      // The platform was not read, so nothing is concluded, and certainly not that the person is
      // absent.
      dropStale(run, [change], 'its creation did not come to pass');
      continue;
    }
    const heard: Attempt['heard'] = {};
    const stop = stays ? run.abort : run.stop;
    const attempted = await attempt(applying, change, { stop, heard, isFollowUp: urgent });
    if (typeof attempted === 'string') {
      // This run cannot make a new decision for the record. The next run reads the current source.
      if (attempted === 'closed') run.snapshot.guarded.deferSent(change.seq);
      dropStale(run, [change], reasonOf[attempted]);
      continue;
    }
    breaker.note(type, change, attempted);
    // An attempt before the stop may have acted.
    const isOpenStop = attempted.is === 'stopped' && attempted.acted === 'maybe';
    const outcome = isOpenStop ? ({ is: 'unknown', why: attempted.why } as const) : attempted;
    const isMade = change.op === 'create';
    const brought = isMade && outcome.is === 'acked' && outcome.observed;
    // After a creation without a known outcome the contact may not exist, so nothing else is sent
    // for it.
    const isOpen = isMade && outcome.is === 'unknown';
    const ends = outcome.is === 'stale' || isOpen || Boolean(brought);
    let isPlanned = false;
    const follow = (isSettled: boolean): void => {
      if (ends) dropStale(run, changes.slice(at + 1), brought ? plannedAgain : undefined);
      if (brought) isPlanned = applying.replan(change.key, isSettled);
    };
    await recordOutcome(applying, change, { outcome, follow, ...heard });
    endInFlight(applying, change.key);
    if (ends) return isPlanned;
  }
  return false;
}

interface Attempt {
  stop: AbortSignal;
  /** Receives the platform's answer, once there is one. */
  heard: { answer?: Answer };
  /** Whether the change completes a creation, which no window interrupts. */
  isFollowUp: boolean;
}

/** Why a change is left to another run: a new source, another run's lock, or no window. */
type Late = 'outdated' | 'superseded' | 'closed';
const reasonOf: Readonly<Record<Late, string>> = {
  outdated: 'the source has changed since it was read',
  superseded: 'another run brought this person in line meanwhile',
  closed: 'no window allows it now',
};

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

/** Adds the record's id to a change that was planned before the record was created. */
function withTarget({ run, type }: ApplyContext, change: JournaledChange): JournaledChange {
  if (change.op === 'create' || change.target !== undefined) return change;
  return { ...change, target: run.snapshot.recorded.get(type.name, change.key)?.id };
}

/**
 * Reads the record from the platform if what is known about it is too old, then sends the change.
 * If the change waits for the rate limit for so long that this read is too old as well, the change
 * is not sent yet. Such records are then read again one at a time, because with many reads at once,
 * all of them would be too old again.
 */
async function attempt(
  applying: ApplyContext,
  change: JournaledChange,
  how: Attempt,
): Promise<SendOutcome | Late> {
  const first = await tryOnce(applying, change, how);
  if (first !== 'too old') return first;
  return applying.oneByOne(async () => {
    for (;;) {
      const next = await tryOnce(applying, change, how);
      if (next !== 'too old') return next;
    }
  });
}

/**
 * Tries to send a change. The change is marked as `sent` only at the moment the request is sent. A
 * delete may have waited for hours, so the source is checked again at that moment too.
 */
async function tryOnce(
  applying: ApplyContext,
  change: JournaledChange,
  { stop, heard, isFollowUp }: Attempt,
): Promise<SendOutcome | 'too old' | Late> {
  const { run, type, breaker } = applying;
  const isOutdated = () => change.op === 'delete' && !applying.known.still();
  const isClosed = () => !isFollowUp && isTooLate(run, change);
  if (isClosed()) return 'closed';
  if (isOutdated()) return 'outdated';
  if (isSuperseded(run, type, change.key)) return 'superseded';
  const known = knownOf(applying, change);
  if (!known.fresh && breaker.blinds(type, change)) {
    return { is: 'held', why: 'it cannot be looked at before it is sent' };
  }
  const provenAt = known.fresh ? known.at : run.clock.now();
  const looked = await type.look(change, known);
  if (looked) {
    // The outcome will be recorded, which is not allowed while another run has locked the person.
    if (!beginInFlight(applying, change.key)) return 'superseded';
    return looked.is === 'unknown' ? { is: 'unsent', why: looked.why } : looked;
  }
  let late: 'too old' | Late | undefined;
  let isBarred = false;
  const outcome = await type.send(change, {
    signal: stop,
    abort: run.abort,
    seen: known.fresh,
    facts: run.facts.known,
    recorded: () => run.snapshot.recorded.get(type.name, change.key),
    answered: (answer) => void (heard.answer = answer),
    claims: {
      claim: (test) => claimTest(run.snapshot, test),
      release: (test) => releaseTest(run.snapshot, test),
    },
    leaves: async () =>
      run.groupCommit(() => {
        if (stop.aborted || breaker.holds(type, change))
          throw new NotSent('stopped before it was sent');
        if (isPastSlice(applying, change)) throw new NotSent('the source is read again first');
        late = isOutdated() ? 'outdated' : undefined;
        if (isClosed()) late = 'closed';
        if (change.op !== 'opt_out' && !isFresh(run, provenAt)) late ??= 'too old';
        // This check comes last, so that no other run waits while the record of a change is read
        // again.
        if (!late && !beginInFlight(applying, change.key)) late = 'superseded';
        if (late) throw new NotSent(`what is known of it is ${late}`);
        if (change.op === 'delete') rememberDeleted(applying, change);
        isBarred = isForbidden(applying, change);
        if (isBarred) throw new NotSent('the do-not-contact list forbids it');
        run.snapshot.journal.move(change.seq, 'sent', { at: run.clock.now() });
      }),
  });
  if (outcome.is !== 'held') return outcome;
  if (isBarred) return { is: 'stale', observed: undefined, why: outcome.why };
  return late ?? outcome;
}

/** Recovers the changes of one record type without a known outcome, but not those of other runs. */
export async function recover(applying: ApplyContext): Promise<void> {
  const { run, type, breaker, toBeListed } = applying;
  const { staging, candidates } = run.snapshot;
  for (const open of openChanges(run, type.name)) {
    if (run.stop.aborted || breaker.stopped()) return;
    // The run that has locked the person recovers this change.
    if (!beginInFlight(applying, open.key)) continue;
    try {
      const change = withTarget(applying, open);
      // The request can no longer arrive after this. Another run sent it before this one began.
      const isSent = change.sentAt !== undefined;
      const mayArrive = isSent && (change.op === 'create' || change.op === 'delete');
      const sentAt = change.run === run.id ? (change.sentAt ?? 0) : run.startedAt;
      const wait = mayArrive ? sentAt + applying.timeoutMs - run.clock.now() : 0;
      if (wait > 0) await run.clock.sleep(wait, run.stop);
      const outcome = await findOutcome(applying, change);
      if (outcome) await recordOutcome(applying, change, { outcome });
      if (outcome?.is !== 'acked') continue;
      const isNews = outcome.undone || outcome.observed !== undefined || change.op === 'create';
      if (!isNews) continue;
      // A listing that follows is newer, and shows which other record has the address.
      if (!toBeListed) staging.assume(type.name, change.key);
      candidates.add(type.name, change.key);
    } finally {
      endInFlight(applying, open.key);
    }
  }
}

async function findOutcome(
  applying: ApplyContext,
  change: JournaledChange,
): Promise<SendOutcome | undefined> {
  const { run, type, breaker } = applying;
  // An opt-out is sent without a prior read, and the person may have unsubscribed since an earlier
  // read.
  const unseen = change.op === 'opt_out' && !knownOf(applying, change).fresh;
  const late = change.run !== run.id || unseen || !isFresh(run, change.sentAt ?? 0);
  try {
    const recorded = run.snapshot.recorded.get(type.name, change.key);
    const facts = run.facts.known();
    return await type.recover(change, { late, facts, recorded, signal: run.abort });
  } catch (error) {
    const outcome = outcomeOf(error);
    if (outcome.is !== 'rejected') breaker.note(type, change, outcome);
    return undefined;
  }
}

/** By key of the template: a fingerprint of what was tested last, and the addresses. */
const storedTests = storedFact<Record<string, { content: string; to: string[] }>>(
  'template tests',
  'the tests of templates',
);

/** Claims a test. Returns false if it was claimed before. */
function claimTest({ meta, transaction }: Snapshot, { key, content, to }: TestClaim): boolean {
  const tests = storedTests.read(meta) ?? {};
  const last = tests[key];
  const sent = last?.content === content ? last.to : [];
  if (sent.includes(to)) return false;
  const now = { ...tests, [key]: { content, to: [...sent, to] } };
  transaction(() => storedTests.write(meta, now));
  return true;
}

/** Gives a claim back, because the test was certainly not sent. */
function releaseTest({ meta, transaction }: Snapshot, { key, content, to }: TestClaim): void {
  const tests = storedTests.read(meta) ?? {};
  const last = tests[key];
  if (last?.content !== content) return;
  const now = { ...tests, [key]: { content, to: last.to.filter((one) => one !== to) } };
  transaction(() => storedTests.write(meta, now));
}

// Records the outcome of a change: what the platform acknowledged or rejected, what another run
// does at the same time, and what has to be decided again because of it.

interface Outcome {
  outcome: SendOutcome;
  answer?: Answer | undefined;
  follow?(isSettled: boolean): void;
}

/**
 * Records an outcome in the journal, the recorded state, the problems, the audit log and the run's
 * candidates. Then calls `follow` in the same transaction; `isSettled` states whether the record is
 * as desired.
 */
async function recordOutcome(
  applying: ApplyContext,
  change: JournaledChange,
  { outcome, answer, follow }: Outcome,
): Promise<void> {
  const { run, type, toBeListed } = applying;
  const { journal, unaudited, staging, candidates } = run.snapshot;
  const at = run.clock.now();
  await run.groupCommit(() => {
    let isSettled = false;
    if (outcome.is === 'acked') isSettled = acknowledge(applying, change, outcome);
    else if (outcome.is === 'rejected') reject(applying, change, outcome);
    else if (outcome.is === 'stale') {
      journal.move(change.seq, 'stale', { at, reason: outcome.why });
      const { about = change.key, observed } = outcome;
      if (observed) {
        candidates.add(type.name, about);
        // What was just read replaces the listed state, unless another listing follows.
        if (!toBeListed) {
          staging.forgetObserved(type.name, about);
          stageObservation(run, type, { key: about, rows: observed });
          staging.addLooked(type.name, about, run.clock.now());
        }
      }
      if (!observed || about !== change.key) reconsider(applying, change.key);
    } else if (outcome.is === 'unknown') {
      journal.move(change.seq, 'unknown', { at, reason: outcome.why });
    } else journal.move(change.seq, 'planned', { at });
    const word = auditWord(outcome);
    if (word !== undefined) {
      const status = outcome.is === 'rejected' ? outcome.status : answer?.status;
      const request = answer && requestIdOf(answer);
      unaudited.addOutcome(change.seq, { at, outcome: word, status, request });
    }
    follow?.(isSettled);
  });
  applying.tally.outcome(type, change, outcome);
  const done = applying.tally.outcomeCount(type.name);
  const of = Math.max(done, applying.passed);
  run.progress({ stage: 'applying', kind: type.name, done, of });
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

/** Records an acknowledged change. Returns whether the record is now as desired. */
function acknowledge(
  applying: ApplyContext,
  change: JournaledChange,
  outcome: Extract<SendOutcome, { is: 'acked' }>,
): boolean {
  const { run, type, toBeListed } = applying;
  const { journal, recorded, problems, unmanaged, absences, staging, candidates } = run.snapshot;
  const { key, op } = change;
  const times = { at: run.clock.now(), latest: latestNow(run) };
  const { at } = times;
  const before = recorded.get(type.name, key);
  const [first, duplicate] = op === 'create' ? staging.desired(type.name, key) : [];
  const wanted = duplicate ? undefined : first?.fingerprint;
  // A renamed contact may be opted out under both keys. In that case, the second opt-out finds the
  // contact already opted out by the first.
  const found = outcome.found && !(op === 'opt_out' && journal.isDone(change));
  // An unanswered request under another key of the contact may have opted it out.
  const isSame = ({ op: asked, part, target }: JournaledChange): boolean =>
    asked === 'opt_out' && part === change.part && target === change.target;
  const mayBeOther = found && change.target !== undefined && isSame(change);
  const open = mayBeOther ? journal.open(type.name) : [];
  const isElsewhere = open.some((other) => other.seq !== change.seq && isSame(other));
  const doubtful = outcome.doubtful || isElsewhere;
  const ack = { ...outcome, found, doubtful, ...times };
  const row = type.acknowledge(before, change, { ...ack, wanted });
  if (outcome.undone) journal.move(change.seq, 'stale', { at, reason: 'taken back since' });
  else
    journal.move(change.seq, 'acked', { at, reason: outcome.wasThere ? alreadyThere : undefined });
  if (outcome.evidence) run.facts.learn(outcome.evidence);
  rememberAcknowledged(applying, change, row);
  if (outcome.renamed || outcome.more) {
    // The listing contains a renamed contact under its former key.
    staging.assume(type.name, key);
    candidates.add(type.name, key);
  } else if (row?.seenAt === at) staging.addSighted(type.name, key, at);
  if (row) recorded.put(row);
  else recorded.drop(type.name, key);
  // The observation of a record that needs a new decision is older than the change just made, but
  // that of a listing that follows is newer.
  if (!toBeListed && candidates.has(type.name, key)) staging.assume(type.name, key);
  problems.drop(change);
  if (op === 'opt_out') {
    unmanaged.mend(type.name, key, change.part);
    // It was sent by the contact's id, so it is recorded under the contact's other keys, too: the
    // current and former ones, or if the contact had been opted out before, only the current ones.
    const { renamed: _, ...elsewhere } = { ...ack, elsewhere: true as const };
    const id = change.target;
    const others = id === undefined ? [] : recorded.everOfId({ kind: type.name, id, notKey: key });
    for (const other of others) {
      if (found && other.id !== id) continue;
      const also = type.acknowledge(other, { ...change, key: other.key }, elsewhere);
      if (also) recorded.put(also);
    }
    const { platformStartedAt, startedAt = 0 } = applying.known.listing ?? {};
    const platformAt = platformStartedAt && platformStartedAt + at - startedAt;
    absences.waitAnew({ kind: type.name, key, at, platformAt });
  } else reconsiderFormer(applying, key);
  return row?.desired !== undefined;
}

/**
 * Requests new decisions for the record's former keys, because they may have waited for this
 * change. The decision is based on the recorded state. Keys with a change whose outcome is unknown
 * are skipped.
 */
function reconsiderFormer(applying: ApplyContext, key: Key): void {
  const { run, type, known } = applying;
  const { staging, recorded, journal } = run.snapshot;
  const { ids } = identityInFlight(applying, key);
  const isUnnamed = (old: Key): boolean => staging.desired(type.name, old).length === 0;
  const former = ids
    .flatMap((id) => recorded.ofOrigin(type.name, id, key))
    .map((row) => row.key)
    .filter(isUnnamed);
  const open = former.length > 0 ? journal.open(type.name).map((change) => change.key) : [];
  for (const old of former.filter((one) => !open.includes(one))) {
    const isListed = known.listing && staging.lookedAt(type.name, old) === undefined;
    if (isListed && staging.observed(type.name, old).length === 0) continue;
    // A run without a listing has already made a decision for this key, based on what it had
    // observed.
    if (isListed || !known.listing) staging.assume(type.name, old);
    reconsider(applying, old);
  }
}

/** Requests a new decision, by the recorded state if that is newer than the observation. */
function reconsider({ run, type, known, toBeListed }: ApplyContext, key: Key): void {
  const { staging, candidates, journal } = run.snapshot;
  const seenAt = staging.lookedAt(type.name, key) ?? known.listing?.startedAt;
  const isOlder = typeof seenAt === 'number' && journal.isDoneSince(type.name, key, seenAt);
  if (isOlder && !toBeListed) staging.assume(type.name, key);
  candidates.add(type.name, key);
}

/** Records a rejection. The change waits until the record changes, an opt-out for a while. */
function reject(
  applying: ApplyContext,
  change: JournaledChange,
  outcome: Extract<SendOutcome, { is: 'rejected' }>,
): void {
  const { run, type } = applying;
  const { journal, problems, staging } = run.snapshot;
  const at = run.clock.now();
  const { reason, fix } = outcome;
  const problem = {
    kind: type.name,
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
    desired: desiredFingerprint(staging.desired(type.name, change.key)),
    since: before?.since ?? at,
    run: run.id,
  });
}
