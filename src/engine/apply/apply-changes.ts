/**
 * Sends the planned changes to people. The journal stores the state `sent` on disk before a request
 * is sent, and the recorded state changes in the same transaction that writes `acked`.
 *
 * For changes that were sent but got no response, it finds out the outcome: it reads, and never
 * sends a change again. A creation or a delete may still arrive until one timeout has passed since
 * it was sent. If the read fails, the change keeps its state for the next run.
 */
import pLimit, { type LimitFunction } from 'p-limit';
import { type Change, isStatedOptOut, type JournaledChange } from '../../domain/change.ts';
import type { Entry, Identity } from '../../domain/do-not-contact.ts';
import { NotSent } from '../../domain/errors.ts';
import type { Key, RecordedRow } from '../../domain/record.ts';
import { alreadyThere } from '../../store/tables/journal.ts';
import { type SendOutcome, outcomeOf } from '../../records/change-outcome.ts';

import { memoriesOf, newsOfChange } from '../../records/contact/consent/do-not-contact-entries.ts';
import { decodeContact, phase as phases } from '../../records/contact/observe/contact-state.ts';
import { acknowledge as acknowledged } from '../../records/contact/send/acknowledged-change.ts';
import type { MirrorContacts } from '../context/mirror-context.ts';
import { identityWith } from '../context/person-identity.ts';
import { isFresh, isSuperseded, openChanges, type RunContext } from '../context/run-context.ts';
import { isTooLate } from '../guard/plan-rules.ts';
import {
  type Applying,
  type Attempt,
  plannedRecords,
  knownOf,
  type Late,
  reconsider,
  recordFailure,
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
import { decideAgain, decidePerson } from '../plan/decide-changes.ts';

const kind = 'contact';

/** Shared by all sends to people. */
export interface ApplyingPeople extends Applying {
  contacts: MirrorContacts;
}

interface PeopleInFlight extends ApplyingPeople {
  /** Limits changes whose records are read again to one at a time. */
  oneByOne: LimitFunction;
  inFlight: Map<Key, InFlightRecord>;
}

/**
 * Sends the planned changes, phase by phase, until the slice ends. The changes of one person are
 * sent in order. If a creation returns the contact as the platform made it, a new decision is made
 * immediately, so that the person does not stay subscribed if the CRM states an opt-out.
 */
export async function apply(of: ApplyingPeople): Promise<void> {
  const { run } = of;
  const applying: PeopleInFlight = { ...of, oneByOne: pLimit(1), inFlight: new Map() };
  const { journal } = run.snapshot;
  const sending = (isFollowUp: boolean) => ({
    isFollowUp,
    attempt: (change: JournaledChange, how: Attempt) => attempt(applying, change, how),
    replan(key: Key, isSettled: boolean) {
      const decide = () => decidePerson(applying, key);
      return decideAgain(run, { kind, key }, { isSettled, decide, review: applying.review });
    },
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
  applying: PeopleInFlight,
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
  applying: PeopleInFlight,
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
        // Stated opt-outs do not wait for a new reading.
        const isPastSlice = !isStatedOptOut(change) && run.clock.now() >= applying.endsAt;
        if (isPastSlice && !applying.known.still())
          throw new NotSent('the source is read again first');
        late = isOutdated() ? 'outdated' : undefined;
        if (isClosed()) late = 'closed';
        if (change.op !== 'opt_out' && !isFresh(run, provenAt)) late ??= 'too old';
        // This check comes last, so that no other run waits while the record of a change is read
        // again.
        if (!late && !beginInFlight(applying, change.key)) late = 'superseded';
        if (late) throw new NotSent(`what is known of it is ${late}`);
        if (change.op === 'delete') rememberDeleted(applying, change);
        const entries = identityInFlight(applying, change.key).entries();
        isBarred = contacts.forbids(change, entries);
        if (isBarred) throw new NotSent('the do-not-contact list forbids it');
        run.snapshot.journal.move(change.seq, 'sent', { at: run.clock.now() });
      }),
  });
  if (outcome.is !== 'held') return outcome;
  if (isBarred) return { is: 'stale', observed: undefined, why: outcome.why };
  return late ?? outcome;
}

/** Recovers the changes to people without a known outcome, but not those of other runs. */
export async function recover(of: ApplyingPeople): Promise<void> {
  const { run, breaker, toBeListed } = of;
  const applying: PeopleInFlight = { ...of, oneByOne: pLimit(1), inFlight: new Map() };
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
  applying: PeopleInFlight,
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
  applying: PeopleInFlight,
  change: JournaledChange,
  sent: Sent,
): Promise<void> {
  const { outcome } = sent;
  const record = (): boolean => {
    if (outcome.is === 'acked') return acknowledge(applying, change, outcome);
    recordFailure(applying, change, outcome, (key, rows) =>
      stageObservation(applying.run, { key, rows }),
    );
    return false;
  };
  await recordOutcome(applying, change, { ...sent, record });
}

/** Records an acknowledged change. Returns whether the record is now as desired. */
function acknowledge(
  applying: PeopleInFlight,
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
function reconsiderFormer(applying: PeopleInFlight, key: Key): void {
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
    reconsider(applying, { kind, key: old });
  }
}

// Tracks the people that have a request in flight, with their entries in the do-not-contact list.
// No other run touches such a person until the outcome is recorded, so the list is queried once for
// each request.

interface InFlightRecord {
  /** The record's ids in this reading of the source. */
  ids: readonly string[];
  who: Identity;
  /** Returns the entries of the do-not-contact list for this record. */
  entries(): readonly Entry[];
}

/** Call before sending. Returns false if another run has locked the person: do not send. */
function beginInFlight({ run, inFlight }: PeopleInFlight, key: Key): boolean {
  const about = identify(run, key);
  if (!run.locks.beginInFlight(run.id, key, about.ids)) return false;
  inFlight.set(key, about);
  return true;
}

function endInFlight({ run, inFlight }: PeopleInFlight, key: Key): void {
  inFlight.delete(key);
  run.locks.endInFlight(run.id, key);
}

/** Returns the identity from when the request began, or the current one if none is in flight. */
function identityInFlight({ run, inFlight }: PeopleInFlight, key: Key): InFlightRecord {
  return inFlight.get(key) ?? identify(run, key);
}

function identify(run: RunContext, key: Key): InFlightRecord {
  const ids = run.snapshot.staging.idsOf(kind, key);
  const who = identityWith(run, { key, ids });
  let entries: readonly Entry[] | undefined;
  return { ids, who, entries: () => (entries ??= run.doNotContact.concerning(who)) };
}

/** Adds a person to the do-not-contact list, if required, before their contact is deleted. */
function rememberDeleted(applying: PeopleInFlight, { key }: Change): void {
  const { run } = applying;
  const row = run.snapshot.recorded.get(kind, key);
  const adds = row ? memoriesOf(decodeContact.recorded(row)) : [];
  if (adds.length === 0) return;
  run.doNotContact.write(
    [{ ...identityInFlight(applying, key).who, adds, ends: [] }],
    run.clock.now(),
  );
}

/** Updates the list after an acknowledged change; `after` is the resulting recorded row. */
function rememberAcknowledged(
  applying: PeopleInFlight,
  change: Change,
  after: RecordedRow | undefined,
): void {
  const { run } = applying;
  const { who, entries } = identityInFlight(applying, change.key);
  const row = after && decodeContact.recorded(after);
  const news = newsOfChange(decodeContact.change(change), row, entries());
  if (news.adds.length + news.ends.length > 0) {
    run.doNotContact.write([{ ...who, ...news }], run.clock.now());
  }
}
