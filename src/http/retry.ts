/** Sends a request again if its operation allows it, with full jitter; not after a 429. */
import type { Clock, Random } from '../domain/clock.ts';
import { NotSent, RateLimited, Rejected, Unavailable } from '../domain/errors.ts';
import { retryDelayMs, retrySchedules } from '../domain/retry-schedules.ts';

/** When an operation may be sent again; one that never left (`acted` 'no') always may. */
export interface Resend {
  /** Whether the operation changes anything. If it does not, its outcome is never unknown. */
  changes: boolean;
  /** The statuses after which it may be sent again. */
  after: 'every 5xx' | readonly number[];
  /** Whether that holds without a usable response: after a time-out or a cut connection. */
  unanswered: boolean;
}

/** The rules to which the table of operations refers. */
export const resend = {
  freely: { changes: false, after: 'every 5xx', unanswered: true },
  /** For operations with the same effect when repeated: PUT, DELETE, an enrolment by id. */
  repeatable: { changes: true, after: 'every 5xx', unanswered: false },
  /** For what a proxy's error leaves unclear: only a 500 surely comes from the platform itself. */
  afterOwnFailure: { changes: true, after: [500], unanswered: false },
  /** For operations that would take effect twice. */
  never: { changes: true, after: [], unanswered: false },
} as const satisfies Record<string, Resend>;

interface RetryOptions {
  clock: Clock;
  random: Random;
  /** Including the first one. */
  maxAttempts?: number | undefined;
  /** Ends the waits between attempts. */
  signal?: AbortSignal | undefined;
}

/**
 * Calls `attempt` until it returns a value, throws a final error, or no attempts are left. An
 * attempt throws Unavailable, with `status` if there was a response (5xx).
 *
 * Throws Unavailable with `acted` 'maybe' if any attempt may have had its effect, otherwise with
 * 'no'. Throws the signal's reason if it is aborted and no attempt may have acted, and Rejected
 * with `acted` if an earlier attempt may have acted. Passes on every other error of an attempt
 * unchanged.
 */
type Retry = <T>(rule: Resend, attempt: () => Promise<T>, signal?: AbortSignal) => Promise<T>;

/** Creates a `Retry` for one client. */
export function createRetry({ clock, random, maxAttempts, signal: stop }: RetryOptions): Retry {
  const most = maxAttempts ?? retrySchedules.request.tries;
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
      const delayMs = retryDelayMs(retrySchedules.request, attempts, random);
      await clock.sleep(delayMs, ended).catch((reason: unknown) => {
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
  const [{ reason, fix }] = error.problems;
  const after = attempts === 1 ? '' : `, after ${attempts} attempts`;
  const detail = { fix, acted, status: error.status, cause: error };
  return new Unavailable(`${reason}${after}`, detail);
}

/** Returns the error that ends the attempts. It says if an earlier one may have acted. */
function stopped(error: unknown, acted: Unavailable['acted'], ended?: AbortSignal): unknown {
  if (acted === 'no') return error;
  if (error instanceof Rejected) {
    const { status, why, fix, route } = error;
    return new Rejected(error.message, { status, why, fix, route, acted });
  }
  const waited = error instanceof RateLimited || error instanceof NotSent;
  if (!waited && !(ended?.aborted && error === ended.reason)) return error;
  const message = 'stopped before it was known whether an earlier attempt had its effect';
  return new Unavailable(message, { acted, cause: error });
}

const composites = new WeakMap<AbortSignal, WeakMap<AbortSignal, AbortSignal>>();

/** Combines two signals, if given. Equal pairs share one, which saves a tenth of a request. */
export function anySignal(
  one: AbortSignal | undefined,
  other: AbortSignal | undefined,
): AbortSignal | undefined {
  if (!one || !other || one === other) return one ?? other;
  const withOne = composites.get(one) ?? new WeakMap<AbortSignal, AbortSignal>();
  composites.set(one, withOne);
  const both = withOne.get(other) ?? AbortSignal.any([one, other]);
  withOne.set(other, both);
  return both;
}
