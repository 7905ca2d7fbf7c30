/** Reads what response headers state about a route's budget (specification, "Limits" 4). */
import { z } from 'zod';

const DAY_MS = 86_400_000;
/** Below this value, a number holds the seconds left instead of an epoch time. */
const EPOCH_SINCE_S = 1e9;
/** From this value, an epoch time is in milliseconds. */
const EPOCH_SINCE_MS = 1e11;

/** A route's budget as one response shows it. A field without usable value is undefined. */
export const observation = z.object({
  refused: z.boolean(),
  limit: z.number().optional(),
  /** The requests left after this one; never above `limit`. */
  remaining: z.number().optional(),
  windowMs: z.number().optional(),
  /** The milliseconds from this response to the end of the window. */
  resetInMs: z.number().optional(),
  /** The server's wall-clock time in epoch milliseconds, precise to the second. */
  dateMs: z.number().optional(),
  /** The wait that the response demands; 0 if the time that it names has passed. */
  retryAfterMs: z.number().optional(),
});
export type Observation = z.infer<typeof observation>;

/**
 * Reads the headers (lower-case names) of one response. A malformed, negative or missing value
 * affects only its own field. No duration is longer than a day. Points in time are interpreted
 * relative to the response's own Date header, so that a wrong local clock has no effect; without a
 * Date, they are relative to `nowMs` (epoch).
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
    resetInMs: timeUntil(headers['x-ratelimit-reset'], answeredMs),
    dateMs,
    retryAfterMs: asks ? timeUntil(headers['retry-after'], answeredMs) : undefined,
  };
}

/** Parses an HTTP date as epoch milliseconds. Returns undefined for any other text. */
export function httpDate(text: string | undefined): number | undefined {
  // Date.parse alone accepts nearly everything, including '-5'.
  if (text === undefined || !/^[A-Z][a-z]{2,8},? .* GMT$/.test(text.trim())) return undefined;
  const time = Date.parse(text);
  return Number.isNaN(time) ? undefined : time;
}

/** Returns the milliseconds until a time: seconds left, an epoch time, or an HTTP date. */
function timeUntil(text: string | undefined, answeredMs: number): number | undefined {
  const number = seconds(text);
  if (number !== undefined && number < EPOCH_SINCE_S) return clamp(number * 1000);
  const epochMs = number !== undefined && number < EPOCH_SINCE_MS ? number * 1000 : number;
  const until = epochMs ?? httpDate(text);
  return until === undefined ? undefined : clamp(until - answeredMs);
}

const clamp = (ms: number): number => Math.min(Math.max(ms, 0), DAY_MS);

function whole(text: string | undefined): number | undefined {
  if (text === undefined || !/^\d{1,15}$/.test(text.trim())) return undefined;
  return Number(text);
}

function seconds(text: string | undefined): number | undefined {
  if (text === undefined || !/^\d{1,15}(\.\d+)?$/.test(text.trim())) return undefined;
  return Number(text);
}

const positive = (value: number | undefined): number | undefined =>
  value === 0 ? undefined : value;
