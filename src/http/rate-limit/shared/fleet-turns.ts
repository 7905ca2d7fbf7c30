/**
 * When a process that waits for permits is to ask again. Each question takes a round trip to Redis,
 * so one that would be in vain is avoided.
 */
import { inFlight, units } from '../limit-standing.ts';
import { mostAtOnce, returnsAt } from '../permit-decision.ts';
import type { FleetBudget } from './fleet-messages.ts';

/** The longest and the usual time after which to ask again. */
const LONGEST_ROUND_MS = 500;
const UNKNOWN_TRIP_MS = 25;
const LEAST_ROUND_MS = 5;
/** The time between two processes that ask after the same wait. */
export const SPACE_MS = 4;
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

type Place = Record<'ahead' | 'waiting' | 'soon', number>;

/**
 * Returns the place of a process among those that wait for permits, in the order in which they
 * began to, how many wait, and how many others ask within about a round trip. A process that did
 * not ask again in time has ended, or no longer wants any.
 */
export function placeOf(fleet: FleetBudget, worker: string): Place {
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
 * requests in flight reports their responses anyway, and asks again with the report.
 */
export function untilTurn(
  fleet: FleetBudget,
  { worker, ahead }: { worker: string; ahead: number },
): number {
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
  const firstMs = returnsAt(limits, { nowMs, ahead: 0 });
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
  const lastMs = returnsAt(limits, { nowMs, ahead: ahead % perWindow }) ?? firstMs;
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
