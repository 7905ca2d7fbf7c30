/**
 * Sends the planned changes to people. The journal stores the state `sent` on disk before a request
 * is sent, and the recorded state changes in the same transaction that writes `acked`.
 *
 * For changes that were sent but got no response, it finds out the outcome: it reads, and never
 * sends a change again. A creation or a delete may still arrive until one timeout has passed since
 * it was sent. If the read fails, the change keeps its state for the next run.
 */
import type { JournaledChange } from '../../domain/change.ts';
import { NotSent } from '../../domain/errors.ts';
import type { Key } from '../../domain/record.ts';
import { alreadyThere } from '../../store/tables/journal.ts';
import { type SendOutcome, outcomeOf } from '../../records/change-outcome.ts';
import { phase as phases } from '../../records/contact/consent/decide.ts';
import { acknowledge as acknowledged } from '../../records/contact/send/acknowledged-change.ts';
import { isFresh, isSuperseded, openChanges } from '../context/run-context.ts';
import { isTooLate } from '../guard/plan-rules.ts';
import {
  type ApplyContext,
  isPastSlice,
  beginInFlight,
  endInFlight,
  isForbidden,
  rememberDeleted,
  identityInFlight,
  rememberAcknowledged,
} from './apply-context.ts';
import {
  type Attempt,
  journalFailure,
  plannedRecords,
  knownOf,
  type Late,
  recordOutcome,
  recordsAtOnce,
  sendInOrder,
  type Sent,
  waitForArrival,
  withTarget,
} from './record-outcome.ts';
import { each } from '../context/work-in-parts.ts';
import { latestNow } from '../context/platform-knowledge.ts';
import { stageObservation } from '../observe/person-observation.ts';

const kind = 'contact';

/**
 * Sends the planned changes, phase by phase, until the slice ends. The changes of one person are
 * sent in order. If a creation returns the contact as the platform made it, a new decision is made
 * immediately, so that the person does not stay subscribed if the CRM states an opt-out.
 */
