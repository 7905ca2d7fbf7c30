/** What is known of a limit, and how much of it is used. */
import type { RouteLimit } from '../../domain/route-limit.ts';
import type { LearnedLimits } from './learned-limits.ts';
import { counted } from './request-usage.ts';

/** Returns the units of the limit that may be used. */
export function units({ limit = 1, reserve }: LearnedLimits): number {
  return Math.max(1, limit - Math.floor(limit * reserve));
}

/** Returns the limit minus our own requests that still count. */
export function unused(memory: LearnedLimits, nowMs: number): number {
  const { limit, usage } = memory;
  if (limit === undefined || usage.windowMs === undefined) return 0;
  return units(memory) - counted(usage, nowMs);
}

/** Returns the number of requests in flight. */
export function inFlight({ leases }: LearnedLimits): number {
  return leases.reduce((sum, { n }) => sum + n, 0);
}

/** Returns whether no other client was detected for ten windows; without headers, none ever is. */
export function isAlone({ companyUntilMs, mark }: LearnedLimits, nowMs: number): boolean {
  return !mark || nowMs >= companyUntilMs;
}

/** Returns what is known about the limit. */
export function known(memory: LearnedLimits): RouteLimit {
  const { limit, usage, mark, foreign } = memory;
  const { windowMs } = usage;
  return { limit, windowMs, left: mark?.left, others: Math.max(foreign.now, foreign.before) };
}
