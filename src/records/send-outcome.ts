/** Converts errors of requests to the outcomes of changes. */
import {
  NotSent,
  Interrupted,
  isExpected,
  RateLimited,
  Rejected,
  Unavailable,
} from '../domain/errors.ts';
import type { ObservedRow } from '../domain/record.ts';
import type { SendOutcome, Stale } from './record-type.ts';

/**
 * Calls `ask` and returns its result. An expected error becomes the corresponding outcome; an
 * unexpected error is thrown.
 */
export async function settled<T>(ask: () => Promise<T | SendOutcome>): Promise<T | SendOutcome> {
  try {
    return await ask();
  } catch (error) {
    return outcomeOf(error);
  }
}

/**
 * Returns the outcome of a change whose plan is based on a state that no longer holds. `observed`:
 * the platform records that have its key now.
 */
export function stale(observed: ObservedRow[], why: string): Stale {
  return { is: 'stale', observed, why };
}

/**
 * Calls `read` to find the outcome of a write that may have taken effect, and returns it. If the
 * read fails, the outcome is unknown; an unexpected error is thrown.
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
 * Returns the outcome that corresponds to an error of a request, if the record type has no rule of
 * its own (docs/decisions/journal-and-outcomes.md). Throws the error if there is none.
 *
 *   Rejected, 401          stopped: the run
 *   Rejected, 403          stopped: the route
 *   Rejected, otherwise    rejected
 *   Unavailable            unsent if the request certainly did not act, otherwise unknown
 *   RateLimited            stopped: the route
 *   NotSent, Interrupted   held
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
  const { acted, message: why, route, status } = error;
  if (status === 401) return { is: 'stopped', scope: 'run', why, acted };
  if (status === 403) return { is: 'stopped', scope: 'route', route, why, acted };
  const more = error.why !== '' && error.why !== error.message;
  const reason = more ? `${error.message}: ${error.why}` : error.message;
  return { is: 'rejected', status: error.status, reason, fix: error.fix };
}
