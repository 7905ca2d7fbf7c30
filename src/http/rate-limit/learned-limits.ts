/** What is known of one route, as plain data, because processes that share it keep it in Redis. */
import { z } from 'zod';
import type { RouteLimit } from '../../domain/route-limit.ts';
import { counted, usage } from './request-usage.ts';

/** Permits for requests that leave together; of one process, one request in flight. */
const lease = z.object({
  id: z.string(),
  n: z.number(),
  sentMs: z.number(),
  /** The responses that had arrived by then, and the requests that had left, including these. */
  answers: z.number(),
  sent: z.number(),
  /** The minimum that is left when the requests arrive, if no other client sends. */
  least: z.number(),
  /** The process that has the permits, and when they count as spent; undefined within a process. */
  worker: z.string().optional(),
  untilMs: z.number().optional(),
});
export type Lease = z.infer<typeof lease>;

/** The remaining number stated by response number `at`. */
const mark = z.object({
  left: z.number(),
  /** How many have been subtracted from `left` since then, for responses that never arrived. */
  lost: z.number(),
  at: z.number(),
  ms: z.number(),
  /** The number of our own requests that counted at that time. */
  counted: z.number(),
  resetAtMs: z.number().optional(),
  /** When the next whole window of the server's clock begins, at most one second late. */
  beatMs: z.number().optional(),
});

/** Everything that a budget knows. Times are milliseconds of one clock that never goes back. */
export const learnedLimits = z.object({
  limit: z.number().optional(),
  isTold: z.boolean(),
  /** The share of each window left to other programs, from 0 to 1. */
  reserve: z.number(),
  usage,
  leases: z.array(lease),
  sent: z.number(),
  answers: z.number(),
  /** The number of responses before which nothing is known, until a later request succeeds. */
  unknown: z.number().optional(),
  /** The slow start: at most `inFlight`; `round` counts the clean responses since that grew. */
  pace: z.object({ inFlight: z.number(), round: z.number(), ceiling: z.number() }),
  mark: mark.optional(),
  /** The remaining numbers stated since the oldest request in flight left. */
  recent: z.array(z.object({ at: z.number(), shown: z.number() })),
  /** `short`: it opened with less than half of the limit; `before`: used when first observed. */
  window: z.object({
    openedMs: z.number(),
    own: z.number(),
    short: z.boolean(),
    before: z.number(),
  }),
  /** The share of the limit used by others, in this window and the previous one, from 0 to 1. */
  foreign: z.object({ now: z.number(), before: z.number() }),
  companyUntilMs: z.number(),
  /** Until then, capacity does not come back bit by bit: it was waited for in vain. */
  rigidUntilMs: z.number(),
  trickle: z.boolean(),
  blocked: z.object({ sinceMs: z.number(), untilMs: z.number(), at: z.number() }).optional(),
  refusals: z.number(),
  /** The id of the single request in flight that probes whether capacity is back. */
  probe: z.string().optional(),
});
export type LearnedLimits = z.infer<typeof learnedLimits>;

export const SLOW_START = 2;

/** Returns the knowledge of a budget that knows nothing. */
export function nothingLearned(ceiling: number, reserve: number): LearnedLimits {
  return {
    isTold: false,
    reserve,
    usage: { sum: 0, grains: [] },
    leases: [],
    sent: 0,
    answers: 0,
    unknown: 0,
    pace: { inFlight: SLOW_START, round: 0, ceiling },
    recent: [],
    window: { openedMs: 0, own: 0, short: false, before: 0 },
    foreign: { now: 0, before: 0 },
    companyUntilMs: 0,
    rigidUntilMs: 0,
    trickle: false,
    refusals: 0,
  };
}

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

export function inFlight({ leases }: LearnedLimits): number {
  return leases.reduce((sum, { n }) => sum + n, 0);
}

/** Returns whether no other client was detected for ten windows; without headers, none ever is. */
export function isAlone({ companyUntilMs, mark }: LearnedLimits, nowMs: number): boolean {
  return !mark || nowMs >= companyUntilMs;
}

export function known(memory: LearnedLimits): RouteLimit {
  const { limit, usage, mark, foreign } = memory;
  const { windowMs } = usage;
  return { limit, windowMs, left: mark?.left, others: Math.max(foreign.now, foreign.before) };
}

export function depart(
  memory: LearnedLimits,
  leaving: Pick<Lease, 'id' | 'n' | 'sentMs' | 'worker' | 'untilMs'>,
): Lease {
  const { id, n, sentMs } = leaving;
  const least = unused(memory, sentMs) - inFlight(memory) - n;
  memory.sent += n;
  const lease = { ...leaving, answers: memory.answers, sent: memory.sent, least };
  memory.leases.push(lease);
  if (memory.blocked || memory.unknown !== undefined) memory.probe = id;
  return lease;
}

/** Records that `n` requests of a lease are no longer in flight; returns the lease, if known. */
export function land(memory: LearnedLimits, id: string, n: number): Lease | undefined {
  const at = memory.leases.findIndex((lease) => lease.id === id);
  const lease = memory.leases[at];
  if (!lease) return undefined;
  lease.n -= n;
  if (memory.probe === id) memory.probe = undefined;
  if (lease.n <= 0) memory.leases.splice(at, 1);
  return lease;
}
