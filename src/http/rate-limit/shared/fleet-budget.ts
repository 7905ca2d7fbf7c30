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
import {
  type Lease,
  nothingLearned,
  inFlight,
  known,
  depart,
  land,
  units,
  learnedLimits,
} from '../learned-limits.ts';
import { learn, meetCompany, miss } from '../limit-learning.ts';
import { decide, mostAtOnce, returnsAt } from '../permit-decision.ts';
import { z } from 'zod';
import type { RouteLimit } from '../../../domain/route-limit.ts';
import { observation } from '../../rate-limit-headers.ts';

/** The maximum number of requests of a fleet in flight on one route. */
const FLEET_CEILING = 128;
/** A process not heard of for this long, and two windows, is gone. */
const AWAY_MS = 30_000;
/** How often processes that are gone are forgotten. */
const FORGET_EACH_MS = 1000;
/** The windows for which others are assumed after a time of which nothing is known. */
const UNKNOWN_WINDOWS = 1.5;
/** After how long permits count as spent: sooner if responses are fast, later if they are slow. */
const LEASE_MS = 5000;
const LEAST_LEASE_MS = 2000;
const DAY_MS = 86_400_000;

/** Creates the budget of a fleet that knows nothing, at this time of the shared clock. */
export function newFleet(bornMs: number): FleetBudget {
  const limits = nothingLearned(FLEET_CEILING, 0);
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
  const beforeMs = fleet.seenMs;
  fleet.seenMs = nowMs;
  limits.reserve = message.reserve;
  const before = fleet.workers[id];
  const waitsSinceMs = want > 0 ? (before?.waitsSinceMs ?? nowMs) : undefined;
  const worker = { seenMs: nowMs, waitsSinceMs, asksAgainMs: nowMs };
  fleet.workers[id] = worker;
  // Once a second, processes that are gone are forgotten.
  if (Math.floor(beforeMs / FORGET_EACH_MS) !== Math.floor(nowMs / FORGET_EACH_MS)) {
    const leastMs = nowMs - (AWAY_MS + 2 * (limits.usage.windowMs ?? 0));
    for (const [other, { seenMs }] of Object.entries(fleet.workers)) {
      if (seenMs < leastMs) Reflect.deleteProperty(fleet.workers, other);
    }
  }
  for (const report of reports) take(fleet, report, message.jitter);
  // Permits count as spent if their time is over, or if their worker may not even know of them.
  const isOver = (lease: Lease): boolean =>
    (lease.untilMs ?? 0) <= nowMs || (away && lease.worker === id);
  for (const lease of limits.leases.filter(isOver)) {
    const { n } = lease;
    land(limits, lease.id, n);
    miss(limits, lease.sentMs, nowMs, n);
  }
  if (away) {
    limits.unknown = limits.answers;
    if (limits.usage.windowMs !== undefined) meetCompany(limits, nowMs, UNKNOWN_WINDOWS);
  }
  const nothing: Grant = { n: 0, lease: undefined, waitMs: 0 };
  const { n, waitMs, lease } = want > 0 ? grant(fleet, message) : nothing;
  if (n > 0) worker.waitsSinceMs = n < want ? nowMs : undefined;
  worker.asksAgainMs = hundredths(nowMs + waitMs);
  if (leaving) Reflect.deleteProperty(fleet.workers, id);
  return { n, waitMs, lease, workers: Object.keys(fleet.workers).length, limit: known(limits) };
}

/** Returns whether the shared clock was set back by more than a second. */
export function isBehind({ bornMs, seenMs }: FleetBudget, sharedMs: number): boolean {
  return sharedMs - bornMs < seenMs - 1000;
}

/** Returns the milliseconds after which a budget can have no effect, whatever comes. */
export function keepMs(fleet: FleetBudget | undefined, { reports }: Message): number {
  const { seenMs = 0, limits } = fleet ?? {};
  const { companyUntilMs = 0, blocked, usage } = limits ?? {};
  const shown = reports.flatMap((report) => (report.is === 'answer' ? [report.seen] : []));
  const windows = [usage?.windowMs, ...shown.map(({ windowMs }) => windowMs)];
  const waits = shown.flatMap(({ retryAfterMs, resetInMs }) => [retryAfterMs, resetInMs]);
  const longestMs = Math.max(0, ...[...windows, ...waits].map((ms) => ms ?? 0));
  const knownMs = Math.max(companyUntilMs, blocked?.untilMs ?? 0) - seenMs;
  return Math.ceil(Math.min(2 * DAY_MS, Math.max(knownMs, 2 * longestMs) + 2 * AWAY_MS));
}

/** Shortens a time, because it is stored often. */
function hundredths(ms: number): number {
  return Math.round(ms * 100) / 100;
}

