/**
 * Decides how many requests of one route may leave, based on its responses alone. The budget has no
 * clock, timer or queue: the caller passes in monotonic milliseconds and the number of waiting
 * requests, and the gate does the waiting.
 *
 * UNKNOWN  no response has arrived yet, and at most one request is in flight.
 *     first response         → OPEN, or BLIND if it states no limit
 *
 * OPEN     requests flow. The mark is the last trusted response; it states what is left.
 *     response               → the new mark, if its request left after the mark had arrived. If its
 *                              request left before, it may only lower the mark.
 *     response lost          → the request may have counted, so one less is left.
 *     nothing left           → IDLE
 *     429                    → BLOCKED
 *
 * IDLE     (OPEN, and nothing may leave) until the time at which capacity must be back.
 *     no other clients       → a window after our own oldest requests (request-usage.ts)
 *     other clients          → a window after the first response of this one, then one request. A
 *                              window that opened with less than half gives back no whole window;
 *                              while anything is left of it, the time is when a few of our own
 *                              requests no longer count; where nothing came back bit by bit, it is
 *                              when one of them and what others use leave room
 *     sliding refill         → as long as the missing units take to come back, then one request
 *
 * BLOCKED  nothing leaves before the demanded wait is over, whose end never moves to an earlier
 *          time; then one probe.
 *     clean response to it   → OPEN, slowly
 *     429 to it              → BLOCKED again, twice as long each time, at most
 *                              max(Retry-After, window)
 *     older response         → a 429 may prolong the wait; anything else describes the time before
 *     probe lost             → the next probe may leave
 *
 * BLIND    no headers: as many at once as succeeded, one more with each round of clean responses;
 *          the number that succeeded between two refusals is then taken as the limit.
 *
 * Further conclusions, each drawn from one comparison:
 *
 *   company  (other clients) less is left than our own requests explain, so other programs are
 *            assumed to send too, for at least ten windows; only for one window if the first
 *            response shows it, because the requests may have been our own earlier ones. Then half
 *            of our share of what is left may be in flight, and the last unit is not used; without
 *            other clients, all of it may be in flight.
 *   trickle  (sliding refill) more came back than our own requests explain, and less than a whole
 *            window: capacity comes back continuously. Then what is left is kept just above zero.
 *   sensors  without other clients, and with more waiting than is left, about 2 % are held back
 *            and sent at intervals over the idle time: real requests that detect early that
 *            capacity is back.
 */
import type { Random } from '../domain/clock.ts';
import type { RouteLimit } from '../domain/route-limit.ts';
import { learn, LEAST_WAIT_MS, miss, SHORT_MS } from './limit-learning.ts';
import { isAlone, type LearnedLimits, type Ticket, units } from './learned-limits.ts';
import type { Observation } from '../http/rate-limit-headers.ts';
import { ownBackAt, sensorsOf, someBackAt } from './return-times.ts';
import { createUsage, MARGIN_MS } from './request-usage.ts';

/** The maximum number of requests in flight on one route. */
export const CEILING = 32;
const SLOW_START = 2;
/** Below this limit, no units are held back. */
const LEAST_FOR_SENSORS = 8;
const NEVER = Number.POSITIVE_INFINITY;

/** How many may leave now; if none may, ask again at the next response or after `waitMs`. */
export interface Allowance {
  leave: number;
  waitMs: number;
}

/** Manages the budget of one route. Times are monotonic milliseconds. */
export interface Budget {
  /** Decides how many may leave; `waiting` is the number of waiting requests. */
  decide(nowMs: number, waiting: number): Allowance;
  ticket(nowMs: number): Ticket;
  /** Learns from the response to a request. */
  answer(ticket: Ticket, seen: Observation, nowMs: number): void;
  /** Records that a request left and no response arrived. */
  lose(ticket: Ticket, nowMs: number): void;
  /** Records that a request did not leave after all. */
  withdraw(ticket: Ticket): void;
  /** Returns what is known about the limit. */
  limit(): RouteLimit;
}

/** The settings of a budget. */
export interface BudgetOptions {
  random: Random;
  /** The share of the limit left to other programs, from 0 to 1. */
  reserve?: number;
  /** The maximum number of requests in flight. */
  ceiling?: number;
  /** Returns how many processes share the limit unseen; if set, others are always assumed. */
  sharers?: () => number;
}

