/**
 * Declares what all sends to people share, and tracks the people that have a request in flight with
 * their entries in the do-not-contact list.
 * No other run touches such a record until the outcome is recorded, so the list is queried once for
 * each request.
 */
import type { LimitFunction } from 'p-limit';
import { type Change, isStatedOptOut } from '../../domain/change.ts';
import { memoriesOf, newsOfChange } from '../../records/contact/consent/do-not-contact-entries.ts';
import { decodeContact } from '../../records/contact/observe/contact-state.ts';
import type { Entry, Identity } from '../../domain/do-not-contact.ts';
import type { Key, RecordedRow } from '../../domain/record.ts';
import type { RunContext } from '../context/run-context.ts';
import type { MirrorContacts } from '../context/mirror-context.ts';
import type { Applying } from './record-outcome.ts';
import { identityWith } from '../context/person-identity.ts';

/** Shared by all sends to people. */
export interface ApplyContext extends Applying {
  contacts: MirrorContacts;
  /** Limits changes whose records are read again to one at a time. */
  oneByOne: LimitFunction;
  inFlight: Map<Key, InFlightRecord>;
}

interface InFlightRecord {
  /** The record's ids in this reading of the source. */
  ids: readonly string[];
  who: Identity;
  /** Returns the entries of the do-not-contact list for this record. */
  entries(): readonly Entry[];
}

/** Returns whether a change waits for a new reading. Stated opt-outs never do. */
export function isPastSlice({ run, known, endsAt }: ApplyContext, change: Change): boolean {
  if (isStatedOptOut(change)) return false;
  return run.clock.now() >= endsAt && !known.still();
}

/** Call before sending. Returns false if another run has locked the person: do not send. */
export function beginInFlight({ run, inFlight }: ApplyContext, key: Key): boolean {
  const about = identify(run, key);
  if (!run.locks.beginInFlight(run.id, key, about.ids)) return false;
  inFlight.set(key, about);
  return true;
}

export function endInFlight({ run, inFlight }: ApplyContext, key: Key): void {
  inFlight.delete(key);
  run.locks.endInFlight(run.id, key);
}

/** Returns the identity from when the request began, or the current one if none is in flight. */
export function identityInFlight({ run, inFlight }: ApplyContext, key: Key): InFlightRecord {
  return inFlight.get(key) ?? identify(run, key);
}

function identify(run: RunContext, key: Key): InFlightRecord {
  const ids = run.snapshot.staging.idsOf('contact', key);
  const who = identityWith(run, { key, ids });
  let entries: readonly Entry[] | undefined;
  return { ids, who, entries: () => (entries ??= run.doNotContact.concerning(who)) };
}

/** Returns whether the do-not-contact list forbids a change that is about to be sent. */
export function isForbidden(applying: ApplyContext, change: Change): boolean {
  return applying.contacts.forbids(change, identityInFlight(applying, change.key).entries());
}

/** Adds a person to the do-not-contact list, if required, before their contact is deleted. */
export function rememberDeleted(applying: ApplyContext, { key }: Change): void {
  const { run } = applying;
  const row = run.snapshot.recorded.get('contact', key);
  const adds = row ? memoriesOf(decodeContact.recorded(row)) : [];
  if (adds.length === 0) return;
  run.doNotContact.write(
    [{ ...identityInFlight(applying, key).who, adds, ends: [] }],
    run.clock.now(),
  );
}

/** Updates the list after an acknowledged change; `after` is the resulting recorded row. */
export function rememberAcknowledged(
  applying: ApplyContext,
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
