/** Records the outcome of a change. */
import type { JournaledChange } from '../../domain/change.ts';
import { type Answer, requestIdOf } from '../../domain/exchange.ts';
import type { Key, ObservedRow } from '../../domain/record.ts';
import type { WriteOutcome } from '../../store/audit/audit-entry.ts';
import type { Acknowledged, SendOutcome } from '../../records/record-type.ts';
import { alreadyThere } from '../../store/tables/journal.ts';
import type { Times } from '../../store/tables/absence-counts.ts';
import { type ApplyContext, identityInFlight, rememberAcknowledged } from './apply-context.ts';
import { desiredFingerprint } from '../plan/decide-changes.ts';
import { latestNow } from '../context/platform-knowledge.ts';
import { stageObservation } from '../observe/person-observation.ts';
import { retryDelayMs, retrySchedules } from '../../domain/retry-schedules.ts';

/** The outcome of a change, and the platform's answer if there was one. */
interface Outcome {
  outcome: SendOutcome;
  answer?: Answer | undefined;
  follow?(isSettled: boolean): void;
}

/**
 * Records an outcome in the journal, the recorded state, the problems and the run's candidates.
 * Then calls `follow` in the same transaction; `isSettled` states whether the record is as desired.
 */
export async function recordOutcome(
  applying: ApplyContext,
  change: JournaledChange,
  { outcome, answer, follow }: Outcome,
): Promise<void> {
  const { run, type } = applying;
  const { journal } = run.snapshot;
  const at = run.clock.now();
  await run.groupCommit(() => {
    let isSettled = false;
    if (outcome.is === 'acked') isSettled = acknowledge(applying, change, outcome);
    else if (outcome.is === 'rejected') reject(applying, change, outcome);
    else if (outcome.is === 'stale') {
      journal.move(change.seq, 'stale', { at, reason: outcome.why });
      const { about = change.key, observed } = outcome;
      if (observed) replaceObserved(applying, about, observed);
      if (!observed || about !== change.key) reconsider(applying, change.key);
    } else if (outcome.is === 'unknown') {
      journal.move(change.seq, 'unknown', { at, reason: outcome.why });
    } else journal.move(change.seq, 'planned', { at });
    noteForAudit(applying, change, { outcome, answer });
    follow?.(isSettled);
  });
  applying.tally.outcome(type, change, outcome);
  const done = applying.tally.outcomeCount(type.name);
  const of = Math.max(done, applying.passed);
  run.progress({ stage: 'applying', kind: type.name, done, of });
}

/** Remembers for the audit log what became of a change that was sent. */
function noteForAudit(
  { run }: ApplyContext,
  { seq }: JournaledChange,
  { outcome, answer }: Outcome,
): void {
  const word = auditWord(outcome);
  if (word === undefined) return;
  const status = outcome.is === 'rejected' ? outcome.status : answer?.status;
  const request = answer && requestIdOf(answer);
  const at = run.clock.now();
  run.snapshot.unaudited.addOutcome(seq, { at, outcome: word, status, request });
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
  const { run, type } = applying;
  const { journal, recorded, problems, unmanaged, absences } = run.snapshot;
  const times = { at: run.clock.now(), latest: latestNow(run) };
  const { at } = times;
  const before = recorded.get(type.name, change.key);
  const wanted = change.op === 'create' ? wantedOf(applying, change.key) : undefined;
  // A renamed contact may be opted out under both keys. In that case, the second opt-out finds the
  // contact already opted out by the first.
  const found = outcome.found && !(change.op === 'opt_out' && journal.isDone(change));
  const doubtful = outcome.doubtful || (found && isUnderWayElsewhere(applying, change));
  const row = type.acknowledge(before, change, { ...outcome, found, doubtful, ...times, wanted });
  if (outcome.undone) journal.move(change.seq, 'stale', { at, reason: 'taken back since' });
  else journal.move(change.seq, 'acked', { at, reason: outcome.wasThere ? alreadyThere : null });
  if (outcome.evidence) run.facts.learn(outcome.evidence);
  rememberAcknowledged(applying, change, row);
  if (outcome.renamed) {
    // The listing contains the contact under its former key.
    run.snapshot.staging.assume(type.name, change.key);
    run.snapshot.candidates.add(type.name, change.key);
  } else if (outcome.more) {
    run.snapshot.staging.assume(type.name, change.key);
    run.snapshot.candidates.add(type.name, change.key);
  } else if (row?.seenAt === at) run.snapshot.staging.addSighted(type.name, change.key, at);
  if (row) recorded.put(row);
  else recorded.drop(type.name, change.key);
  dropOlderLook(applying, change.key);
  problems.drop(change);
  if (change.op === 'opt_out') unmanaged.mend(type.name, change.key, change.part);
  if (change.op === 'opt_out')
    acknowledgeElsewhere(applying, change, { ...outcome, found, doubtful, ...times });
  if (change.op === 'opt_out') absences.waitAnew(type.name, change.key, timesNow(applying));
  if (change.op !== 'opt_out') reconsiderFormer(applying, change.key);
  return row?.desired !== undefined;
}

