/** Declares what all sends for one record type share, and decides how fresh the known state is. */
import type { LimitFunction } from 'p-limit';
import { type Change, isStatedOptOut, type JournaledChange } from '../../domain/change.ts';
import type { KnownRecord, RecordType } from '../../records/record-type.ts';
import type { Entry, Identity } from '../../domain/do-not-contact.ts';
import type { Key } from '../../domain/record.ts';
import type { CircuitBreaker } from '../context/circuit-breaker.ts';
import { isFresh, type RunContext } from '../context/run-context.ts';
import type { Findings } from '../context/run-findings.ts';
import type { RunTally } from '../context/run-tally.ts';

/** Shared by all sends for one record type. */
export interface ApplyContext {
  run: RunContext;
  type: RecordType;
  known: Findings;
  /**
   * Whether the platform is listed afterwards; that listing will then be newer than what is read
   * now.
   */
  toBeListed: boolean;
  breaker: CircuitBreaker;
  tally: RunTally;
  /** Limits changes whose records are read again to one at a time. */
  oneByOne: LimitFunction;
  /** Records that have a request in flight (in-flight.ts). */
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

/** A record that has a request in flight. */
export interface InFlightRecord {
  /** The record's ids in this reading of the source. */
  ids: readonly string[];
  who: Identity;
  /** Returns the entries of the do-not-contact list for this record. */
  entries(): readonly Entry[];
}

/**
 * Returns what this run knows about a record, and since when. Observations of earlier runs do not
 * count, because their clocks may have differed.
 */
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

/**
 * Returns whether a change must wait until the source is read again, because the slice is over and
 * the source has changed. Stated opt-outs are sent regardless.
 */
export function isPastSlice({ run, type, known, endsAt }: ApplyContext, change: Change): boolean {
  if (!type.needsCertificate || isStatedOptOut(change)) return false;
  return run.clock.now() >= endsAt && !known.still();
}
