import type { Evidence } from './platform-facts.ts';
import type { Key, ObservedRow } from '../domain/record.ts';
import type { Answer } from '../domain/exchange.ts';
import {
  NotSent,
  Interrupted,
  isExpected,
  RateLimited,
  Rejected,
  Unavailable,
} from '../domain/errors.ts';
import { operations } from '../platform/operations.ts';

/** A change that took effect, or whose effect was found on the platform. */
export interface Acked {
  is: 'acked';
  id: string | undefined;
  /** The record as shown in the response; undefined if not shown completely. */
  observed: ObservedRow | undefined;
  /** Whether the state was already there, so that it is unknown whether this request caused it. */
  found: boolean;
  /** Whether the state was there before anything was sent. */
  wasThere?: boolean;
  /** Whether `observed` was read so late that parts of it may be later changes by others. */
  late?: boolean;
  /** Whether the change may have been made and then undone by the person. */
  undone?: boolean;
  /** Whether the opt-out may be this request's or a default, and not the person's. */
  doubtful?: boolean;
  more?: boolean;
  /** Why no test could be sent of what was written. */
  untested?: string | undefined;
  /** The evidence about the platform that the response contains. */
  evidence?: Evidence | undefined;
  renamed?: boolean;
}

/**
 * An acknowledgement in the form in which it is recorded.
 *
 *   at          when the change was acknowledged, by our clock, in milliseconds since the epoch
 *   latest      the same time by our clock or the platform's, whichever is ahead
 *   wanted      the fingerprint of the key's only source record; undefined if none or several
 *   elsewhere   whether the change was sent under another key of the same record
 */
export type Acknowledged = Acked & {
  at: number;
  latest?: number;
  wanted?: string | undefined;
  elsewhere?: true;
};

/**
 * The outcome of a change.
 *
 *   acked      it took effect
 *   stale      the plan's assumptions no longer hold. `observed` is all that the platform has under
 *              its key, or the key it is `about`; undefined if the platform was not read. `undone`:
 *              it may have been made and taken back since
 *   rejected   the platform refused it
 *   unsent     it certainly did not take effect. `isAnswered`: the platform answered clearly
 *   held       we withheld it
 *   unknown    it may have taken effect
 *   stopped    nothing more in this scope may be sent: the run (the key is refused), the part that
 *              the change is about, or the route. `acted`: an earlier attempt may have taken effect
 */
export type SendOutcome =
  | Acked
  | { is: 'stale'; observed: ObservedRow[] | undefined; why: string; about?: Key; undone?: boolean }
  | { is: 'rejected'; status: number; reason: string; fix: string }
  | { is: 'unsent'; why: string; isAnswered?: true }
  | { is: 'held'; why: string }
  | { is: 'unknown'; why: string }
  | { is: 'stopped'; scope: 'run' | 'part'; why: string; acted?: 'no' | 'maybe' }
  | { is: 'stopped'; scope: 'route'; route: string; why: string; acted?: 'no' | 'maybe' };

/** The outcome of a change whose plan no longer holds. */
export type Stale = Extract<SendOutcome, { is: 'stale' }>;

/** Returns an acknowledgement with these fields; without any, the change just took effect. */
export function acked(fields: Partial<Acked> = {}): Acked {
  return { is: 'acked', id: undefined, observed: undefined, found: false, ...fields };
}

/** The signals that cancel a request: `signal` while it waits, `abort` also in flight. */
export interface Deadlines {
  signal: AbortSignal;
  abort: AbortSignal;
}

/** The signals with which a change is sent, and what it calls. */
export interface Sending extends Deadlines {
  /** Is awaited immediately before each attempt is sent. Throws NotSent to prevent it. */
  leaves(): Promise<void>;
  /** Is called with the answer to each attempt. */
  answered?(answer: Answer): void;
}

/** Returns the result of `ask`, or the outcome of an expected error; throws any other. */
export async function settled<T>(ask: () => Promise<T | SendOutcome>): Promise<T | SendOutcome> {
  try {
    return await ask();
  } catch (error) {
    return outcomeOf(error);
  }
}

/** Returns the outcome of an outdated plan; `observed`: the records that have its key now. */
export function stale(observed: ObservedRow[], why: string): Stale {
  return { is: 'stale', observed, why };
}

/** Returns the outcome that reading shows; unknown if it fails. Throws unexpected errors. */
export async function afterwards(read: () => Promise<SendOutcome>): Promise<SendOutcome> {
  try {
    return await read();
  } catch (error) {
    if (isExpected(error)) return { is: 'unknown', why: error.message };
    throw error;
  }
}

const readingRoutes: ReadonlySet<string> = new Set(
  Object.values(operations).flatMap(({ route, resend }) => (resend.changes ? [] : [route])),
);

/**
 * Returns the outcome that corresponds to an error of a request, if there is no rule of
 * its own (docs/decisions/journal-and-speed.md). Throws the error if there is none.
 *
 *   Rejected, 401          stopped: the run
 *   Rejected, 403          stopped: the route
 *   Rejected, of a reading unsent: it says nothing about the record, but for 400 and 422
 *   Rejected, otherwise    rejected
 *   Unavailable            unsent if the request certainly did not act, otherwise unknown
 *   RateLimited            stopped: the route
 *   NotSent, Interrupted   held
 */
export function outcomeOf(error: unknown): SendOutcome {
  if (error instanceof Rejected) {
    const { acted, message: why, route, status, fix } = error;
    if (status === 401) return { is: 'stopped', scope: 'run', why, acted };
    if (status === 403) return { is: 'stopped', scope: 'route', route, why, acted };
    const reason = error.why !== '' && error.why !== why ? `${why}: ${error.why}` : why;
    if (readingRoutes.has(route) && ![400, 422].includes(status))
      return { is: 'unsent', why: reason, isAnswered: true };
    return { is: 'rejected', status, reason, fix };
  }
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