/**
 * Drops the observation of a record that needs a new decision, because it is older than the change
 * just made. If a listing follows, its observation is newer, so nothing is dropped.
 */
function dropOlderLook({ run, type, toBeListed }: ApplyContext, key: Key): void {
  const { candidates, staging } = run.snapshot;
  if (!toBeListed && candidates.has(type.name, key)) staging.assume(type.name, key);
}

/** Returns whether an unanswered request under another key of the contact may have opted it out. */
function isUnderWayElsewhere({ run, type }: ApplyContext, change: JournaledChange): boolean {
  const isSame = ({ op, part, target }: JournaledChange): boolean =>
    op === 'opt_out' && part === change.part && target === change.target;
  if (change.target === undefined || !isSame(change)) return false;
  const open = run.snapshot.journal.open(type.name);
  return open.some((other) => other.seq !== change.seq && isSame(other));
}

/**
 * Records an opt-out under the contact's other keys too, current and former ones, because it was
 * sent by the contact's id. If the contact had been opted out before, this applies to the current
 * keys only.
 */
function acknowledgeElsewhere(
  { run, type }: ApplyContext,
  change: JournaledChange,
  { renamed: _, ...ack }: Acknowledged,
): void {
  const { recorded } = run.snapshot;
  const { target } = change;
  if (target === undefined) return;
  for (const other of recorded.everOfId(type.name, target, change.key)) {
    if (ack.found && other.id !== target) continue;
    const row = type.acknowledge(other, { ...change, key: other.key }, { ...ack, elsewhere: true });
    if (row) recorded.put(row);
  }
}

/**
 * Returns the current time by both clocks. The platform's time is extrapolated from the listing.
 */
function timesNow({ run, known: { listing } }: ApplyContext): Times {
  const at = run.clock.now();
  const platformAt =
    listing?.platformStartedAt === undefined
      ? undefined
      : listing.platformStartedAt + at - listing.startedAt;
  return { at, platformAt };
}

function wantedOf({ run, type }: ApplyContext, key: Key): string | undefined {
  const [row, duplicate] = run.snapshot.staging.desired(type.name, key);
  return duplicate ? undefined : row?.fingerprint;
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
  const former = recorded
    .ofOrigins(type.name, ids, key)
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

/**
 * Requests a new decision for a record. If the record was changed after it was observed, the
 * decision is based on the recorded state.
 */
function reconsider({ run, type, known, toBeListed }: ApplyContext, key: Key): void {
  const { staging, candidates, journal } = run.snapshot;
  const seenAt = staging.lookedAt(type.name, key) ?? known.listing?.startedAt;
  const isOlder = typeof seenAt === 'number' && journal.isDoneSince(type.name, key, seenAt);
  if (isOlder && !toBeListed) staging.assume(type.name, key);
  candidates.add(type.name, key);
}

/**
 * Records a rejection. The change waits until the record changes; an opt-out is retried after 1, 2,
 * 4 … hours, at most daily.
 */
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

/**
 * Replaces the listed state of a record with what was read just now, and requests a new decision.
 * If another listing follows, that listing is newer still, so nothing is replaced.
 */
function replaceObserved(
  { run, type, toBeListed }: ApplyContext,
  key: Key,
  rows: readonly ObservedRow[],
): void {
  const { staging, candidates } = run.snapshot;
  candidates.add(type.name, key);
  if (toBeListed) return;
  staging.forgetObserved(type.name, key);
  stageObservation(run, type, { key, rows });
  staging.addLooked(type.name, key, run.clock.now());
}
