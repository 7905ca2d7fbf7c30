/**
 * Where requests wait for their route's budget. One queue per route: routes never hold each other
 * up. A 429 is waited out here and the request sent again, ahead of those of its priority; to the
 * caller it is not an attempt.
 *
 * p-limit gives the places, as many as the budget allows; what waits lies in lanes, most urgent
 * first. A free place is a turn: it takes the first request of the most urgent lane that has one.
 * So there are always at least as many turns as requests waiting, and a turn without one is over.
 */
import pLimit, { type LimitFunction } from 'p-limit';
import type { Clock, Random } from '../model/clock.ts';
import { RateLimited, Unavailable } from '../model/errors.ts';
import type { Answer } from '../model/exchange.ts';
import { createBudget, type Budget } from './budget.ts';
import { observe, type Observation } from './observation.ts';

/** 429s that are waited out for one request. */
const MOST_REFUSALS = 20;

const URGENCY = ['event', 'opt_out', 'other'] as const;
export type Priority = (typeof URGENCY)[number];

interface Passage {
  priority?: Priority | undefined;
  signal?: AbortSignal | undefined;
}

/** Requests that left: 429s, and those whose answer never came, included. */
export interface Counts {
  total: number;
  byRoute: Record<string, number>;
  /** 429s among them. */
  rateLimited: number;
}

export interface Gate {
  /**
   * Sends when the route's budget allows it and gives the answer, whatever its status but 429.
   * Throws what `send` throws; the signal's reason when aborted while waiting; RateLimited when one
   * request was refused 20 times. `send` gets the signal that stands for the gate's and the
   * passage's own.
   */
  through(
    route: string,
    send: (signal: AbortSignal | undefined) => Promise<Answer>,
    passage?: Passage,
  ): Promise<Answer>;
  counts(): Counts;
  /** Stops everything that waits here. */
  readonly signal: AbortSignal | undefined;
}

interface GateOptions {
  clock: Clock;
  random: Random;
  signal?: AbortSignal | undefined;
  /** Share of every route's budget left to other programs, 0 to 1. */
  reserve?: number;
}

/** Limits 4. */
export function createGate(options: GateOptions): Gate {
  const routes = new Map<string, Route>();

  const through: Gate['through'] = async (name, send, passage = {}) => {
    const signal = anySignal(options.signal, passage.signal);
    signal?.throwIfAborted();
    const route = routes.get(name) ?? createRoute(name, options);
    routes.set(name, route);
    return enter(route, send, { signal, priority: passage.priority ?? 'other' });
  };
  const counts = (): Counts => {
    const all = [...routes.values()];
    return {
      total: all.reduce((sum, { sent }) => sum + sent, 0),
      byRoute: Object.fromEntries(all.map(({ name, sent }) => [name, sent])),
      rateLimited: all.reduce((sum, { refused }) => sum + refused, 0),
    };
  };
  return { through, counts, signal: options.signal };
}

/** One signal for several, of which any may be missing. */
export function anySignal(...signals: (AbortSignal | undefined)[]): AbortSignal | undefined {
  const given = signals.filter((signal) => signal !== undefined);
  return given.length > 1 ? AbortSignal.any(given) : given[0];
}

interface Route {
  name: string;
  clock: Clock;
  budget: Budget;
  limit: LimitFunction;
  lanes: Lanes;
  came: number;
  /** In flight. */
  flying: number;
  sent: number;
  refused: number;
}

/** One request of a caller, wherever it stands. */
interface Entry {
  send(signal: AbortSignal | undefined): Promise<Answer>;
  signal: AbortSignal | undefined;
  priority: Priority;
  /** When it came, among those of its route. */
  order: number;
  refusals: number;
  resolve(answer: Answer): void;
  reject(reason: unknown): void;
}

function createRoute(name: string, { clock, random, reserve = 0 }: GateOptions): Route {
  const budget = createBudget({ random, reserve });
  const limit = pLimit(budget.decide(clock.monotonic()).inFlight);
  return {
    name,
    clock,
    budget,
    limit,
    lanes: createLanes(),
    came: 0,
    flying: 0,
    sent: 0,
    refused: 0,
  };
}

