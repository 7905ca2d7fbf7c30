/** What is known of one route: limit-learning.ts changes it, and route-budget.ts decides by it. */
import type { Usage } from './request-usage.ts';

/** Everything that a budget knows. Times are monotonic milliseconds. */
export interface LearnedLimits {
  limit: number | undefined;
  /** Whether headers stated the limit; otherwise it is a guess. */
  isTold: boolean;
  /** The share of each window left to other programs, from 0 to 1. */
  readonly reserve: number;
  readonly usage: Usage;
  /** The requests in flight, in the order in which they left. */
  flights: Set<Ticket>;
  /** The number of requests that have left so far. */
  sent: number;
  /** The number of responses that have arrived so far. */
  answers: number;
  /** The slow start: at most `inFlight`; `round` counts the clean responses since that grew. */
  pace: { inFlight: number; round: number; readonly slow: number; readonly ceiling: number };
  mark: Mark | undefined;
  /** The remaining numbers stated by the latest responses. */
  recent: { at: number; shown: number }[];
  /** `short`: it opened with less than half of the limit; `before`: used when first observed. */
  window: { openedMs: number; own: number; short: boolean; before: number };
  /** The share of the limit used by others, in this window and the previous one, from 0 to 1. */
  foreign: { now: number; before: number };
  companyUntilMs: number;
  /** Until then, capacity does not come back bit by bit: it was waited for in vain. */
  rigidUntilMs: number;
  readonly sharers: (() => number) | undefined;
  trickle: boolean;
  blocked: { sinceMs: number; untilMs: number; at: number } | undefined;
  /** The number of consecutive refusals. */
  refusals: number;
  /** The single request in flight that probes whether capacity is back. */
  probe: Ticket | undefined;
}

/** The remaining number stated by response number `at`. */
interface Mark {
  left: number;
  /** How many have been subtracted from `left` since then, for responses that never arrived. */
  lost: number;
  at: number;
  ms: number;
  /** The number of our own requests that counted at that time. */
  counted: number;
  resetAtMs: number | undefined;
  /** When the next whole window of the server's clock begins, at most one second late. */
  beatMs: number | undefined;
}

/** Taken when a request leaves, returned with its response. */
export interface Ticket {
  readonly sentMs: number;
  /** The responses that had arrived by then, and the requests that had left, including this one. */
  readonly answers: number;
  readonly sent: number;
  /** The minimum that is left when the request arrives, if no other client sends. */
  readonly least: number;
}

/** Returns the units of the limit that this process may use. */
export function units({ limit = 1, reserve }: LearnedLimits): number {
  return Math.max(1, limit - Math.floor(limit * reserve));
}

/** Returns whether no other client was detected for ten windows; without headers, none ever is. */
export function isAlone({ companyUntilMs, mark }: LearnedLimits, nowMs: number): boolean {
  return !mark || nowMs >= companyUntilMs;
}
