/**
 * How many requests one route may have in flight, learnt from its answers alone. Knows no clock,
 * no timer and no queue: `nowMs` is passed in (monotonic), the gate does the waiting.
 *
 * Two states.
 *
 * OPEN: requests flow. At most half of what is left may be in flight, so that answers still under
 *   way cannot turn out to have overdrawn it; never more than a slow start allows (2, one more with
 *   each clean answer), never more than the ceiling, never less than one. Nothing known of what is
 *   left: the slow start alone.
 *     clean answer    → what is left is what it says, if its request was sent after the reference
 *                       (the answer last believed) had come; more than before then means that a new
 *                       window began. An answer to a request sent earlier may only lower it: it
 *                       describes a moment before the reference.
 *     answer lost     → it may have counted: one less is left.
 *     nothing left    → SHUT until the window ends.
 *     429             → SHUT until Retry-After; the slow start is halved.
 *
 * SHUT: nothing leaves before `untilMs`, which never moves to an earlier time; then one probe.
 *     clean answer to the probe   → OPEN, a new window that began with this answer.
 *     429 to the probe            → SHUT again, twice as long with each refusal in a row, but no
 *                                   longer than max(Retry-After, window).
 *     answer to an older request  → a 429 may prolong; anything else tells of the time before.
 *     probe lost                  → stays as it is: the next one may leave.
 *
 * A window ends one window after its first answer *came*: counted from the request, the probe would
 * be early by the time it travelled, and an early probe costs a whole Retry-After. A window that
 * opened with less than half of the limit is refilled bit by bit (or shared with others): then the
 * next probe leaves after the time in which one unit comes back.
 */
import type { Random } from '../model/clock.ts';
import type { Observation } from './observation.ts';

const CEILING = 16;
const SLOW_START = 2;
/** Retry-After comes in whole seconds and can be half a second short; so can a reset time. */
const SHORT_MS = 500;
const JITTER_MS = 50;
const MARGIN_MS = 2;
const LEAST_WAIT_MS = 1000;
const UNKNOWN_WINDOW_MS = 60_000;

/** What may happen now: nothing for `waitMs`, then at most `inFlight` requests at the same time. */
interface Decision {
  inFlight: number;
  waitMs: number;
}

/** Taken when a request leaves, given back with its answer: how many answers had come by then. */
interface Ticket {
  after: number;
}

/** Limits 4. Times are monotonic milliseconds. */
export interface Budget {
  decide(nowMs: number): Decision;
  ticket(): Ticket;
  answer(ticket: Ticket, seen: Observation, nowMs: number): void;
  /** The request left, no answer came. */
  lose(nowMs: number): void;
}

export interface BudgetOptions {
  random: Random;
  /** Share of the limit left to other programs, 0 to 1. */
  reserve?: number;
  /** Requests in flight at most. */
  ceiling?: number;
}

export function createBudget(options: BudgetOptions): Budget {
  const { random, reserve = 0, ceiling = CEILING } = options;
  let memory: Memory = {
    state: { name: 'open', level: undefined },
    answers: 0,
    pace: SLOW_START,
    refusals: 0,
    limit: undefined,
    windowMs: undefined,
    reserve,
    ceiling,
  };
  return {
    decide: (nowMs) => decide(memory, nowMs),
    ticket: () => ({ after: memory.answers }),
    answer(ticket, seen, nowMs) {
      memory = answered(memory, { ticket, seen, nowMs, jitterMs: random() * JITTER_MS });
    },
    lose(nowMs) {
      memory = lost(memory, nowMs);
    },
  };
}

type State = Open | Shut;

interface Open {
  name: 'open';
  level: Level | undefined;
}

/** Answers to requests sent before answer number `at` tell of the time before it shut. */
interface Shut {
  name: 'shut';
  untilMs: number;
  at: number;
}

/** What is left, as answer number `at` had it, and of which window. */
interface Level {
  left: number;
  lost: number;
  at: number;
  startedMs: number;
  resetAtMs: number | undefined;
  /** The window opened with less than half of the limit. */
  short: boolean;
}

interface Memory {
  state: State;
  /** Answers that came so far. */
  answers: number;
  /** The slow start: in flight at most. */
  pace: number;
  /** In a row. */
  refusals: number;
  limit: number | undefined;
  windowMs: number | undefined;
  readonly reserve: number;
  readonly ceiling: number;
}

interface Event {
  ticket: Ticket;
  seen: Observation;
  nowMs: number;
  jitterMs: number;
}

function decide({ state, pace, ceiling }: Memory, nowMs: number): Decision {
  if (state.name === 'shut') return { inFlight: 1, waitMs: Math.max(0, state.untilMs - nowMs) };
  const half = state.level ? Math.floor(spare(state.level) / 2) : ceiling;
  return { inFlight: Math.max(1, Math.min(ceiling, pace, half)), waitMs: 0 };
}

