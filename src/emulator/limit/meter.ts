/** `requests` in every window of `windowSeconds` (a fraction is fine). */
export interface Limit {
  requests: number;
  windowSeconds: number;
}

/** What a meter says to one request. */
export interface Reading {
  allowed: boolean;
  /** How many more would be allowed right now. */
  remaining: number;
  /** How long until capacity returns. */
  resetMs: number;
}

/** Counts the requests of one route; asked once per request, with monotonic milliseconds. */
export type Meter = (nowMs: number) => Reading;

/** How a server counts; each organization has one meter per route. */
export type Algorithm = (limit: Limit) => Meter;

/**
 * A window begins with the first request after the last one ended. A refused request is not
 * counted, and does not make the window longer.
 */
export const fixedWindow: Algorithm = ({ requests, windowSeconds }) => {
  let end = Number.NEGATIVE_INFINITY;
  let used = 0;
  return (nowMs) => {
    if (nowMs >= end) {
      end = nowMs + windowSeconds * 1000;
      used = 0;
    }
    const allowed = used < requests;
    if (allowed) used += 1;
    return { allowed, remaining: requests - used, resetMs: end - nowMs };
  };
};
