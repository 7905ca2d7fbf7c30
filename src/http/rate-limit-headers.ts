/**
 * Reads what the headers of one answer say about the budget of its route (specification, "Limits"
 * 4).
 */

const DAY_MS = 86_400_000;
/** X-RateLimit-Reset below this is not an epoch time but the seconds left. */
const EPOCH_SINCE_S = 1e9;
/** X-RateLimit-Reset above this is in milliseconds. */
const EPOCH_SINCE_MS = 1e11;

/** The budget of a route as one answer shows it; undefined: nothing usable. */
export interface Observation {
  /** Whether the answer is a 429. */
  refused: boolean;
  /** Requests per window. */
  limit: number | undefined;
  /** Requests left after this one; never above `limit`. */
  remaining: number | undefined;
  windowMs: number | undefined;
  /** Milliseconds from this answer to the end of the window. */
  resetInMs: number | undefined;
  /** The server's time of day in epoch milliseconds, precise to the second. */
  dateMs: number | undefined;
  /** The wait that the answer asks for; 0 when the time it names has passed. */
  retryAfterMs: number | undefined;
}

/**
 * Reads the headers (lower-case names) of one answer. A malformed, negative or missing value
 * affects only its own field. No duration is longer than a day. Points in time are taken relative
 * to the answer's own Date header, so that a wrong clock here changes nothing; without a Date,
 * relative to `nowMs` (epoch).
 */
export function observe(
  status: number,
  headers: Readonly<Record<string, string>>,
  nowMs: number,
): Observation {
  const dateMs = httpDate(headers['date']);
  const answeredMs = dateMs ?? nowMs;
  const limit = positive(whole(headers['x-ratelimit-limit']));
  const remaining = whole(headers['x-ratelimit-remaining']);
  const window = positive(seconds(headers['x-ratelimit-window']));
  const asks = status === 429 || status === 503;
  return {
    refused: status === 429,
    limit,
    remaining: remaining === undefined ? undefined : Math.min(remaining, limit ?? remaining),
    windowMs: window === undefined ? undefined : Math.min(window * 1000, DAY_MS),
    resetInMs: resetIn(seconds(headers['x-ratelimit-reset']), answeredMs),
    dateMs,
    retryAfterMs: asks ? retryAfter(headers['retry-after'], answeredMs) : undefined,
  };
}

/** Returns an HTTP date as epoch milliseconds; undefined for any other text. */
export function httpDate(text: string | undefined): number | undefined {
  // Date.parse alone accepts nearly everything, '-5' included.
  if (text === undefined || !/^[A-Z][a-z]{2,8},? .* GMT$/.test(text.trim())) return undefined;
  const time = Date.parse(text);
  return Number.isNaN(time) ? undefined : time;
}

function retryAfter(text: string | undefined, answeredMs: number): number | undefined {
  const wait = seconds(text);
  if (wait !== undefined) return Math.min(wait * 1000, DAY_MS);
  const until = httpDate(text);
  return until === undefined ? undefined : clamp(until - answeredMs);
}

function resetIn(reset: number | undefined, answeredMs: number): number | undefined {
  if (reset === undefined) return undefined;
  if (reset < EPOCH_SINCE_S) return clamp(reset * 1000);
  return clamp((reset < EPOCH_SINCE_MS ? reset * 1000 : reset) - answeredMs);
}

function clamp(ms: number): number {
  return Math.min(Math.max(ms, 0), DAY_MS);
}

function whole(text: string | undefined): number | undefined {
  if (text === undefined || !/^\d{1,15}$/.test(text.trim())) return undefined;
  return Number(text);
}

function seconds(text: string | undefined): number | undefined {
  if (text === undefined || !/^\d{1,15}(\.\d+)?$/.test(text.trim())) return undefined;
  return Number(text);
}

function positive(value: number | undefined): number | undefined {
  return value === 0 ? undefined : value;
}