function take(fleet: FleetBudget, report: Report, jitter: number): void {
  const { limits } = fleet;
  const lease = land(limits, report.lease, report.n);
  if (report.is !== 'answer') {
    if (report.is === 'lost' && lease) miss(limits, lease.sentMs, fleet.seenMs, report.n);
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

/** Grants permits, and returns the time after which to ask for those that are missing. */
function grant(fleet: FleetBudget, message: Message): Grant {
  const { limits, seenMs: nowMs } = fleet;
  const { want, worker } = message;
  const { leave, waitMs } = decide(limits, { nowMs, waiting: want, sharers: 1 });
  const { ahead, waiting, soon } = findPlace(fleet, worker);
  const n = Math.min(want, Math.ceil(leave / (1 + soon)));
  const lease = n > 0 ? lend(fleet, n, worker) : undefined;
  if (n === want) return { n, lease, waitMs: 0 };
  const isBlocked = (limits.blocked?.untilMs ?? 0) > nowMs;
  const isTimed = n === 0 && (isBlocked || (waiting < 2 && inFlight(limits) === 0));
  const turnMs = isTimed ? waitMs + ahead * SPACE_MS : untilTurn(fleet, worker, ahead);
  return { n, lease, waitMs: turnMs };
}

function lend(fleet: FleetBudget, n: number, worker: string): string {
  const { limits, seenMs, usualMs } = fleet;
  const fastMs = Math.min(LEASE_MS, Math.max(LEAST_LEASE_MS, 10 * (usualMs ?? LEASE_MS)));
  // If slow responses found their permits spent, nothing would ever be learned from them.
  const untilMs = hundredths(seenMs + Math.max(fastMs, 3 * (usualMs ?? 0)));
  const id = `${fleet.bornMs}:${limits.sent + n}`;
  return depart(limits, { id, n, sentMs: seenMs, worker, untilMs }).id;
}

/** The longest and the usual time after which to ask again. */
const LONGEST_ROUND_MS = 500;
const UNKNOWN_TRIP_MS = 25;
const LEAST_ROUND_MS = 5;
/** The time between two processes that ask after the same wait. */
const SPACE_MS = 4;
/** A turn is waited for at most about this long, or a window if that is longer: others may end. */
const LONGEST_TURN_MS = 3000;
/** A process that waits and is this late to ask again has ended, or wants nothing any more. */
const LATE_MS = 2000;
/** How soon it is looked whether permits in flight were returned, in round trips. */
const LOOK_ROUNDS = 4;
/** The units that come back between two processes that wait for a sliding refill. */
const TRICKLE_SPACE = 1.5;
/** The units in the time between two processes that look whether a whole window came back. */
const LOOK_SPACE = 4;

/**
 * Returns the place of a process among those that wait for permits, in the order in which they
 * began to, how many wait, and how many others ask within about a round trip. A process that did
 * not ask again in time has ended, or no longer wants any.
 */
function findPlace(fleet: FleetBudget, worker: string) {
  const { workers, seenMs } = fleet;
  const soonMs = seenMs + roundTripMs(fleet);
  const own = workers[worker]?.waitsSinceMs ?? seenMs;
  let [ahead, waiting, soon, isBefore] = [0, 0, 0, true];
  for (const id of Object.keys(workers)) {
    const { waitsSinceMs, asksAgainMs = 0 } = workers[id] ?? {};
    if (id === worker) isBefore = false;
    if (waitsSinceMs === undefined || asksAgainMs < seenMs - LATE_MS) continue;
    waiting += 1;
    if (id === worker) continue;
    if (waitsSinceMs < own || (waitsSinceMs === own && isBefore)) ahead += 1;
    if (asksAgainMs <= soonMs) soon += 1;
  }
  return { ahead, waiting, soon };
}

/**
 * Returns the milliseconds until the turn of a process that waits behind `ahead` others. One with
 * requests in flight reports their responses anyway, and asks again with the report. Each
 * question takes a round trip to Redis, so one that would be in vain is avoided.
 */
function untilTurn(fleet: FleetBudget, worker: string, ahead: number): number {
  const { limits, usualMs = 0 } = fleet;
  const isReporting = limits.leases.some((lease) => lease.worker === worker);
  return Math.max(turnMs(fleet, ahead), isReporting ? usualMs : 0);
}

function turnMs(fleet: FleetBudget, ahead: number): number {
  const { limits, seenMs: nowMs } = fleet;
  const { limit = 1, usage, trickle } = limits;
  const { windowMs = 0 } = usage;
  const unitMs = windowMs / limit;
  const roundMs = roundTripMs(fleet);
  const firstMs = returnsAt(limits, nowMs, 0);
  // With each round trip, twice as many may leave.
  if (firstMs === undefined) return roundMs * Math.log2(2 + ahead / mostAtOnce(limits, nowMs));
  const backMs = firstMs - nowMs;
  // Permits may be returned.
  const least =
    inFlight(limits) > 0 ? Math.max(roundMs, Math.min(backMs, LOOK_ROUNDS * roundMs)) : backMs;
  if (ahead === 0) return least;
  const mostMs = Math.max(windowMs + roundMs, LONGEST_TURN_MS);
  if (trickle) return Math.min(least + TRICKLE_SPACE * ahead * unitMs, mostMs);
  const perWindow = limits.isTold ? units(limits) : Number.POSITIVE_INFINITY;
  const windowsMs = Math.floor(ahead / perWindow) * windowMs;
  const lastMs = returnsAt(limits, nowMs, ahead % perWindow) ?? firstMs;
  const allMs = Math.min(windowsMs + lastMs - nowMs, mostMs);
  // More may come back earlier; the first ones find out.
  const lookMs = least + Math.max(roundMs, LOOK_SPACE * unitMs * ahead);
  return Math.max(least, Math.min(allMs, lookMs)) + ahead * SPACE_MS;
}

/** Returns the time after which a response that is due has arrived, or another one may have. */
function roundTripMs({ limits, seenMs, usualMs = UNKNOWN_TRIP_MS }: FleetBudget): number {
  const ageMs = seenMs - Math.min(seenMs, ...limits.leases.map(({ sentMs }) => sentMs));
  const waitMs = ageMs < usualMs ? Math.max(usualMs - ageMs, usualMs / 2) : ageMs / 2;
  return Math.min(LONGEST_ROUND_MS, Math.max(LEAST_ROUND_MS, waitMs));
}

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

interface Grant {
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
