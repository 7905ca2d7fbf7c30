/**
 * Decides how many requests of one route may leave, based on its responses alone.
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
 *     no other clients       → a window after our own oldest requests (downTo in learned-limits.ts)
 *     other clients          → a window after the first response of this one, then one request. A
 *                              window that opened with less than half gives back no whole window;
 *                              while anything is left of it, the time is when a few of our own
 *                              requests no longer count; where nothing came back bit by bit, it is
 *                              when one of them and what others use leave room
 *     sliding refill         → as long as the missing units take to come back, then one request
 *
 * BLOCKED  nothing leaves before the demanded wait is over, whose end never moves to an earlier
 *          time, or before two stated windows or an hour are; then one probe.
 *     clean response to it   → OPEN, slowly
 *     429 to it              → BLOCKED again, twice as long each time, at most
 *                              max(Retry-After, window), and an hour
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
import { isAlone, inFlight, units, unused, type LearnedLimits } from './learned-limits.ts';
import { backMs, downTo, MARGIN_MS } from './request-usage.ts';
import { LEAST_WAIT_MS, SHORT_MS } from './limit-learning.ts';

/** Below this limit, no units are held back. */
const LEAST_FOR_SENSORS = 8;
const NEVER = Number.POSITIVE_INFINITY;

/** How many may leave now; if none may, ask again at the next response or after `waitMs`. */
export interface Allowance {
  leave: number;
  waitMs: number;
}

interface Question {
  nowMs: number;
  waiting: number;
  /** The number of processes that share the limit unseen. */
  sharers: number;
}

/** Decides how many may leave, of any number that wait. */
export function decide(memory: LearnedLimits, question: Question): Allowance {
  const { blocked, mark, limit, usage, pace } = memory;
  const { nowMs } = question;
  if (blocked && blocked.untilMs > nowMs) return rest(blocked.untilMs - nowMs);
  if (blocked || memory.unknown !== undefined) return memory.probe ? rest() : upTo(1);
  const flying = inFlight(memory);
  const isBlind = !mark && (limit === undefined || usage.windowMs === undefined);
  if (isBlind) return upTo(pace.inFlight - flying);
  const all = left(memory, nowMs);
  const spare = all - heldBack(memory, nowMs, question.waiting, all);
  // How many requests a server may still count, and when the first of them will be too old to
  // count. A request that left more than a window and a round trip ago no longer counts, whatever
  // happened to it. Otherwise a request that hangs would block its route until it is abandoned.
  // Permits of a process may be used until they count as spent.
  const { windowMs = NEVER, tripMs = 0 } = usage;
  let [n, overMs] = [0, NEVER];
  for (const lease of memory.leases) {
    const ms = lease.untilMs ?? lease.sentMs + windowMs + tripMs;
    if (ms <= nowMs) continue;
    n += lease.n;
    overMs = Math.min(overMs, ms);
  }
  const free = pace.ceiling - flying;
  const more = upTo(Math.min(free, mostInFlight(memory, spare, question) - n));
  if (more.leave > 0 || free <= 0) return more;
  if (n > 0) return rest(overMs - nowMs);
  const atMs = backAt(memory, nowMs, all, 0);
  return atMs > nowMs ? rest(atMs - nowMs) : upTo(1);
}

/** Returns when enough is back for a request after `ahead` others, if they wait for capacity. */
export function returnsAt(memory: LearnedLimits, nowMs: number, ahead: number): number | undefined {
  if (!memory.mark || memory.blocked || memory.unknown !== undefined) return undefined;
  const all = left(memory, nowMs);
  const free = all - inFlight(memory);
  if (free > heldBack(memory, nowMs, NEVER, all)) return undefined;
  return backAt(memory, nowMs, free, ahead);
}

/** Returns how many requests may be in flight at once, at least one. */
export function mostAtOnce(memory: LearnedLimits, nowMs: number): number {
  if (!memory.mark) return memory.pace.inFlight;
  const all = left(memory, nowMs);
  const spare = all - heldBack(memory, nowMs, NEVER, all);
  return Math.max(1, mostInFlight(memory, spare, { nowMs, waiting: NEVER, sharers: 1 }));
}

