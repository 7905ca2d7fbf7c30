/** Turns answers and errors of the platform into the outcomes of changes. */
import {
  NotSent,
  Interrupted,
  isExpected,
  RateLimited,
  Rejected,
  Unavailable,
} from '../domain/errors.ts';
import type { ObservedRow } from '../domain/record.ts';
import type { SendOutcome } from './record-type.ts';

/** Asks the platform, and turns what it threw into the outcome it means. */
export async function settled<T>(ask: () => Promise<T | SendOutcome>): Promise<T | SendOutcome> {
  try {
    return await ask();
  } catch (error) {
    return outcomeOf(error);
  }
}

/** Returns the outcome of a change whose plan no longer holds; `observed` is what holds now. */
export function stale(observed: ObservedRow[], why: string): SendOutcome {
  return { is: 'stale', observed, why };
}

/**
 * Finds out by `read` what a change became after a write that may have acted. A reading that fails
 * says nothing about the change.
 */
export async function afterwards(read: () => Promise<SendOutcome>): Promise<SendOutcome> {
  try {
    return await read();
  } catch (error) {
    if (isExpected(error)) return { is: 'unknown', why: error.message };
    throw error;
  }
}

/**
 * Returns what a request that threw means for its change, where the record type has no rule of its
 * own (README, outcomes).
 */
export function outcomeOf(error: unknown): SendOutcome {
  if (error instanceof Rejected) return ofRefusal(error);
  if (error instanceof Unavailable) {
    return error.acted === 'no'
      ? { is: 'unsent', why: error.message }
      : { is: 'unknown', why: error.message };
  }
  if (error instanceof RateLimited) {
    return { is: 'stopped', scope: 'route', route: error.route, why: error.message };
  }
  if (error instanceof NotSent || error instanceof Interrupted) {
    return { is: 'held', why: error.message };
  }
  throw error;
}

function ofRefusal(error: Rejected): SendOutcome {
  if (error.status === 401) return { is: 'stopped', scope: 'run', why: error.message };
  if (error.status === 403) {
    return { is: 'stopped', scope: 'route', route: error.route, why: error.message };
  }
  const more = error.why !== '' && error.why !== error.message;
  const reason = more ? `${error.message}: ${error.why}` : error.message;
  return { is: 'rejected', status: error.status, reason, fix: error.fix };
}
