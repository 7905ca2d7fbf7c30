/** `requests` in every window of `windowSeconds` (a fraction is fine). */
export interface Limit {
  requests: number;
  windowSeconds: number;
}

/** What a meter says to one request. */
export interface Reading {
  allowed: boolean;
  /** How many more would be allowed right now; exact. */
  remaining: number;
  /** How long until more than that are allowed; after a refusal, until one is. */
  resetMs: number;
}

/** When a request comes, in milliseconds: `epoch` may jump, `monotonic` never does. */
export interface Instant {
  epoch: number;
  monotonic: number;
}

/** Counts the requests of one route; asked once per request. A refused one never counts. */
export type Meter = (at: Instant) => Reading;

/** How a server counts; each organization has one meter per route. */
export type Algorithm = (limit: Limit) => Meter;

/** What is less than this is a rounding error: a millionth of a request. */
export const TINY = 1e-6;