function upTo(leave: number): Allowance {
  return leave > 0 ? { leave, waitMs: 0 } : rest();
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

/** Returns how many may be in flight; with others, half of our share, so late responses fit. */
function mostInFlight(memory: LearnedLimits, spare: number, { nowMs, sharers }: Question): number {
  if (spare <= 0) return 0;
  const { pace, trickle } = memory;
  const { own } = memory.window;
  const used = Math.max(own, units(memory) - (memory.mark?.left ?? 0));
  // The share of other clients in the amount used in this window.
  const others = 1 - own / Math.max(1, used);
  const part = Math.min(trickle ? 1 : 1 - others, 1 / sharers) / 2;
  const most = isAlone(memory, nowMs) ? spare : Math.floor(spare * part);
  return Math.min(pace.inFlight, Math.max(1, most));
}

/** Returns the units held back: the sensors, or with others the last unit, which two might take. */
function heldBack(memory: LearnedLimits, nowMs: number, waiting: number, all: number): number {
  const { limit = 0, trickle, mark } = memory;
  if (!mark || limit < LEAST_FOR_SENSORS) return 0;
  const sensors = sensorsOf(limit);
  if (!isAlone(memory, nowMs)) return trickle ? sensors + 1 : 1;
  return waiting + inFlight(memory) <= all ? 0 : sensors;
}

/** Returns when to send the next request if none is in flight and all that is left is held back. */
function backAt(memory: LearnedLimits, nowMs: number, all: number, ahead: number): number {
  const { mark, usage, window, limit = 1, trickle } = memory;
  const { windowMs } = usage;
  const markMs = mark?.ms ?? nowMs;
  const alone = isAlone(memory, nowMs);
  if (mark?.resetAtMs !== undefined) return mark.resetAtMs + SHORT_MS;
  if (windowMs === undefined) return markMs + LEAST_WAIT_MS;
  if (trickle) {
    const held = Math.max(1, heldBack(memory, nowMs, NEVER, all));
    const missing = held + 1 + ahead - Math.max(0, all);
    const unitMs = markMs + Math.min(windowMs, (missing * windowMs) / limit) + MARGIN_MS;
    const isSpent = ours(memory, nowMs) <= held;
    const atMs = isSpent
      ? Math.max(unitMs, downTo(usage, Math.max(0, units(memory) - held - 1 - ahead)))
      : unitMs;
    return alone ? atMs : Math.min(atMs, ownBackAt(memory, nowMs));
  }
  if (!alone) {
    const turnMs = backMs(usage, window.openedMs);
    return Math.min(turnMs, someBackAt(memory), ownBackAt(memory, nowMs));
  }
  const openMs = downTo(usage, Math.max(0, units(memory) - 1 - all - ahead));
  if (all <= 0 || ahead > 0) return openMs;
  const spacedMs = markMs + (openMs - markMs) / (all + 1);
  const beatMs = mark?.beatMs ?? NEVER;
  // The last sensor waits for the single moment at which the server's clock may begin a window.
  return Math.min(openMs, all === 1 && beatMs < openMs ? beatMs : Math.min(spacedMs, beatMs));
}

/** The share of others above which they may be clients like this one, which send in bursts. */
const MOST_FOREIGN = 0.34;
/** Requests that others may send beyond what they did. */
const SPARE = 2;

/** Returns how many units are held back to notice early that capacity is back. */
function sensorsOf(limit: number): number {
  return Math.min(4, Math.max(1, Math.round(limit * 0.02)));
}

/** Returns when some of our own no longer count, with others and a window that opened short. */
function someBackAt({ window, usage, mark, limit = 1 }: LearnedLimits): number {
  if (!window.short || !mark || mark.left === 0) return NEVER;
  return downTo(usage, Math.max(0, mark.counted - Math.max(2, sensorsOf(limit))));
}

/**
 * Returns when a unit is free again because our own requests no longer count, if others go on as
 * they did. It is taken only where capacity was seen not to come back bit by bit, and others use a
 * small part: whatever the server counts, it then counts no more than that.
 */
function ownBackAt(memory: LearnedLimits, nowMs: number): number {
  const { usage, foreign, window, rigidUntilMs, limit = 1 } = memory;
  const share = Math.max(foreign.now, foreign.before);
  if (!window.short || share > MOST_FOREIGN || nowMs >= rigidUntilMs) return NEVER;
  const others = Math.ceil(share * limit) + SPARE;
  return downTo(usage, Math.max(0, units(memory) - others - 1));
}
