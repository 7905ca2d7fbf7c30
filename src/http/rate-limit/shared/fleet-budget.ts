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
import { type Lease, nothingLearned } from '../learned-limits.ts';
import { learn, meetCompany, miss } from '../limit-learning.ts';
import { inFlight, known } from '../limit-standing.ts';
import { decide } from '../permit-decision.ts';
import { depart, land } from '../request-leases.ts';
import type { FleetBudget, Grant, Message, Reply, Report } from './fleet-messages.ts';
import { placeOf, SPACE_MS, untilTurn } from './fleet-turns.ts';

/** The maximum number of requests of a fleet in flight on one route. */
const FLEET_CEILING = 128;
/** A process not heard of for this long, and two windows, is gone. */
const AWAY_MS = 30_000;
/** How often it is looked which processes are gone. */
const FORGET_EACH_MS = 1000;
/** The windows for which others are assumed after a time of which nothing is known. */
const UNKNOWN_WINDOWS = 1.5;
/** After how long permits count as spent: sooner if responses are fast, later if they are slow. */
const LEASE_MS = 5000;
const LEAST_LEASE_MS = 2000;
const DAY_MS = 86_400_000;

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
  const beforeMs = fleet.seenMs;
  fleet.seenMs = nowMs;
  limits.reserve = message.reserve;
  const before = fleet.workers[id];
  const waitsSinceMs = want > 0 ? (before?.waitsSinceMs ?? nowMs) : undefined;
  const worker = { seenMs: nowMs, waitsSinceMs, asksAgainMs: nowMs };
  fleet.workers[id] = worker;
  forgetWorkers(fleet, beforeMs);
  for (const report of reports) take(fleet, report, message.jitter);
  expire(fleet, message);
  if (away) {
    limits.unknown = limits.answers;
    if (limits.usage.windowMs !== undefined) meetCompany(limits, nowMs, UNKNOWN_WINDOWS);
  }
  const { n, waitMs, lease } = want > 0 ? grant(fleet, message) : nothing();
  if (n > 0) worker.waitsSinceMs = n < want ? nowMs : undefined;
  worker.asksAgainMs = hundredths(nowMs + waitMs);
  if (leaving) Reflect.deleteProperty(fleet.workers, id);
  return { n, waitMs, lease, workers: Object.keys(fleet.workers).length, limit: known(limits) };
}

/** Returns whether the shared clock was set back by more than a second. */
export function isBehind({ bornMs, seenMs }: FleetBudget, sharedMs: number): boolean {
  return sharedMs - bornMs < seenMs - 1000;
}

/**
 * Returns the milliseconds after which a budget can no longer have any effect, whatever the message
 * adds to it.
 */
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

/** Returns the time after which a process that is not heard of is gone. */
function goneMs({ limits }: FleetBudget): number {
  return AWAY_MS + 2 * (limits.usage.windowMs ?? 0);
}

/** Forgets processes that are gone, if another second has begun since `beforeMs`. */
function forgetWorkers(fleet: FleetBudget, beforeMs: number): void {
  const { workers, seenMs } = fleet;
  if (Math.floor(beforeMs / FORGET_EACH_MS) === Math.floor(seenMs / FORGET_EACH_MS)) return;
  const leastMs = seenMs - goneMs(fleet);
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

function nothing(): Grant {
  return { n: 0, lease: undefined, waitMs: 0 };
}

/** Grants permits, and returns the time after which to ask for those that are missing. */
function grant(fleet: FleetBudget, message: Message): Grant {
  const { limits, seenMs: nowMs } = fleet;
  const { want, worker } = message;
  const { leave, waitMs } = decide(limits, { nowMs, waiting: want, sharers: 1 });
  const { ahead, waiting, soon } = placeOf(fleet, worker);
  const n = Math.min(want, Math.ceil(leave / (1 + soon)));
  const lease = n > 0 ? give(fleet, n, message) : undefined;
  if (n === want) return { n, lease, waitMs: 0 };
  const isBlocked = (limits.blocked?.untilMs ?? 0) > nowMs;
  const isTimed = n === 0 && (isBlocked || (waiting < 2 && inFlight(limits) === 0));
  const turnMs = isTimed ? waitMs + ahead * SPACE_MS : untilTurn(fleet, { worker, ahead });
  return { n, lease, waitMs: turnMs };
}

function give(fleet: FleetBudget, n: number, { worker }: Message): string {
  const { limits, seenMs, usualMs } = fleet;
  const fastMs = Math.min(LEASE_MS, Math.max(LEAST_LEASE_MS, 10 * (usualMs ?? LEASE_MS)));
  // If slow responses found their permits spent, nothing would ever be learned from them.
  const untilMs = hundredths(seenMs + Math.max(fastMs, 3 * (usualMs ?? 0)));
  const id = `${fleet.bornMs}:${limits.sent + n}`;
  return depart(limits, { id, n, sentMs: seenMs, worker, untilMs }).id;
}
