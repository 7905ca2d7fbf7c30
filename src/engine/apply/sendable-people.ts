/**
 * How the changes to people are sent and recorded: what the do-not-contact list forbids and learns,
 * and what an acknowledged change means for other keys of the same contact.
 *
 * No other run touches a person with a request in flight until the outcome is recorded, so the
 * do-not-contact list is queried once for each request.
 */
import type { Change, JournaledChange } from '../../domain/change.ts';
import type { Entry, Identity } from '../../domain/do-not-contact.ts';
import type { Key, RecordedRow } from '../../domain/record.ts';
import type { Acked } from '../../records/change-outcome.ts';
import { memoriesOf, newsOfChange } from '../../records/contact/consent/do-not-contact-entries.ts';
import { decodeContact, phase } from '../../records/contact/observe/contact-state.ts';
import { acknowledge } from '../../records/contact/send/acknowledged-change.ts';
import type { MirrorContacts } from '../context/mirror-context.ts';
import { identityWith } from '../context/person-identity.ts';
import { latestNow } from '../context/platform-knowledge.ts';
import { isSuperseded, type RunContext } from '../context/run-context.ts';
import { stageObservation } from '../observe/observe-platform.ts';
import { decidePerson } from '../decide/decide-changes.ts';
import { type Applying, reconsider, type SendableRecords } from './apply-changes.ts';

const kind = 'contact';

interface InFlightRecord {
  /** The record's ids in this reading of the source. */
  ids: readonly string[];
  who: Identity;
  entries(): readonly Entry[];
}

/** Returns the people of a run as records to send. */
export function sendablePeople(applying: Applying, contacts: MirrorContacts): SendableRecords {
  const { run } = applying;
  const { recorded } = run.snapshot;
  const inFlight = new Map<Key, InFlightRecord>();
  /** Returns the identity from when the request began, or the current one if none is in flight. */
  const identify = (key: Key) => inFlight.get(key) ?? identityNow(run, key);
  return {
    kind,
    phases: Object.values(phase),
    look: contacts.look,
    send: async (change, how) =>
      contacts.send(change, {
        ...how,
        facts: run.facts.known,
        recorded: () => recorded.get(kind, change.key),
      }),
    recover: async (change, how) =>
      contacts.recover(change, {
        ...how,
        facts: run.facts.known(),
        recorded: recorded.get(kind, change.key),
      }),
    isSuperseded: (key) => isSuperseded(run, key),
    begin(key) {
      const about = identityNow(run, key);
      if (!run.locks.beginInFlight(run.id, key, about.ids)) return false;
      inFlight.set(key, about);
      return true;
    },
    end(key) {
      inFlight.delete(key);
      run.locks.endInFlight(run.id, key);
    },
    forbids(change) {
      const about = identify(change.key);
      if (change.op === 'delete') rememberDeleted(run, about.who);
      return contacts.forbids(change, about.entries());
    },
    stage: (key, rows) => stageObservation(run, { key, rows }),
    decide: (key) => decidePerson({ ...applying, contacts }, key),
    acknowledge: (change, outcome, at) =>
      acknowledgePerson(applying, change, { ...outcome, about: identify(change.key), at }),
  };
}

function identityNow(run: RunContext, key: Key): InFlightRecord {
  const ids = run.snapshot.staging.idsOf(kind, key);
  const who = identityWith(run, { key, ids });
  let entries: readonly Entry[] | undefined;
  return { ids, who, entries: () => (entries ??= run.doNotContact.concerning(who)) };
}

/** Adds a person to the do-not-contact list, if required, before their contact is deleted. */
function rememberDeleted({ snapshot, doNotContact, clock }: RunContext, who: Identity): void {
  const row = snapshot.recorded.get(kind, who.key);
  const adds = row ? memoriesOf(decodeContact.recorded(row)) : [];
  if (adds.length > 0) doNotContact.write([{ ...who, adds, ends: [] }], clock.now());
}

function acknowledgePerson(
  applying: Applying,
  change: JournaledChange,
  { about, at, ...outcome }: Acked & { about: InFlightRecord; at: number },
): ReturnType<SendableRecords['acknowledge']> {
  const { run, known } = applying;
  const { journal, recorded, unmanaged, absences, staging } = run.snapshot;
  const { key, op, part, target } = change;
  const [first, duplicate] = op === 'create' ? staging.desired(kind, key) : [];
  const wanted = duplicate ? undefined : first?.fingerprint;
  // A renamed contact may be opted out under both keys; the second opt-out then finds the first.
  const found = outcome.found && !(op === 'opt_out' && journal.isDone(change));
  // An unanswered request under another key of the contact may have opted it out.
  const isSame = (other: JournaledChange): boolean =>
    other.op === 'opt_out' && other.part === part && other.target === target;
  const mayBeOther = found && target !== undefined && isSame(change);
  const open = mayBeOther ? journal.open(kind) : [];
  const isElsewhere = open.some((other) => other.seq !== change.seq && isSame(other));
  const doubtful = outcome.doubtful || isElsewhere;
  const ack = { ...outcome, found, doubtful, at, latest: latestNow(run) };
  const row = acknowledge(recorded.get(kind, key), change, { ...ack, wanted });
  if (outcome.evidence) run.facts.learn(outcome.evidence);
  rememberAcknowledged(run, about, { change, row });
  if (op !== 'opt_out') return { row, follow: () => reconsiderFormer(applying, key, about.ids) };
  return {
    row,
    follow() {
      unmanaged.mend(kind, key, part);
      // It was sent by the contact's id, so it is recorded under the contact's other keys, too, but
      // not under former ones if the contact had been opted out before.
      const { renamed: _, ...elsewhere } = { ...ack, elsewhere: true as const };
      const others =
        target === undefined ? [] : recorded.everOfId({ kind, id: target, notKey: key });
      for (const other of others) {
        if (found && other.id !== target) continue;
        const also = acknowledge(other, { ...change, key: other.key }, elsewhere);
        if (also) recorded.put(also);
      }
      const { platformStartedAt, startedAt = 0 } = known.listing ?? {};
      const platformAt = platformStartedAt && platformStartedAt + at - startedAt;
      absences.waitAnew({ kind, key, at, platformAt });
    },
  };
}

function rememberAcknowledged(
  { doNotContact, clock }: RunContext,
  { who, entries }: InFlightRecord,
  { change, row }: { change: Change; row: RecordedRow | undefined },
): void {
  const after = row && decodeContact.recorded(row);
  const news = newsOfChange(decodeContact.change(change), after, entries());
  if (news.adds.length + news.ends.length > 0)
    doNotContact.write([{ ...who, ...news }], clock.now());
}

/**
 * Requests new decisions for the record's former keys, by the recorded state, because they may have
 * waited for this change. Skips keys with a change whose outcome is unknown.
 */
function reconsiderFormer(applying: Applying, key: Key, ids: readonly string[]): void {
  const { run, known } = applying;
  const { staging, recorded, journal } = run.snapshot;
  const former = ids
    .flatMap((id) => recorded.ofOrigin(kind, id, key))
    .map((row) => row.key)
    .filter((old) => staging.desired(kind, old).length === 0);
  const open = former.length > 0 ? journal.open(kind).map((change) => change.key) : [];
  for (const old of former.filter((one) => !open.includes(one))) {
    const isListed = known.listing && staging.lookedAt(kind, old) === undefined;
    if (isListed && staging.observed(kind, old).length === 0) continue;
    // A run without a listing has already decided about this key by what it had observed.
    if (isListed || !known.listing) staging.assume(kind, old);
    reconsider(applying, { kind, key: old });
  }
}
