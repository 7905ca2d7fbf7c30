/**
 * How many requests of one route may leave, learnt from its answers alone. Knows no clock, no timer
 * and no queue: monotonic milliseconds and the number that waits are passed in; the gate waits.
 *
 * UNKNOWN  nothing was answered yet, and one request is under way at most.
 *     first answer           → OPEN, or, where it says nothing of a limit, BLIND
 *
 * OPEN     requests flow. The mark is the answer last believed, and says what is left.
 *     answer                 → one whose request left after the mark had come is the new mark. One
 *                              whose request left before tells of an earlier time, and may only
 *                              lower it.
 *     answer lost            → it may have counted: one less is left.
 *     nothing left           → IDLE
 *     429                    → BLOCKED
 *
 * IDLE     (OPEN, and nothing may leave) until the time at which something must be back.
 *     alone                  → a window after our own oldest requests (request-usage.ts)
 *     in company             → a window after the first answer of this one, then one request. One
 *                              that opened with less than half gives back no whole window: while
 *                              anything is left, when a few of our own requests count no more
 *     trickle                → as long as the missing units take to come back, then one request
 *
 * BLOCKED  nothing leaves before the wait asked for is over, which never moves to an earlier time;
 *          then one probe.
 *     clean answer to it     → OPEN, slowly
 *     429 to it              → BLOCKED again, twice as long each time, at most
 *                              max(Retry-After, window)
 *     answer to an older one → a 429 may prolong; anything else tells of the time before
 *     probe lost             → the next one may leave
 *
 * BLIND    no headers: as many at once as did well, one more with each round of clean answers; what
 *          went through between two refusals is then taken for the limit.
 *
 * What else it concludes, each from one comparison:
 *
 *   company  less is left than our own requests explain: other programs send too, for ten windows
 *            at least; for one, where that is so at the first answer: it may have been ourselves,
 *            before. Then half of our share of what is left may be in flight, and the last unit is
 *            nobody's; alone, all of it may.
 *   trickle  more came back than our own requests explain, and less than a whole window: capacity
 *            comes back continuously. Then what is left is kept just above nothing.
 *   sensors  alone, with more waiting than is left, about 2 % are held back and sent spaced over
 *            the idle time: real requests that find out early that capacity is back.
 */
import type { Random } from '../domain/clock.ts';
import type { RouteLimit } from '../domain/route-limit.ts';
import {
  isAlone,
  learn,
  LEAST_WAIT_MS,
  type LearnedLimits,
  miss,
  SHORT_MS,
  type Ticket,
  units,
} from './limit-learning.ts';
import type { Observation } from '../http/rate-limit-headers.ts';
import { createUsage, MARGIN_MS } from './request-usage.ts';

/** In flight at most. */
export const CEILING = 32;
const SLOW_START = 2;
/** Below this limit nothing is held back. */
const LEAST_FOR_SENSORS = 8;
const NEVER = Number.POSITIVE_INFINITY;

/** So many may leave now; when none, ask again with the next answer, or after `waitMs`. */
export interface Decision {
  leave: number;
  waitMs: number;
}

export interface Budget {
  /** `waiting`: how many would leave if they might. */
  decide(nowMs: number, waiting: number): Decision;
  ticket(nowMs: number): Ticket;
  answer(ticket: Ticket, seen: Observation, nowMs: number): void;
  /** It left, and no answer came. */
  lose(ticket: Ticket, nowMs: number): void;
  /** It did not leave after all. */
  withdraw(ticket: Ticket): void;
  /** What is known by now. */
  limit(): RouteLimit;
}

export interface BudgetOptions {
  random: Random;
  /** Share of the limit left to other programs, 0 to 1. */
  reserve?: number;
  /** Requests in flight at most. */
  ceiling?: number;
  /** How many processes draw on the limit unseen, this one included: then it is in company. */
  sharers?: () => number;
}

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
  const ticket = { sentMs: nowMs, answers, sent, least };
  flights.add(ticket);
  if (memory.blocked || isUnknown(memory)) memory.probe = ticket;
  return ticket;
}

