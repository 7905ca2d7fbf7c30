/**
 * Requests wait here for their route's budget. Each route has its own queue, so routes never hold
 * each other up. A 429 is waited out here and the request sent again, ahead of those of its
 * priority; to the caller this is not a new attempt.
 *
 * Whenever something changes (a request comes, an answer comes, a wait is over), the budget is
 * asked how many may leave. So while something waits, either something is in flight, or a timer
 * runs, or the budget has promised to call.
 */
import pLimit, { type LimitFunction } from 'p-limit';
import type { Clock, Random } from '../domain/clock.ts';
import { RateLimited, Unavailable } from '../domain/errors.ts';
import type { Answer } from '../domain/exchange.ts';
import type { RouteLimit } from '../domain/route-limit.ts';
import { type Budget, CEILING, createBudget } from './route-budget.ts';
import {
  createLanes,
  type Lanes,
  type Priority,
  type Stuck,
  type StuckWatch,
  watchStuck,
} from './route-queue.ts';
import type { Ticket } from './limit-learning.ts';
import { type Observation, observe } from '../http/rate-limit-headers.ts';
import { anySignal } from '../http/retry.ts';

/** The number of 429s that are waited out for one request. */
const MOST_REFUSALS = 20;
/** The most requests in flight on one route, whatever its budget says; no budget says more. */
const MOST_IN_FLIGHT = CEILING;

interface Passage {
  priority?: Priority | undefined;
  signal?: AbortSignal | undefined;
}

/** Requests that left, including 429s and those whose answer never came. */
export interface Counts {
  total: number;
  /** The same for each route. */
  byRoute: Record<string, number>;
  /** The 429s among them. */
  rateLimited: number;
}

/** Creates the budget of a route. The budget calls `changed` when it has to be asked again. */
export type BudgetOf = (route: string, changed: () => void) => Budget;

/** The gate in front of all routes of one platform. */
export interface Gate {
  /**
   * Sends when the route's budget allows it, and returns the answer, whatever its status but 429.
   * `send` gets one signal for the gate's and the request's own.
   *
   * Throws what `send` throws; the signal's reason when it is aborted while waiting; RateLimited
   * when one request was refused 20 times.
   */
  through(
    route: string,
    send: (signal: AbortSignal | undefined) => Promise<Answer>,
    sendContext?: Passage,
  ): Promise<Answer>;
  counts(): Counts;
  /** Returns the limit of each route, as its answers show it. */
  limits(): Record<string, RouteLimit>;
  /**
   * Returns the platform's time of day in epoch milliseconds, from the Date of the newest answer
   * and the time since; undefined: no answer had a Date.
   */
  platformNow(): number | undefined;
  /** Ends everything that waits here. */
  readonly signal: AbortSignal | undefined;
}

interface GateOptions {
  clock: Clock;
  random: Random;
  signal?: AbortSignal | undefined;
  /** The share of every route's budget left to other programs, 0 to 1. */
  reserve?: number;
  /** Default: each route has a budget of this process alone. */
  budgetOf?: BudgetOf | undefined;
  /** Called once when a route is stuck, and once when it no longer is. */
  stuck?: ((told: Stuck) => void) | undefined;
}

/** Creates a gate (specification, "Limits" 4). */
export function createGate(options: GateOptions): Gate {
  const { clock, random, reserve = 0, signal } = options;
  const { budgetOf = () => createBudget({ random, reserve }), stuck: tell = () => undefined } =
    options;
  const routes = new Map<string, Route>();
  const said: Said = { epochMs: undefined };
  const routeOf = (name: string): Route => {
    const known = routes.get(name);
    if (known) return known;
    const budget = budgetOf(name, () => ask(route));
    const limit = pLimit(MOST_IN_FLIGHT);
    const parts = { lanes: createLanes<Entry>(), stuck: watchStuck(name, clock, tell) };
    const route: Route = { ...newRoute, ...parts, name, clock, limit, budget, said };
    routes.set(name, route);
    return route;
  };
  const each = <T>(one: (route: Route) => T): Record<string, T> =>
    Object.fromEntries([...routes.values()].map((route) => [route.name, one(route)]));
  const sum = (one: (route: Route) => number): number =>
    [...routes.values()].reduce((total, route) => total + one(route), 0);

  return {
    async through(name, send, sendContext = {}) {
      const stop = anySignal(signal, sendContext.signal);
      stop?.throwIfAborted();
      return enter(routeOf(name), send, {
        signal: stop,
        priority: sendContext.priority ?? 'other',
      });
    },
    counts: () => ({
      total: sum(({ sent }) => sent),
      byRoute: each(({ sent }) => sent),
      rateLimited: sum(({ refused }) => refused),
    }),
    limits: () => each(({ budget }) => budget.limit()),
    platformNow: () =>
      said.epochMs === undefined ? undefined : Math.floor(said.epochMs + clock.monotonic()),
    signal,
  };
}

/**
 * Returns the same gate for requests that go ahead of all others. Its counts are those requests
 * only.
 */
