/** What a fleet knows of one route, and what its processes say of it and are told. */
import { z } from 'zod';
import type { RouteLimit } from '../../../domain/route-limit.ts';
import { observation } from '../../rate-limit-headers.ts';
import { learnedLimits } from '../learned-limits.ts';

/** What a fleet knows of one route. Times are in milliseconds since `bornMs` of the same clock. */
export const fleetBudget = z.object({
  bornMs: z.number(),
  seenMs: z.number(),
  /** The processes heard of lately. */
  workers: z.record(
    z.string(),
    z.object({
      seenMs: z.number(),
      /** Since when it waits for permits, and when it asks again. */
      waitsSinceMs: z.number().optional(),
      asksAgainMs: z.number(),
    }),
  ),
  /** The usual round trip, if known. */
  usualMs: z.number().optional(),
  limits: learnedLimits,
});
export type FleetBudget = z.infer<typeof fleetBudget>;

/** The outcome of `n` permits. A response arrived `ageMs` ago, after a round trip of `tripMs`. */
const report = z.union([
  z.object({
    is: z.literal('answer'),
    lease: z.string(),
    n: z.literal(1),
    ageMs: z.number(),
    tripMs: z.number(),
    seen: observation,
  }),
  z.object({ is: z.enum(['back', 'lost']), lease: z.string(), n: z.number() }),
]);
export type Report = z.infer<typeof report>;

/** A process's reports and its request for permits. */
export const message = z.object({
  worker: z.string(),
  reports: z.array(report).readonly(),
  /** The number of permits that it would use immediately. */
  want: z.number(),
  /** The share of the limit left to other programs, from 0 to 1. */
  reserve: z.number(),
  /** A random number from 0 to 1, so that not all processes return at the same time. */
  jitter: z.number(),
  /** Whether the process sent requests that are not recorded here. */
  away: z.boolean(),
  /** Whether the process will not call again. */
  leaving: z.boolean(),
});
export type Message = z.infer<typeof message>;

/** Permits, or none. */
export interface Grant {
  n: number;
  /** The time after which to ask again for what is missing. */
  waitMs: number;
  /** The id of the permits; undefined if there are none. */
  lease: string | undefined;
}

/** Permits, or a time after which to ask again. */
export interface Reply extends Grant {
  /** The number of processes that called recently. */
  workers: number;
  limit: RouteLimit;
}