/** No answer has come yet: those that were lost tell nothing. */
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

function decide(memory: LearnedLimits, { nowMs, waiting }: Question): Decision {
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
 * How many a server may still count, and when the first of them is too old for it: what left a
 * window and a round trip ago counts no more, whatever became of it. One that hangs would stop its
 * route until it is given up.
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

function upTo(leave: number, waiting: number): Decision {
  return leave > 0 ? { leave: Math.min(leave, waiting), waitMs: 0 } : rest();
}

/** Nothing leaves for so long, or until an answer comes. */
export function rest(waitMs = NEVER): Decision {
  return { leave: 0, waitMs };
}

/** What is left, those in flight not taken off: as the mark says, or our own requests explain. */
function left(memory: LearnedLimits, nowMs: number): number {
  const shown = memory.mark?.left ?? 0;
  if (memory.trickle) return Math.min(shown, ours(memory, nowMs));
  return isAlone(memory, nowMs) ? Math.max(shown, unused(memory, nowMs)) : shown;
}

/** Of what trickles back without end, no more in any window than is not reserved. */
function ours(memory: LearnedLimits, nowMs: number): number {
  return memory.reserve > 0 ? unused(memory, nowMs) : NEVER;
}

/** The limit without our own requests that count still. */
function unused(memory: LearnedLimits, nowMs: number): number {
  const { limit, usage } = memory;
  if (limit === undefined || usage.pace.windowMs === undefined) return 0;
  return units(memory) - usage.counted(nowMs);
}

/** Taper: in company half of our share of what is left, so that late answers overdraw nothing. */
function inFlight(memory: LearnedLimits, spare: number, nowMs: number): number {
  if (spare <= 0) return 0;
  const { pace, trickle } = memory;
  const part = trickle ? 0.5 : Math.min(1 - others(memory), 1 / (memory.sharers?.() ?? 1)) / 2;
  const most = isAlone(memory, nowMs) ? spare : Math.floor(spare * part);
  return Math.min(pace.ceiling, pace.inFlight, Math.max(1, most));
}

/** The share of others in what was used of this window. */
function others(memory: LearnedLimits): number {
  const { mark, window } = memory;
  const used = Math.max(window.own, units(memory) - (mark?.left ?? 0));
  return 1 - window.own / Math.max(1, used);
}

/** Sensors; in company the last unit, lest two take it at the same time. */
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

function sensorsOf(limit: number): number {
  return Math.min(4, Math.max(1, Math.round(limit * 0.02)));
}

/** When nothing is in flight, and `all` that is left is held back: when to send the next one. */
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
    return isSpent ? Math.max(unitMs, usage.downTo(units(memory) - held - 1)) : unitMs;
  }
  if (!alone) return Math.min(usage.backMs(window.openedMs), someBackAt(memory));
  const openMs = usage.downTo(units(memory) - 1 - all);
  if (all <= 0) return openMs;
  const spacedMs = markMs + (openMs - markMs) / (all + 1);
  const beatMs = mark?.beatMs ?? NEVER;
  // The last sensor waits for the one moment at which the server's clock may begin a window.
  return Math.min(openMs, all === 1 && beatMs < openMs ? beatMs : Math.min(spacedMs, beatMs));
}

/** In company, of a window that opened short: when a few of our own requests count no more. */
function someBackAt({ window, usage, mark, limit = 1 }: LearnedLimits): number {
  if (!window.short || !mark || mark.left === 0) return NEVER;
  return usage.downTo(Math.max(0, mark.counted - Math.max(2, sensorsOf(limit))));
}

function known(memory: LearnedLimits): RouteLimit {
  const { limit, usage, mark, foreign } = memory;
  const { windowMs } = usage.pace;
  return { limit, windowMs, left: mark?.left, others: Math.max(foreign.now, foreign.before) };
}
