/** Holds what the sending of one record type's changes shares, and tells how fresh that is. */
import type { LimitFunction } from 'p-limit';
import { type Change, isStatedOptOut, type JournaledChange } from '../../domain/change.ts';
import type { KnownRecord, RecordType } from '../../records/record-type.ts';
import type { Entry, Identity } from '../../domain/do-not-contact.ts';
import type { Key } from '../../domain/record.ts';
import type { CircuitBreaker } from '../context/circuit-breaker.ts';
import { isFresh, type RunContext } from '../context/run-context.ts';
import type { Findings } from '../context/run-findings.ts';
import type { RunTally } from '../context/run-tally.ts';

/** Shared by the sending of all changes of one record type. */
export interface ApplyContext {
  run: RunContext;
  type: RecordType;
  known: Findings;
  /** Whether the platform is listed afterwards: then what is read now will not be the newest. */
  toBeListed: boolean;
  breaker: CircuitBreaker;
  tally: RunTally;
  /** Lets changes that are looked at again through one at a time. */
  oneByOne: LimitFunction;
  /** Records with a request in flight (in-flight.ts). */
  inFlight: Map<Key, InFlightRecord>;
  /**
   * Decides a record again after its creation, at once: the rest of its changes was planned before
   * anybody knew what the platform made of it. Returns whether there is anything to send.
   */
  replan(key: Key, isSettled: boolean): boolean;
  /** How long a request may be under way, in milliseconds. */
  timeoutMs: number;
  /** When the slice ends and the source is asked again; milliseconds since the epoch. */
  endsAt: number;
  /** How many changes the plan holds. */
  planned: number;
}

/** A record with a request in flight. */
export interface InFlightRecord {
  /** The ids that it has in this reading of the source. */
  ids: readonly string[];
  who: Identity;
  /** Returns the entries of the do-not-contact list about it. */
  entries(): readonly Entry[];
}

/** Returns what this run knows of a record, and since when. Earlier runs had other clocks. */
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
    // Read when asked for: most changes need no second look.
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
 * Returns whether a change has to wait for the source to be read again: the slice is over and the
 * source has changed. Stated opt-outs are sent nevertheless.
 */
export function isPastSlice({ run, type, known, endsAt }: ApplyContext, change: Change): boolean {
  if (!type.needsCertificate || isStatedOptOut(change)) return false;
  return run.clock.now() >= endsAt && !known.still();
}
