/**
 * Records the outcome of a change: what the platform acknowledged or rejected, what another run
 * does at the same time, and what has to be decided again because of it.
 */
import type { JournaledChange } from '../../domain/change.ts';
import { type Answer, requestIdOf } from '../../domain/exchange.ts';
import type { Key, ObservedRow } from '../../domain/record.ts';
import type { WriteOutcome } from '../../store/audit/audit-entry.ts';
import type { Acknowledged, SendOutcome } from '../../records/record-type.ts';
import { alreadyThere } from '../../store/tables/journal.ts';
import { type ApplyContext, identityInFlight, rememberAcknowledged } from './apply-context.ts';
import { desiredFingerprint } from '../plan/decide-changes.ts';
import { latestNow } from '../context/platform-knowledge.ts';
import { stageObservation } from '../observe/person-observation.ts';
import { retryDelayMs, retrySchedules } from '../../domain/retry-schedules.ts';

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
export async function recordOutcome(
  applying: ApplyContext,
  change: JournaledChange,
  { outcome, answer, follow }: Outcome,
): Promise<void> {
  const { run, type } = applying;
  const { journal, unaudited } = run.snapshot;
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
  const doubtful = outcome.doubtful || (found && isUnderWayElsewhere(applying, change));
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
    acknowledgeElsewhere(applying, change, ack);
    const { platformStartedAt, startedAt = 0 } = applying.known.listing ?? {};
    const platformAt = platformStartedAt && platformStartedAt + at - startedAt;
    absences.waitAnew({ kind: type.name, key, at, platformAt });
  } else reconsiderFormer(applying, key);
  return row?.desired !== undefined;
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
  for (const other of recorded.everOfId({ kind: type.name, id: target, notKey: change.key })) {
    if (ack.found && other.id !== target) continue;
    const row = type.acknowledge(other, { ...change, key: other.key }, { ...ack, elsewhere: true });
    if (row) recorded.put(row);
  }
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

/** Replaces a record's listed state with what was just read, unless another listing follows. */
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