export function urgently(gate: Gate): Gate {
  /** Returns how many requests left so far. */
  const counts: Counts = { total: 0, byRoute: {}, rateLimited: 0 };
  const count = (route: string): void => {
    counts.total += 1;
    counts.byRoute[route] = (counts.byRoute[route] ?? 0) + 1;
  };
  return {
    ...gate,
    through(name, send, sendContext) {
      const counting: typeof send = async (signal) => {
        try {
          const answer = await send(signal);
          count(name);
          if (answer.status === 429) counts.rateLimited += 1;
          return answer;
        } catch (error) {
          if (error instanceof Unavailable && error.acted === 'maybe') count(name);
          throw error;
        }
      };
      return gate.through(name, counting, { ...sendContext, priority: 'event' });
    },
    counts: () => structuredClone(counts),
  };
}

/** The platform's time of day when our monotonic clock showed 0. */
interface Said {
  epochMs: number | undefined;
}

interface Route {
  name: string;
  said: Said;
  clock: Clock;
  budget: Budget;
  limit: LimitFunction;
  lanes: Lanes<Entry>;
  came: number;
  sent: number;
  refused: number;
  stuck: StuckWatch;
  /** Whether the budget is about to be asked. */
  asking: boolean;
  /** Runs while something waits and nothing may leave. */
  timer: AbortController | undefined;
}

const newRoute = { came: 0, sent: 0, refused: 0, asking: false, timer: undefined };

/** One request of a caller, waiting or in flight. */
interface Entry {
  send(signal: AbortSignal | undefined): Promise<Answer>;
  signal: AbortSignal | undefined;
  priority: Priority;
  order: number;
  refusals: number;
  /** The monotonic time of its first refusal. */
  refusedMs: number | undefined;
  resolve(answer: Answer): void;
  reject(reason: unknown): void;
}

const newEntry = { refusals: 0, refusedMs: undefined };

function enter(
  route: Route,
  send: Entry['send'],
  sendContext: Pick<Entry, 'signal' | 'priority'>,
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const { signal } = sendContext;
  route.came += 1;
  const entry: Entry = { ...sendContext, ...newEntry, send, order: route.came, resolve, reject };
  const leave = () => {
    if (!route.lanes.remove(entry)) return;
    reject(signal?.reason);
    ask(route);
  };
  signal?.addEventListener('abort', leave, { once: true });
  route.lanes.put(entry);
  ask(route);
  return promise.finally(() => signal?.removeEventListener('abort', leave));
}

/**
 * Asks the budget in a microtask, so that of all requests that come in one turn the most urgent
 * leaves first.
 */
function ask(route: Route): void {
  if (route.asking) return;
  route.asking = true;
  queueMicrotask(() => {
    route.asking = false;
    pump(route);
  });
}

/** Sends what may leave; else waits for as long as the budget says. */
function pump(route: Route): void {
  const { lanes, budget, clock } = route;
  route.timer?.abort();
  route.timer = undefined;
  for (;;) {
    const nowMs = clock.monotonic();
    const { leave, waitMs } = budget.decide(nowMs, lanes.size());
    if (leave === 0) return wait(route, waitMs);
    for (let count = 0; count < leave; count += 1) {
      const entry = lanes.take();
      if (entry) void depart(route, entry, budget.ticket(nowMs));
    }
  }
}

function wait(route: Route, waitMs: number): void {
  if (waitMs === Number.POSITIVE_INFINITY) return;
  const timer = new AbortController();
  route.timer = timer;
  const wake = () => {
    if (route.timer === timer) ask(route);
  };
  route.clock.sleep(waitMs, timer.signal).then(wake, () => undefined);
}

async function depart(route: Route, entry: Entry, ticket: Ticket): Promise<void> {
  const { budget, clock } = route;
  let answer: Answer;
  try {
    answer = await route.limit(() => entry.send(entry.signal));
  } catch (error) {
    const left = error instanceof Unavailable && error.acted === 'maybe';
    if (left) budget.lose(ticket, clock.monotonic());
    else budget.withdraw(ticket);
    route.sent += left ? 1 : 0;
    entry.reject(error);
    return ask(route);
  }
  const seen = observe(answer.status, answer.headers, clock.now());
  budget.answer(ticket, seen, clock.monotonic());
  if (seen.dateMs !== undefined) route.said.epochMs = seen.dateMs - clock.monotonic();
  route.sent += 1;
  if (seen.refused) refuse(route, entry, seen);
  else {
    route.stuck.through();
    entry.resolve(answer);
  }
  ask(route);
}

function refuse(route: Route, entry: Entry, seen: Observation): void {
  route.refused += 1;
  entry.refusals += 1;
  entry.refusedMs ??= route.clock.monotonic();
  route.stuck.refused(entry.refusals, entry.refusedMs);
  if (entry.signal?.aborted) return entry.reject(entry.signal.reason);
  if (entry.refusals < MOST_REFUSALS) return route.lanes.put(entry, 'again');
  const said = `${route.name}: one request was refused ${MOST_REFUSALS} times in a row (429)`;
  const detail = { retryAfterMs: seen.retryAfterMs ?? 0, route: route.name };
  entry.reject(new RateLimited(`${said}, the waits asked for kept`, detail));
}