function enter(
  route: Route,
  send: Entry['send'],
  passage: Pick<Entry, 'signal' | 'priority'>,
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const { signal } = passage;
  const entry: Entry = { ...passage, send, order: (route.came += 1), refusals: 0, resolve, reject };
  const leave = () => {
    if (route.lanes.remove(entry)) reject(signal?.reason);
  };
  signal?.addEventListener('abort', leave, { once: true });
  queue(route, entry, 'back');
  return promise.finally(() => signal?.removeEventListener('abort', leave));
}

function queue(route: Route, entry: Entry, place: Place): void {
  if (entry.signal?.aborted) return entry.reject(entry.signal.reason);
  route.lanes.put(entry, place);
  void route.limit(() => turn(route));
}

async function turn(route: Route): Promise<void> {
  const entry = route.lanes.take();
  if (!entry) return;
  const { inFlight, waitMs } = route.budget.decide(route.clock.monotonic());
  if (waitMs > 0) return rest(route, entry, waitMs);
  // A place given before the budget shrank: back to the queue until an answer comes.
  if (route.flying >= inFlight) return queue(route, entry, 'front');
  return dispatch(route, entry);
}

async function rest(route: Route, entry: Entry, waitMs: number): Promise<void> {
  try {
    await route.clock.sleep(waitMs, entry.signal);
  } catch (reason) {
    return entry.reject(reason);
  }
  // Not sent from here: meanwhile something more urgent may have come.
  queue(route, entry, 'front');
}

async function dispatch(route: Route, entry: Entry): Promise<void> {
  const ticket = route.budget.ticket();
  route.flying += 1;
  let answer: Answer;
  try {
    answer = await entry.send(entry.signal);
  } catch (error) {
    const left = error instanceof Unavailable && error.acted === 'maybe';
    land(route, left, () => left && route.budget.lose(route.clock.monotonic()));
    return entry.reject(error);
  }
  const seen = observe(answer.status, answer.headers, route.clock.now());
  land(route, true, () => route.budget.answer(ticket, seen, route.clock.monotonic()));
  if (seen.refused) refuse(route, entry, seen);
  else entry.resolve(answer);
}

function land(route: Route, left: boolean, learn: () => void): void {
  route.flying -= 1;
  if (left) route.sent += 1;
  learn();
  route.limit.concurrency = route.budget.decide(route.clock.monotonic()).inFlight;
}

function refuse(route: Route, entry: Entry, seen: Observation): void {
  route.refused += 1;
  entry.refusals += 1;
  if (entry.refusals < MOST_REFUSALS) return queue(route, entry, 'front');
  const said = `${route.name}: one request was refused ${MOST_REFUSALS} times in a row (429)`;
  const detail = { retryAfterMs: seen.retryAfterMs ?? 0, route: route.name };
  entry.reject(new RateLimited(`${said}, the waits asked for kept`, detail));
}

type Place = 'front' | 'back';

interface Lanes {
  put(entry: Entry, place: Place): void;
  take(): Entry | undefined;
  /** False when it stood in no lane. */
  remove(entry: Entry): boolean;
}

/** Two lanes per priority: what was here before and came back goes ahead of what is new. */
function createLanes(): Lanes {
  const lanes = URGENCY.map((priority) => ({
    priority,
    front: new Set<Entry>(),
    back: new Set<Entry>(),
  }));
  return {
    put(entry: Entry, place: Place): void {
      for (const lane of lanes) if (lane.priority === entry.priority) lane[place].add(entry);
    },
    take(): Entry | undefined {
      for (const { front, back } of lanes) {
        const entry = earliest(front) ?? back.values().next().value;
        if (entry && (front.delete(entry) || back.delete(entry))) return entry;
      }
      return undefined;
    },
    remove(entry: Entry): boolean {
      return lanes.some(({ front, back }) => front.delete(entry) || back.delete(entry));
    },
  };
}

/** No more stand in front than were in flight at the same time. */
function earliest(front: ReadonlySet<Entry>): Entry | undefined {
  let first: Entry | undefined;
  for (const entry of front) if (!first || entry.order < first.order) first = entry;
  return first;
}