function answered(before: Memory, event: Event): Memory {
  const { seen, ticket } = event;
  const memory: Memory = {
    ...before,
    answers: before.answers + 1,
    limit: seen.limit ?? before.limit,
    windowMs: seen.windowMs ?? before.windowMs,
  };
  if (seen.refused) return refused(memory, event);
  const { state } = memory;
  if (state.name === 'open') return clean(memory, state.level, event);
  return ticket.after < state.at ? memory : reopened(memory, event);
}

/** OPEN: a clean answer. */
function clean(memory: Memory, level: Level | undefined, event: Event): Memory {
  const paced = { ...memory, pace: Math.min(memory.ceiling, memory.pace + 1) };
  const left = usable(memory, event.seen);
  if (left === undefined) return put(paced, level && miss(level), event.nowMs);
  if (!level) return put(paced, begin(memory, left, event), event.nowMs);
  if (event.ticket.after < level.at) {
    const lower = left < level.left ? { ...level, left, at: memory.answers } : level;
    return put(paced, lower, event.nowMs);
  }
  if (left > level.left) return nextWindow(memory, left, event);
  const resetAtMs = resetAt(event) ?? level.resetAtMs;
  const same = { ...level, left, lost: 0, at: memory.answers, resetAtMs };
  return put(paced, same, event.nowMs);
}

/** SHUT: the probe came back clean. */
function reopened(before: Memory, event: Event): Memory {
  const memory = { ...before, refusals: 0 };
  const left = usable(memory, event.seen);
  if (left === undefined) return { ...memory, state: { name: 'open', level: undefined } };
  return nextWindow(memory, left, event);
}

function refused(memory: Memory, { ticket, seen, nowMs, jitterMs }: Event): Memory {
  const shut = memory.state.name === 'shut' ? memory.state : undefined;
  // The rest of a burst that was refused already is the same refusal.
  const same = shut !== undefined && ticket.after < shut.at;
  const refusals = same ? memory.refusals : memory.refusals + 1;
  const pace = same ? memory.pace : Math.max(1, Math.floor(memory.pace / 2));
  const asked = seen.retryAfterMs || LEAST_WAIT_MS;
  const doubled = LEAST_WAIT_MS * 2 ** Math.max(0, refusals - 1);
  const most = Math.max(asked, memory.windowMs ?? UNKNOWN_WINDOW_MS);
  const waitMs = Math.min(Math.max(asked, doubled), most) + SHORT_MS + jitterMs;
  const untilMs = Math.max(nowMs + waitMs, shut?.untilMs ?? 0);
  const at = same ? shut.at : memory.answers;
  return { ...memory, refusals, pace, state: { name: 'shut', untilMs, at } };
}

function lost(memory: Memory, nowMs: number): Memory {
  if (memory.state.name === 'shut' || !memory.state.level) return memory;
  return put(memory, miss(memory.state.level), nowMs);
}

function nextWindow(memory: Memory, left: number, event: Event): Memory {
  const { limit, reserve } = memory;
  const short = limit !== undefined && left + 1 < (limit * (1 - reserve)) / 2;
  const level = { ...begin(memory, left, event), short };
  return put({ ...memory, pace: SLOW_START }, level, event.nowMs);
}

/** The first window seen counts as a whole one: part of it may have passed before we looked. */
function begin(memory: Memory, left: number, event: Event): Level {
  const resetAtMs = resetAt(event);
  return { left, lost: 0, at: memory.answers, startedMs: event.nowMs, resetAtMs, short: false };
}

/** Keeps what is left; SHUT when that is nothing. */
function put(memory: Memory, level: Level | undefined, nowMs: number): Memory {
  if (!level || spare(level) > 0) return { ...memory, state: { name: 'open', level } };
  const untilMs = refillAt(memory, level, nowMs);
  return { ...memory, state: { name: 'shut', untilMs, at: memory.answers } };
}

function refillAt({ limit, windowMs }: Memory, level: Level, nowMs: number): number {
  if (level.resetAtMs !== undefined) return level.resetAtMs + SHORT_MS;
  if (windowMs === undefined) return nowMs + LEAST_WAIT_MS;
  if (level.short && limit !== undefined) return nowMs + windowMs / limit + MARGIN_MS;
  return level.startedMs + windowMs + MARGIN_MS;
}

function usable({ limit, reserve }: Memory, { remaining }: Observation): number | undefined {
  if (remaining === undefined) return undefined;
  return Math.max(0, remaining - Math.floor((limit ?? 0) * reserve));
}

function spare(level: Level): number {
  return level.left - level.lost;
}

function miss(level: Level): Level {
  return { ...level, lost: level.lost + 1 };
}

function resetAt({ seen, nowMs }: Event): number | undefined {
  return seen.resetInMs === undefined ? undefined : nowMs + seen.resetInMs;
}
