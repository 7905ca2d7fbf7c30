/**
 * The budget of one route that several processes share: what permit-decision.ts knows and decides,
 * with the permits of every process instead of the requests in flight of one. A process combines
 * everything that it has to report into one message:
 *
 *   reports  the outcome of permits: responses (what they showed about the limit, and how long ago
 *            they arrived), requests that were lost, permits returned
 *   want     how many permits it wants; it gets some, or a time after which to ask again
 *
 * There are three differences. Processes do not see each other's responses, so one that gets
 * nothing is given a time: when capacity is back for those that have waited longer and for itself,
 * if that is known, else after about one round trip. Permits that are not reported in time count as
 * spent, because their process may have sent the requests before it died. And after a process was
 * away, nothing is known until one probe has measured it.
 */
import { z } from 'zod';
import type { Observation } from '../../http/rate-limit-headers.ts';
import { type Lease, learnedLimits, nothingLearned } from '../learned-limits.ts';
import { learn, meetCompany, miss } from '../limit-learning.ts';
import { inFlight, known } from '../limit-standing.ts';
import { decide, returnsAt } from '../permit-decision.ts';
import { depart, land } from '../request-leases.ts';

/** The maximum number of requests of a fleet in flight on one route. */
const FLEET_CEILING = 128;
/** A process not heard of for this long, and two windows, is gone. */
const AWAY_MS = 30_000;
/** The windows for which others are assumed after a time of which nothing is known. */
const UNKNOWN_WINDOWS = 1.5;
/** How often a process that waits is recorded again. */
const SEEN_AGAIN_MS = 5000;
/** The longest and the usual time after which to ask again. */
const LONGEST_ROUND_MS = 500;
const UNKNOWN_TRIP_MS = 25;
const LEAST_ROUND_MS = 5;
const LEAST_LEASE_MS = 2000;
/** The time between two processes that ask after the same wait. */
const SPACE_MS = 4;
/** How soon the first one that waits looks whether more came back, at the earliest. */
const LEAST_LOOK_MS = 50;
const DAY_MS = 86_400_000;

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
export type Report =
  | { is: 'back' | 'lost'; lease: string; n: number }
  | { is: 'answer'; lease: string; n: 1; ageMs: number; tripMs: number; seen: Observation };

/** A process's reports and its request for permits. */
export interface Message {
  worker: string;
  reports: readonly Report[];
  /** The number of permits that it would use immediately. */
  want: number;
  /**
   * After how many milliseconds permits count as spent: less if responses are fast, down to two
   * seconds, and more if they are slower than a third of it.
   */
  leaseMs: number;
  /** The share of the limit left to other programs, from 0 to 1. */
  reserve: number;
  /** A random number from 0 to 1, so that not all processes return at the same time. */
  jitter: number;
  /** Whether the process sent requests that are not recorded here. */
  away: boolean;
  /** Whether the process will not call again. */
  leaving: boolean;
}

/** Permits, or a time after which to ask again. */
export interface Reply {
  n: number;
  waitMs: number;
  /** The id of the permits; undefined if there are none. */
  lease: string | undefined;
  /** The number of processes that called recently. */
  workers: number;
  limit: ReturnType<typeof known>;
  /** Whether the other processes need to know of the message. */
  changes: boolean;
}

/** Creates the budget of a fleet that knows nothing, at this time of the shared clock. */
export function newFleet(bornMs: number): FleetBudget {
  const limits = nothingLearned({ ceiling: FLEET_CEILING, reserve: 0 });
  return { bornMs, seenMs: 0, workers: {}, limits };
}

/**
 * Changes the budget by a message that arrives at this time of the shared clock, and returns the
 * reply. A budget whose clock was set back has to be replaced by a new one (`isBehind`).
 */
