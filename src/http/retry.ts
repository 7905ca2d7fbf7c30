/**
 * Sends again what may be sent again, a bounded number of times, with full jitter. What an
 * operation allows is data; 429 is no business of this file: the gate waits it out.
 */
import type { Clock, Random } from '../domain/clock.ts';
import { Held, RateLimited, Rejected, Unavailable } from '../domain/errors.ts';
import { anySignal } from './composite-signal.ts';

const MOST_ATTEMPTS = 4;
const BASE_MS = 250;
const CAP_MS = 5000;

/** When an operation may be sent again. What provably never left (`acted` 'no') always may. */
export interface Resend {
  /** Whether it changes anything; if not, nothing is ever unknown about its effect. */
  changes: boolean;
  /** After these answers. */
  after: 'every 5xx' | readonly number[];
  /** After no usable answer at all: a time-out, a cut connection, an unreadable body. */
  unanswered: boolean;
}

/** The kinds of operation there are; a row of the table of operations names one. */
export const resend = {
  /** Reads. */
  freely: { changes: false, after: 'every 5xx', unanswered: true },
  /** Twice is the same as once: PUT, DELETE, an enrolment of a contact named by its id. */
  repeatable: { changes: true, after: 'every 5xx', unanswered: false },
  /** A 500 is the platform's own; 502 and above may be a proxy's, which cannot know. */
  afterOwnFailure: { changes: true, after: [500], unanswered: false },
  /** Twice makes two. */
  never: { changes: true, after: [], unanswered: false },
} as const satisfies Record<string, Resend>;

interface RetryOptions {
  clock: Clock;
  random: Random;
  /** The first one included. */
  maxAttempts?: number | undefined;
  /** Stops the waiting between attempts. */
  signal?: AbortSignal | undefined;
}

/**
 * Calls `attempt` until it gives a value, throws what is final, or the attempts are used up. An
 * attempt throws Unavailable, with `status` when there was an answer (5xx).
 *
 * Throws Unavailable with `acted` 'maybe' if any attempt may have had its effect, else 'no'; the
 * signal's reason when aborted and nothing may have acted; Rejected with `acted` when an attempt
 * before it may have acted; everything else as the attempt threw it.
 */
type Retry = <T>(rule: Resend, attempt: () => Promise<T>, signal?: AbortSignal) => Promise<T>;

export function createRetry({ clock, random, maxAttempts, signal: stop }: RetryOptions): Retry {
  const most = maxAttempts ?? MOST_ATTEMPTS;
  return async (rule, attempt, signal) => {
    const ended = anySignal(stop, signal);
    let acted: Unavailable['acted'] = 'no';
    for (let attempts = 1; ; attempts += 1) {
      try {
        return await attempt();
      } catch (error) {
        if (!(error instanceof Unavailable)) throw stopped(error, acted, ended);
        if (rule.changes && error.acted === 'maybe') acted = 'maybe';
        if (attempts >= most || !allows(rule, error)) throw final(error, acted, attempts);
      }
      const cap = Math.min(CAP_MS, BASE_MS * 2 ** (attempts - 1));
      await clock.sleep(random() * cap, ended).catch((reason: unknown) => {
        throw stopped(reason, acted, ended);
      });
    }
  };
}

function allows(rule: Resend, error: Unavailable): boolean {
  if (error.acted === 'no') return true;
  const { status } = error;
  if (status === undefined || status < 500) return rule.unanswered;
  return rule.after === 'every 5xx' || rule.after.includes(status);
}

function final(error: Unavailable, acted: Unavailable['acted'], attempts: number): Unavailable {
  if (attempts === 1 && error.acted === acted) return error;
  const message = attempts === 1 ? error.message : `${error.message}, after ${attempts} attempts`;
  const status = error.status === undefined ? {} : { status: error.status };
  return new Unavailable(message, { acted, ...status, cause: error });
}

/** Given up between attempts of which one may have acted: that outweighs why it was given up. */
function stopped(error: unknown, acted: Unavailable['acted'], ended?: AbortSignal): unknown {
  if (acted === 'no') return error;
  if (error instanceof Rejected) {
    const { status, why, fix, route } = error;
    return new Rejected(error.message, { status, why, fix, route, acted });
  }
  const waited = error instanceof RateLimited || error instanceof Held;
  if (!waited && !(ended?.aborted && error === ended.reason)) return error;
  const message = 'stopped before it was known whether an earlier attempt had its effect';
  return new Unavailable(message, { acted, cause: error });
}