/** Creates a budget without any knowledge. */
export function createBudget(options: BudgetOptions): Budget {
  const { random, reserve = 0, ceiling = CEILING, sharers } = options;
  const memory: LearnedLimits = {
    limit: undefined,
    isTold: false,
    reserve,
    usage: createUsage(),
    flights: new Set(),
    sent: 0,
    answers: 0,
    pace: { inFlight: SLOW_START, slow: SLOW_START, ceiling, round: 0 },
    mark: undefined,
    recent: [],
    window: { openedMs: 0, own: 0, short: false, before: 0 },
    foreign: { now: 0, before: 0 },
    companyUntilMs: sharers ? NEVER : 0,
    rigidUntilMs: 0,
    sharers,
    trickle: false,
    blocked: undefined,
    refusals: 0,
    probe: undefined,
  };
  return {
    decide: (nowMs, waiting) => (waiting > 0 ? decide(memory, { nowMs, waiting }) : rest()),
    ticket: (nowMs) => depart(memory, nowMs),
    answer(ticket, seen, nowMs) {
      land(memory, ticket);
      learn(memory, { ticket, seen, nowMs, random });
    },
    lose(ticket, nowMs) {
      land(memory, ticket);
      miss(memory, ticket, nowMs);
    },
    withdraw: (ticket) => land(memory, ticket),
    limit: () => known(memory),
  };
}

function depart(memory: LearnedLimits, nowMs: number): Ticket {
  memory.sent += 1;
  const { answers, sent, flights } = memory;
  const least = unused(memory, nowMs) - flights.size - 1;
  /** Records that a request leaves. */
  const ticket = { sentMs: nowMs, answers, sent, least };
  flights.add(ticket);
  if (memory.blocked || isUnknown(memory)) memory.probe = ticket;
  return ticket;
}

/** Returns whether no response has arrived yet; lost responses provide no information. */
function isUnknown({ usage }: LearnedLimits): boolean {
  return usage.pace.tripMs === Number.POSITIVE_INFINITY;
}

function land(memory: LearnedLimits, ticket: Ticket): void {
  memory.flights.delete(ticket);
  if (memory.probe === ticket) memory.probe = undefined;
}

interface Question {
  nowMs: number;
  waiting: number;
}

function decide(memory: LearnedLimits, { nowMs, waiting }: Question): Allowance {
  const { blocked, mark, flights, limit, usage, pace } = memory;
  if (blocked && blocked.untilMs > nowMs) return rest(blocked.untilMs - nowMs);
  if (blocked || isUnknown(memory)) return memory.probe ? rest() : { leave: 1, waitMs: 0 };
  const isBlind = !mark && (limit === undefined || usage.pace.windowMs === undefined);
  if (isBlind) return upTo(pace.inFlight - flights.size, waiting);
  const all = left(memory, nowMs);
  const spare = all - heldBack(memory, { nowMs, waiting, all });
  const { n, overMs } = underWay(memory, nowMs);
  const free = pace.ceiling - flights.size;
  const more = upTo(Math.min(free, inFlight(memory, spare, nowMs) - n), waiting);
  if (more.leave > 0 || free <= 0) return more;
  if (n > 0) return rest(overMs - nowMs);
  const atMs = backAt(memory, nowMs, all);
  return atMs > nowMs ? rest(atMs - nowMs) : { leave: 1, waitMs: 0 };
}

/**
 * Returns how many requests a server may still count, and when the first of them will be too old to
 * count. A request that left more than a window and a round trip ago no longer counts, whatever
 * happened to it. Otherwise a request that hangs would block its route until it is abandoned.
 */
function underWay({ flights, usage }: LearnedLimits, nowMs: number): { n: number; overMs: number } {
  const { windowMs = NEVER, tripMs } = usage.pace;
  let over = 0;
  for (const { sentMs } of flights) {
    const overMs = sentMs + windowMs + tripMs;
    if (overMs > nowMs) return { n: flights.size - over, overMs };
    over += 1;
  }
  return { n: 0, overMs: NEVER };
}

function upTo(leave: number, waiting: number): Allowance {
  return leave > 0 ? { leave: Math.min(leave, waiting), waitMs: 0 } : rest();
}