export function serveMessage(fleet: FleetBudget, message: Message, sharedMs: number): Reply {
  const { limits } = fleet;
  const { worker: id, want, reports, away, leaving } = message;
  const nowMs = Math.max(hundredths(sharedMs - fleet.bornMs), fleet.seenMs);
  fleet.seenMs = nowMs;
  limits.reserve = message.reserve;
  const before = fleet.workers[id];
  const waitsSinceMs = want > 0 ? (before?.waitsSinceMs ?? nowMs) : undefined;
  const worker = { seenMs: nowMs, waitsSinceMs, asksAgainMs: nowMs };
  fleet.workers[id] = worker;
  forgetWorkers(fleet);
  for (const report of reports) take(fleet, report, message.jitter);
  expire(fleet, message);
  if (away) {
    limits.unknown = limits.answers;
    if (limits.usage.windowMs !== undefined) meetCompany(limits, nowMs, UNKNOWN_WINDOWS);
  }
  const { n, waitMs } = want > 0 ? grant(fleet, message) : { n: 0, waitMs: 0 };
  const lease = n > 0 ? give(fleet, n, message) : undefined;
  if (n > 0) worker.waitsSinceMs = n < want ? nowMs : undefined;
  worker.asksAgainMs = hundredths(nowMs + waitMs);
  if (leaving) Reflect.deleteProperty(fleet.workers, id);
  const workers = Object.keys(fleet.workers).length;
  const isSame = (before?.waitsSinceMs !== undefined) === want > 0;
  const isKnown = isSame && before !== undefined && before.seenMs > nowMs - SEEN_AGAIN_MS;
  const changes = !isKnown || n > 0 || reports.length > 0 || away || leaving;
  return { n, waitMs, lease, workers, limit: known(limits), changes };
}

/** Returns whether the shared clock was set back by more than a second. */
export function isBehind({ bornMs, seenMs }: FleetBudget, sharedMs: number): boolean {
  return sharedMs - bornMs < seenMs - 1000;
}

/** Returns the milliseconds after which a budget can no longer have any effect. */
export function keepMs({ seenMs, limits }: FleetBudget): number {
  const { companyUntilMs, blocked, usage } = limits;
  const lastMs = Math.max(
    companyUntilMs,
    blocked?.untilMs ?? 0,
    seenMs + 2 * (usage.windowMs ?? 0),
  );
  return Math.ceil(Math.min(2 * DAY_MS, lastMs - seenMs + 2 * AWAY_MS));
}

/** Shortens a time, because it is stored often. */
function hundredths(ms: number): number {
  return Math.round(ms * 100) / 100;
}

/** Returns the time after which a process that is not heard of is gone. */
function goneMs({ limits }: FleetBudget): number {
  return AWAY_MS + 2 * (limits.usage.windowMs ?? 0);
}

function forgetWorkers(fleet: FleetBudget): void {
  const { workers } = fleet;
  const leastMs = fleet.seenMs - goneMs(fleet);
  for (const [id, worker] of Object.entries(workers)) {
    if (worker.seenMs < leastMs) Reflect.deleteProperty(workers, id);
  }
}

/** Counts permits as spent whose time is over, or whose worker may not even know of them. */
function expire({ limits, seenMs }: FleetBudget, { away, worker }: Message): void {
  const isOver = (lease: Lease): boolean =>
    (lease.untilMs ?? 0) <= seenMs || (away && lease.worker === worker);
  for (const lease of limits.leases.filter(isOver)) {
    const { n } = lease;
    land(limits, lease.id, n);
    miss(limits, lease, { nowMs: seenMs, n });
  }
}

function take(fleet: FleetBudget, report: Report, jitter: number): void {
  const { limits } = fleet;
  const lease = land(limits, report.lease, report.n);
  if (report.is !== 'answer') {
    if (report.is === 'lost' && lease) miss(limits, lease, { nowMs: fleet.seenMs, n: report.n });
    return;
  }
  const nowMs = hundredths(fleet.seenMs - report.ageMs);
  const tripMs = hundredths(report.tripMs);
  fleet.usualMs = hundredths(0.8 * (fleet.usualMs ?? tripMs) + 0.2 * tripMs);
  // What the response to an expired lease shows may be older than all that is known.
  learn(limits, {
    lease,
    sentMs: hundredths(nowMs - tripMs),
    seen: report.seen,
    nowMs,
    random: () => jitter,
  });
}

