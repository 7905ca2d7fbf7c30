/** `requests` in each window of `windowSeconds`, which may be a fraction. */
export interface Limit {
  requests: number;
  windowSeconds: number;
}

/** What a meter answers to one request. */
export interface Reading {
  allowed: boolean;
  /** How many more requests would be allowed at this moment; exact. */
  remaining: number;
  /** How long until one more than `remaining` is allowed. */
  resetMs: number;
}

/** When a request comes, in milliseconds: `epoch` may jump, `monotonic` never does. */
export interface Instant {
  epoch: number;
  monotonic: number;
}

/** Counts the requests of one route; called once per request. A refused request does not count. */
export type Meter = (at: Instant) => Reading;

/** A way to count; each organization has one meter per route. */
export type Algorithm = (limit: Limit) => Meter;

/** Smaller amounts are rounding errors: a millionth of a request. */
export const TINY = 1e-6;
