import {
  createBudget,
  type Budget,
  type BudgetOptions,
} from '../../../src/rate-limit/route-budget.ts';
import type { Observation } from '../../../src/http/rate-limit-headers.ts';

export const TRIP_MS = 40;

const nothing: Observation = {
  refused: false,
  limit: undefined,
  remaining: undefined,
  windowMs: undefined,
  resetInMs: undefined,
  dateMs: undefined,
  retryAfterMs: undefined,
};

/** What an answer says: unless told otherwise of 60 per 60 s; `undefined` is not said. */
export function left(remaining?: number, more: Partial<Observation> = {}): Observation {
  return { ...nothing, limit: 60, windowMs: 60_000, remaining, ...more };
}

/** Without jitter. */
export function budget(options: Partial<BudgetOptions> = {}): Budget {
  return createBudget({ random: () => 0, ...options });
}

/** One request on its own, whose answer comes at this time. */
export function lone(made: Budget, seen: Observation, nowMs: number): void {
  made.answer(made.ticket(nowMs - TRIP_MS), seen, nowMs);
}

/** How many of many may leave. */
export function leaves(made: Budget, nowMs: number, waiting = 1000): number {
  return made.decide(nowMs, waiting).leave;
}

/** When none of many may. */
export function waits(made: Budget, nowMs: number, waiting = 1000): number {
  return made.decide(nowMs, waiting).waitMs;
}
