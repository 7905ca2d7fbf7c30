/**
 * What is known of one route: limit-learning.ts changes it, permit-decision.ts decides by it. It
 * is plain data, because processes that share a limit keep it in Redis (shared/fleet-budget.ts).
 */
import { z } from 'zod';

/** Our own requests to one route that may still count. Times are monotonic milliseconds. */
const usage = z.object({
  windowMs: z.number().optional(),
  /** The shortest round trip. */
  tripMs: z.number().optional(),
  /** The number of requests in `grains`. */
  sum: z.number(),
  /**
   * `n` requests answered until `untilMs` and sent no earlier than `sentMs`, if that is known;
   * oldest first.
   */
  grains: z.array(
    z.object({
      sentMs: z.number().optional(),
      untilMs: z.number(),
      n: z.number(),
    }),
  ),
});
export type Usage = z.infer<typeof usage>;

/** Permits for requests that leave together; of one process, one request in flight. */
const lease = z.object({
  id: z.string(),
  /** How many of them are still in flight. */
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
  /** Whether headers stated the limit; otherwise it is a guess. */
  isTold: z.boolean(),
  /** The share of each window left to other programs, from 0 to 1. */
  reserve: z.number(),
  usage,
  /** The requests in flight, in the order in which they left. */
  leases: z.array(lease),
  /** The number of requests that have left so far. */
  sent: z.number(),
  /** The number of responses that have arrived so far. */
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
  /** The number of consecutive refusals. */
  refusals: z.number(),
  /** The id of the single request in flight that probes whether capacity is back. */
  probe: z.string().optional(),
});
export type LearnedLimits = z.infer<typeof learnedLimits>;

export const SLOW_START = 2;

/** Returns the knowledge of a budget that knows nothing. */
export function nothingLearned({
  ceiling,
  reserve,
}: Record<'ceiling' | 'reserve', number>): LearnedLimits {
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
