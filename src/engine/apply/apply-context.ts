/** What the sending of one kind's changes shares, and how fresh it is. */
import type { LimitFunction } from 'p-limit';
import { type Change, isStatedOptOut, type JournaledChange } from '../../domain/change.ts';
import type { KnownRecord, RecordType } from '../../records/record-type.ts';
import type { Entry, Identity } from '../../domain/do-not-contact.ts';
import type { Key } from '../../domain/record.ts';
import type { CircuitBreaker } from '../context/circuit-breaker.ts';
import { isFresh, type RunContext } from '../context/run-context.ts';
import type { Findings } from '../context/run-findings.ts';
import type { RunTally } from '../context/run-tally.ts';

export interface ApplyContext {
  run: RunContext;
  type: RecordType;
  known: Findings;
  /** The platform is still to be listed: what is read before that will not be the newest. */
  toBeListed: boolean;
  breaker: CircuitBreaker;
  tally: RunTally;
  /** What is looked at again goes through here, one after the other. */
  oneByOne: LimitFunction;
  /** Records for which something is under way (in-flight.ts). */
  inFlight: Map<Key, InFlightRecord>;
  /**
   * Decides a record again after its creation, at once: the rest of its changes was planned before
   * anybody knew what the platform made of it. Returns whether there is anything to send.
   */
  replan(key: Key, isSettled: boolean): boolean;
  /** How long a request may be under way, in milliseconds. */
  timeoutMs: number;
  /** When to take no more, and ask the source again; by the clock of the run. */
  endsAt: number;
  /** How many changes the plan holds. */
  planned: number;
}

/** What names a record for which something is under way, and what the ledger says of it. */
export interface InFlightRecord {
  /** Those that the source gives it in this reading. */
  ids: readonly string[];
  who: Identity;
  entries(): readonly Entry[];
}

/** When this run was last shown the record. Earlier runs had clocks of their own. */
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
    // Most are not looked at once more.
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

/** Of a slice that is over, in which the source has changed, only stated opt-outs still leave. */
export function isPastSlice({ run, type, known, endsAt }: ApplyContext, change: Change): boolean {
  if (!type.needsCertificate || isStatedOptOut(change)) return false;
  return run.clock.now() >= endsAt && !known.still();
}