function grant(fleet: FleetBudget, { want, worker }: Message): { n: number; waitMs: number } {
  const { limits, seenMs: nowMs } = fleet;
  const { leave, waitMs } = decide(limits, { nowMs, waiting: want, sharers: 1 });
  const all = waiting(fleet);
  const isAlone = all.length < 2;
  // Something is left for the others, who ask in the next moment.
  if (leave > 0) return { n: Math.min(want, isAlone ? leave : Math.ceil(leave / 2)), waitMs: 0 };
  const ahead = Math.max(0, all.indexOf(worker));
  const isTimed = (limits.blocked?.untilMs ?? 0) > nowMs || (isAlone && inFlight(limits) === 0);
  return { n: 0, waitMs: isTimed ? waitMs + ahead * SPACE_MS : turnMs(fleet, ahead) };
}

/** Returns the time until the turn of a process that waits behind `ahead` others. */
function turnMs(fleet: FleetBudget, ahead: number): number {
  const { limits, seenMs: nowMs } = fleet;
  const { limit = 1, usage, trickle, pace } = limits;
  const { windowMs = 0 } = usage;
  const unitMs = windowMs / limit;
  const roundMs = roundTripMs(fleet);
  if (trickle && ahead > 0) return Math.max(roundMs, Math.min(windowMs, (ahead + 1) * unitMs));
  const backMs = returnsAt(limits, { nowMs, ahead });
  // With each round trip, twice as many may leave.
  if (backMs === undefined) return roundMs * Math.log2(2 + ahead / pace.inFlight);
  const returnMs = Math.max(roundMs, backMs - nowMs) + ahead * SPACE_MS;
  // More may come back earlier; the first ones find out.
  return Math.min(returnMs, Math.max(LEAST_LOOK_MS, 4 * unitMs * (ahead + 1)));
}

/**
 * Returns the processes that wait for permits, in the order in which they began to. One that did
 * not ask again in time has ended, or no longer wants any.
 */
function waiting({ workers, seenMs }: FleetBudget): string[] {
  const all = Object.entries(workers).flatMap(([id, { waitsSinceMs, asksAgainMs }]) =>
    waitsSinceMs === undefined || asksAgainMs < seenMs - 2 * SEEN_AGAIN_MS
      ? []
      : [{ id, waitsSinceMs }],
  );
  return all.toSorted((a, b) => a.waitsSinceMs - b.waitsSinceMs).map(({ id }) => id);
}

/** Returns the time after which a response that is due has arrived, or another one may have. */
function roundTripMs({ limits, seenMs, usualMs = UNKNOWN_TRIP_MS }: FleetBudget): number {
  const ageMs = seenMs - Math.min(seenMs, ...limits.leases.map(({ sentMs }) => sentMs));
  const waitMs = ageMs < usualMs ? Math.max(usualMs - ageMs, usualMs / 2) : ageMs / 2;
  return Math.min(LONGEST_ROUND_MS, Math.max(LEAST_ROUND_MS, waitMs));
}

function give(fleet: FleetBudget, n: number, { worker, leaseMs }: Message): string {
  const { limits, seenMs, usualMs } = fleet;
  const fastMs = Math.min(leaseMs, Math.max(LEAST_LEASE_MS, 10 * (usualMs ?? leaseMs)));
  // If slow responses found their permits spent, nothing would ever be learned from them.
  const untilMs = hundredths(seenMs + Math.max(fastMs, 3 * (usualMs ?? 0)));
  const id = `${fleet.bornMs}:${limits.sent + n}`;
  return depart(limits, { id, n, sentMs: seenMs, worker, untilMs }).id;
}