/** Returns the decision that nothing leaves for `waitMs`, or until a response arrives. */
export function rest(waitMs = NEVER): Allowance {
  return { leave: 0, waitMs };
}

/** Returns what is left, including requests in flight, as the mark or our own requests show. */
function left(memory: LearnedLimits, nowMs: number): number {
  const shown = memory.mark?.left ?? 0;
  if (memory.trickle) return Math.min(shown, ours(memory, nowMs));
  return isAlone(memory, nowMs) ? Math.max(shown, unused(memory, nowMs)) : shown;
}

/** Returns what we may use of a sliding refill: in any window, at most the unreserved share. */
function ours(memory: LearnedLimits, nowMs: number): number {
  return memory.reserve > 0 ? unused(memory, nowMs) : NEVER;
}

/** Returns the limit minus our own requests that still count. */
function unused(memory: LearnedLimits, nowMs: number): number {
  const { limit, usage } = memory;
  if (limit === undefined || usage.pace.windowMs === undefined) return 0;
  return units(memory) - usage.counted(nowMs);
}

/** Returns how many may be in flight; with others, half of our share, so late responses fit. */
function inFlight(memory: LearnedLimits, spare: number, nowMs: number): number {
  if (spare <= 0) return 0;
  const { pace, trickle } = memory;
  const part = trickle ? 0.5 : Math.min(1 - others(memory), 1 / (memory.sharers?.() ?? 1)) / 2;
  const most = isAlone(memory, nowMs) ? spare : Math.floor(spare * part);
  return Math.min(pace.ceiling, pace.inFlight, Math.max(1, most));
}

/** Returns the share of other clients in the amount used in this window. */
function others(memory: LearnedLimits): number {
  const { mark, window } = memory;
  const used = Math.max(window.own, units(memory) - (mark?.left ?? 0));
  return 1 - window.own / Math.max(1, used);
}

/** Returns the units held back: the sensors, or with others the last unit, which two might take. */
function heldBack(
  memory: LearnedLimits,
  { nowMs, waiting, all }: Question & { all: number },
): number {
  const { limit = 0, trickle, flights, mark } = memory;
  if (!mark || limit < LEAST_FOR_SENSORS) return 0;
  const sensors = sensorsOf(limit);
  if (!isAlone(memory, nowMs)) return trickle ? sensors + 1 : 1;
  return waiting + flights.size <= all ? 0 : sensors;
}

/** Returns when to send the next request if none is in flight and all that is left is held back. */
function backAt(memory: LearnedLimits, nowMs: number, all: number): number {
  const { mark, usage, window, limit = 1, trickle } = memory;
  const { windowMs } = usage.pace;
  const markMs = mark?.ms ?? nowMs;
  const alone = isAlone(memory, nowMs);
  if (mark?.resetAtMs !== undefined) return mark.resetAtMs + SHORT_MS;
  if (windowMs === undefined) return markMs + LEAST_WAIT_MS;
  if (trickle) {
    const held = Math.max(1, heldBack(memory, { nowMs, waiting: NEVER, all }));
    const missing = held + 1 - Math.max(0, all);
    const unitMs = markMs + Math.min(windowMs, (missing * windowMs) / limit) + MARGIN_MS;
    const isSpent = ours(memory, nowMs) <= held;
    const atMs = isSpent ? Math.max(unitMs, usage.downTo(units(memory) - held - 1)) : unitMs;
    return alone ? atMs : Math.min(atMs, ownBackAt(memory, nowMs));
  }
  if (!alone) {
    const turnMs = usage.backMs(window.openedMs);
    return Math.min(turnMs, someBackAt(memory), ownBackAt(memory, nowMs));
  }
  const openMs = usage.downTo(units(memory) - 1 - all);
  if (all <= 0) return openMs;
  const spacedMs = markMs + (openMs - markMs) / (all + 1);
  const beatMs = mark?.beatMs ?? NEVER;
  // The last sensor waits for the single moment at which the server's clock may begin a window.
  return Math.min(openMs, all === 1 && beatMs < openMs ? beatMs : Math.min(spacedMs, beatMs));
}

function known(memory: LearnedLimits): RouteLimit {
  const { limit, usage, mark, foreign } = memory;
  const { windowMs } = usage.pace;
  return { limit, windowMs, left: mark?.left, others: Math.max(foreign.now, foreign.before) };
}
