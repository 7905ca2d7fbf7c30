/**
 * Declares what all sends for one record type share, decides how fresh the known state is, and
 * tracks the records that have a request in flight with their entries in the do-not-contact list.
 * No other run touches such a record until the outcome is recorded, so the list is queried once for
 * each request.
 */
import type { LimitFunction } from 'p-limit';
import { type Change, isStatedOptOut, type JournaledChange } from '../../domain/change.ts';
import type { KnownRecord, RecordType } from '../../records/record-type.ts';
import type { Entry, Identity } from '../../domain/do-not-contact.ts';
import type { Key, RecordedRow } from '../../domain/record.ts';
import type { CircuitBreaker } from '../context/circuit-breaker.ts';
import { isFresh, type RunContext } from '../context/run-context.ts';
import type { Findings } from '../context/run-state.ts';
import type { RunTally } from '../context/run-tally.ts';
import { identityWith } from '../context/person-identity.ts';

/** Shared by all sends for one record type. */
export interface ApplyContext {
  run: RunContext;
  type: RecordType;
  known: Findings;
  /** Whether the platform is listed afterwards, which is then newer than what is read now. */
  toBeListed: boolean;
  breaker: CircuitBreaker;
  tally: RunTally;
  /** Limits changes whose records are read again to one at a time. */
  oneByOne: LimitFunction;
  inFlight: Map<Key, InFlightRecord>;
  /**
   * Makes a new decision for a record immediately after its creation, because its other changes
   * were planned before the result of the creation was known. Returns whether there is anything to
   * send.
   */
  replan(key: Key, isSettled: boolean): boolean;
  /** How long a request may be in flight, in milliseconds. */
  timeoutMs: number;
  /** When the slice ends and the source is checked again, in milliseconds since the epoch. */
  endsAt: number;
  /** The number of changes that the guards have let pass so far. */
  passed: number;
}

interface InFlightRecord {
  /** The record's ids in this reading of the source. */
  ids: readonly string[];
  who: Identity;
  /** Returns the entries of the do-not-contact list for this record. */
  entries(): readonly Entry[];
}

/** Returns what this run, and no other with its own clock, knows about a record, since when. */
export function knownOf(
  { run, type, known }: ApplyContext,
  change: JournaledChange,
): KnownRecord & { at: number } {
  const { recorded, staging } = run.snapshot;
  const listed = known.listing?.complete ? known.listing.startedAt : 0;
  const looked = staging.lookedAt(type.name, change.key);
  const alone = typeof looked === 'number' ? looked : 0;
  const sighted = change.op === 'create' ? 0 : (staging.sightedAt(type.name, change.key) ?? 0);
  const at = Math.max(listed, alone, sighted);
  return {
    // Read on demand, because for most changes the record is not read a second time.
    get recorded() {
      return recorded.get(type.name, change.key);
    },
    fresh: isFresh(run, at),
    listed: isFresh(run, listed),
    partial: known.listing?.complete === false && alone === 0,
    at,
    signal: run.abort,
  };
}

/** Returns whether a change waits for a new reading. Stated opt-outs never do. */
export function isPastSlice({ run, type, known, endsAt }: ApplyContext, change: Change): boolean {
  if (!type.needsCertificate || isStatedOptOut(change)) return false;
  return run.clock.now() >= endsAt && !known.still();
}

/** Call before sending. Returns false if another run has locked the person: do not send. */
export function beginInFlight({ run, type, inFlight }: ApplyContext, key: Key): boolean {
  const about = identify(run, type, key);
  if (type.capabilities.personRead && !run.locks.beginInFlight(run.id, key, about.ids))
    return false;
  inFlight.set(key, about);
  return true;
}

export function endInFlight({ run, inFlight }: ApplyContext, key: Key): void {
  inFlight.delete(key);
  run.locks.endInFlight(run.id, key);
}

/** Returns the identity from when the request began, or the current one if none is in flight. */
export function identityInFlight({ run, type, inFlight }: ApplyContext, key: Key): InFlightRecord {
  return inFlight.get(key) ?? identify(run, type, key);
}

function identify(run: RunContext, type: RecordType, key: Key): InFlightRecord {
  const ids = run.snapshot.staging.idsOf(type.name, key);
  const who = identityWith(run, type, { key, ids });
  let entries: readonly Entry[] | undefined;
  return { ids, who, entries: () => (entries ??= run.doNotContact.concerning(who)) };
}

/** Returns whether the do-not-contact list forbids a change that is about to be sent. */
export function isForbidden(applying: ApplyContext, change: Change): boolean {
  const { doNotContact } = applying.type.capabilities;
  return doNotContact?.forbids(change, identityInFlight(applying, change.key).entries()) ?? false;
}

/** Adds a person to the do-not-contact list, if required, before their contact is deleted. */
export function rememberDeleted(applying: ApplyContext, { key }: Change): void {
  const { run, type } = applying;
  const row = run.snapshot.recorded.get(type.name, key);
  const adds = (row && type.capabilities.doNotContact?.memories(row)) ?? [];
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
  const { run, type } = applying;
  const { doNotContact } = type.capabilities;
  if (!doNotContact) return;
  const { who, entries } = identityInFlight(applying, change.key);
  const news = doNotContact.learn(change, after, entries());
  if (news.adds.length + news.ends.length > 0) {
    run.doNotContact.write([{ ...who, ...news }], run.clock.now());
  }
}