export async function apply(applying: ApplyContext): Promise<void> {
  const { run } = applying;
  const { journal } = run.snapshot;
  const sending = (isFollowUp: boolean) => ({
    isFollowUp,
    attempt: (change: JournaledChange, how: Attempt) => attempt(applying, change, how),
    async record(change: JournaledChange, sent: Sent) {
      await recordSent(applying, change, sent);
      endInFlight(applying, change.key);
    },
  });
  for (const phase of Object.values(phases)) {
    const records = plannedRecords(applying, { kind, phase });
    await each(records, recordsAtOnce, async ([key, changes]) => {
      try {
        if (!(await sendInOrder(applying, changes, sending(false)))) return;
        for (const next of Object.values(phases)) {
          const more = journal.planned({ run: run.id, kind, phase: next, key });
          await sendInOrder(applying, more, sending(true));
        }
      } finally {
        endInFlight(applying, key);
      }
    });
  }
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
  const { run, contacts, breaker } = applying;
  const isOutdated = () => change.op === 'delete' && !applying.known.still();
  const isClosed = () => !isFollowUp && isTooLate(run, change);
  if (isClosed()) return 'closed';
  if (isOutdated()) return 'outdated';
  if (isSuperseded(run, change.key)) return 'superseded';
  const known = knownOf(applying, change);
  if (!known.fresh && breaker.blinds(change)) {
    return { is: 'held', why: 'it cannot be looked at before it is sent' };
  }
  const provenAt = known.fresh ? known.at : run.clock.now();
  const looked = await contacts.look(change, known);
  if (looked) {
    // The outcome will be recorded, which is not allowed while another run has locked the person.
    if (!beginInFlight(applying, change.key)) return 'superseded';
    return looked.is === 'unknown' ? { is: 'unsent', why: looked.why } : looked;
  }
  let late: 'too old' | Late | undefined;
  let isBarred = false;
  const outcome = await contacts.send(change, {
    signal: stop,
    abort: run.abort,
    seen: known.fresh,
    facts: run.facts.known,
    recorded: () => run.snapshot.recorded.get(kind, change.key),
    answered: (answer) => void (heard.answer = answer),
    leaves: async () =>
      run.groupCommit(() => {
        if (stop.aborted || breaker.holds(change)) throw new NotSent('stopped before it was sent');
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

/** Recovers the changes to people without a known outcome, but not those of other runs. */
export async function recover(applying: ApplyContext): Promise<void> {
  const { run, breaker, toBeListed } = applying;
  const { staging, candidates } = run.snapshot;
  for (const open of openChanges(run, kind)) {
    if (run.stop.aborted || breaker.stopped()) return;
    // The run that has locked the person recovers this change.
    if (!beginInFlight(applying, open.key)) continue;
    try {
      const change = withTarget(run, open);
      await waitForArrival(applying, change);
      const outcome = await findOutcome(applying, change);
      if (outcome) await recordSent(applying, change, { outcome });
      if (outcome?.is !== 'acked') continue;
      const isNews = outcome.undone || outcome.observed !== undefined || change.op === 'create';
      if (!isNews) continue;
      // A listing that follows is newer, and shows which other record has the address.
      if (!toBeListed) staging.assume(kind, change.key);
      candidates.add(kind, change.key);
    } finally {
      endInFlight(applying, open.key);
    }
  }
}

async function findOutcome(
  applying: ApplyContext,
  change: JournaledChange,
): Promise<SendOutcome | undefined> {
  const { run, contacts, breaker } = applying;
  // An opt-out is sent without a prior read, and the person may have unsubscribed since an earlier
  // read.
  const unseen = change.op === 'opt_out' && !knownOf(applying, change).fresh;
  const late = change.run !== run.id || unseen || !isFresh(run, change.sentAt ?? 0);
  try {
    const recorded = run.snapshot.recorded.get(kind, change.key);
    const facts = run.facts.known();
    return await contacts.recover(change, { late, facts, recorded, signal: run.abort });
  } catch (error) {
    const outcome = outcomeOf(error);
    if (outcome.is !== 'rejected') breaker.note(change, outcome);
    return undefined;
  }
}

/** Records an outcome, and what has to be decided again because of it. */
async function recordSent(
  applying: ApplyContext,
  change: JournaledChange,
  sent: Sent,
): Promise<void> {
  const { run, toBeListed } = applying;
  const { outcome } = sent;
  const { staging, candidates } = run.snapshot;
  const record = (): boolean => {
    if (outcome.is === 'acked') return acknowledge(applying, change, outcome);
    journalFailure(applying, change, outcome);
    if (outcome.is !== 'stale') return false;
    const { about = change.key, observed } = outcome;
    if (observed) {
      candidates.add(kind, about);
      // What was just read replaces the listed state, unless another listing follows.
      if (!toBeListed) {
        staging.forgetObserved(kind, about);
        stageObservation(run, { key: about, rows: observed });
        staging.addLooked(kind, about, run.clock.now());
      }
    }
    if (!observed || about !== change.key) reconsider(applying, change.key);
    return false;
  };
  await recordOutcome(applying, change, { ...sent, record });
}

/** Records an acknowledged change. Returns whether the record is now as desired. */
function acknowledge(
  applying: ApplyContext,
  change: JournaledChange,
  outcome: Extract<SendOutcome, { is: 'acked' }>,
): boolean {
  const { run, toBeListed } = applying;
  const { journal, recorded, problems, unmanaged, absences, staging, candidates } = run.snapshot;
  const { key, op } = change;
  const times = { at: run.clock.now(), latest: latestNow(run) };
  const { at } = times;
  const before = recorded.get(kind, key);
  const [first, duplicate] = op === 'create' ? staging.desired(kind, key) : [];
  const wanted = duplicate ? undefined : first?.fingerprint;
  // A renamed contact may be opted out under both keys. In that case, the second opt-out finds the
  // contact already opted out by the first.
  const found = outcome.found && !(op === 'opt_out' && journal.isDone(change));
  // An unanswered request under another key of the contact may have opted it out.
  const isSame = ({ op: asked, part, target }: JournaledChange): boolean =>
    asked === 'opt_out' && part === change.part && target === change.target;
  const mayBeOther = found && change.target !== undefined && isSame(change);
  const open = mayBeOther ? journal.open(kind) : [];
  const isElsewhere = open.some((other) => other.seq !== change.seq && isSame(other));
  const doubtful = outcome.doubtful || isElsewhere;
  const ack = { ...outcome, found, doubtful, ...times };
  const row = acknowledged(before, change, { ...ack, wanted });
  if (outcome.undone) journal.move(change.seq, 'stale', { at, reason: 'taken back since' });
  else
    journal.move(change.seq, 'acked', { at, reason: outcome.wasThere ? alreadyThere : undefined });
  if (outcome.evidence) run.facts.learn(outcome.evidence);
  rememberAcknowledged(applying, change, row);
  if (outcome.renamed) {
    // The listing contains a renamed contact under its former key.
    staging.assume(kind, key);
    candidates.add(kind, key);
  } else if (row?.seenAt === at) staging.addSighted(kind, key, at);
  if (row) recorded.put(row);
  else recorded.drop(kind, key);
  // The observation of a record that needs a new decision is older than the change just made, but
  // that of a listing that follows is newer.
  if (!toBeListed && candidates.has(kind, key)) staging.assume(kind, key);
  problems.drop(change);
  if (op === 'opt_out') {
    unmanaged.mend(kind, key, change.part);
    // It was sent by the contact's id, so it is recorded under the contact's other keys, too: the
    // current and former ones, or if the contact had been opted out before, only the current ones.
    const { renamed: _, ...elsewhere } = { ...ack, elsewhere: true as const };
    const id = change.target;
    const others = id === undefined ? [] : recorded.everOfId({ kind, id, notKey: key });
    for (const other of others) {
      if (found && other.id !== id) continue;
      const also = acknowledged(other, { ...change, key: other.key }, elsewhere);
      if (also) recorded.put(also);
    }
    const { platformStartedAt, startedAt = 0 } = applying.known.listing ?? {};
    const platformAt = platformStartedAt && platformStartedAt + at - startedAt;
    absences.waitAnew({ kind, key, at, platformAt });
  } else reconsiderFormer(applying, key);
  return row?.desired !== undefined;
}

/**
 * Requests new decisions for the record's former keys, because they may have waited for this
 * change. The decision is based on the recorded state. Keys with a change whose outcome is unknown
 * are skipped.
 */
function reconsiderFormer(applying: ApplyContext, key: Key): void {
  const { run, known } = applying;
  const { staging, recorded, journal } = run.snapshot;
  const { ids } = identityInFlight(applying, key);
  const isUnnamed = (old: Key): boolean => staging.desired(kind, old).length === 0;
  const former = ids
    .flatMap((id) => recorded.ofOrigin(kind, id, key))
    .map((row) => row.key)
    .filter(isUnnamed);
  const open = former.length > 0 ? journal.open(kind).map((change) => change.key) : [];
  for (const old of former.filter((one) => !open.includes(one))) {
    const isListed = known.listing && staging.lookedAt(kind, old) === undefined;
    if (isListed && staging.observed(kind, old).length === 0) continue;
    // A run without a listing has already made a decision for this key, based on what it had
    // observed.
    if (isListed || !known.listing) staging.assume(kind, old);
    reconsider(applying, old);
  }
}

/** Requests a new decision, by the recorded state if that is newer than the observation. */
function reconsider({ run, known, toBeListed }: ApplyContext, key: Key): void {
  const { staging, candidates, journal } = run.snapshot;
  const seenAt = staging.lookedAt(kind, key) ?? known.listing?.startedAt;
  const isOlder = typeof seenAt === 'number' && journal.isDoneSince(kind, key, seenAt);
  if (isOlder && !toBeListed) staging.assume(kind, key);
  candidates.add(kind, key);
}
