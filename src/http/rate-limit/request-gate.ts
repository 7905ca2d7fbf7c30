/**
 * Makes requests wait for their route's budget, in a queue for each route. After a 429, the gate
 * waits and sends the request again, ahead of others with the same priority; for the caller this is
 * not a new attempt. Whenever something changes, it asks the budget how many may leave. So while
 * one waits, either another is in flight, or a timer runs, or the budget has promised to call.
 */
import pLimit, { type LimitFunction } from 'p-limit';
import type { Clock, Random } from '../../domain/clock.ts';
import { RateLimited, Unavailable } from '../../domain/errors.ts';
import type { Answer } from '../../domain/exchange.ts';
import type { RouteLimit } from '../../domain/route-limit.ts';
import { type Budget, CEILING, createBudget, type Ticket } from './route-budget.ts';
import { observe } from '../rate-limit-headers.ts';
import { anySignal } from '../retry.ts';

/** The maximum number of 429s tolerated for one request. */
const MOST_REFUSALS = 20;
/** The maximum number of requests in flight on one route; no budget allows more. */
const MOST_IN_FLIGHT = CEILING;

/** Counts requests that left, including 429s and those without a response. */
export interface Counts {
  total: number;
  byRoute: Record<string, number>;
  rateLimited: number;
}

/** Creates the budget of a route. The budget calls `changed` when the gate has to ask it again. */
export type BudgetOf = (route: string, changed: () => void) => Budget;

export interface Gate {
  /**
   * Sends when the route's budget allows it, and returns the response, which is no 429. Throws the
   * errors of `send`, which gets both signals combined, the signal's reason if it is aborted while
   * waiting, and RateLimited if one request was refused 20 times.
   */
  through(
    route: string,
    send: (signal: AbortSignal | undefined) => Promise<Answer>,
    sendContext?: { priority?: Priority | undefined; signal?: AbortSignal | undefined },
  ): Promise<Answer>;
  counts(): Counts;
  limits(): Record<string, RouteLimit>;
  /** The platform's time in epoch milliseconds, by the newest Date; undefined without any. */
  platformNow(): number | undefined;
  readonly signal: AbortSignal | undefined;
}

interface GateOptions {
  clock: Clock;
  random: Random;
  signal?: AbortSignal | undefined;
  /** The share of every route's budget left to other programs, from 0 to 1. */
  reserve?: number;
  /** Creates each route's budget. By default, each budget is local to this process. */
  budgetOf?: BudgetOf | undefined;
  /** Called once when a route becomes stuck, and once when it no longer is. */
  stuck?: ((told: Stuck) => void) | undefined;
}

export function createGate(options: GateOptions): Gate {
  const { clock, random, reserve = 0, signal } = options;
  const { budgetOf = () => createBudget({ random, reserve }), stuck: tell = () => undefined } =
    options;
  const routes = new Map<string, Route>();
  const platform: PlatformTime = { epochMs: undefined };
  const findRoute = (name: string): Route => {
    const known = routes.get(name);
    if (known) return known;
    const route: Route = {
      name,
      platform,
      clock,
      budget: budgetOf(name, () => ask(route)),
      limit: pLimit(MOST_IN_FLIGHT),
      lanes: createLanes<Entry>(),
      stuck: watchStuck(name, clock, tell),
      came: 0,
      sent: 0,
      refused: 0,
      asking: false,
      timer: undefined,
      wakesMs: 0,
    };
    routes.set(name, route);
    return route;
  };
  const each = <T>(one: (route: Route) => T): Record<string, T> =>
    Object.fromEntries([...routes.values()].map((route) => [route.name, one(route)]));
  const sum = (one: (route: Route) => number): number =>
    [...routes.values()].reduce((total, route) => total + one(route), 0);

  return {
    async through(name, send, { priority = 'other', signal: own } = {}) {
      const stop = anySignal(signal, own);
      stop?.throwIfAborted();
      const route = findRoute(name);
      const { promise, resolve, reject } = Promise.withResolvers<Answer>();
      route.came += 1;
      const arrival = { send, signal: stop, priority, order: route.came, resolve, reject };
      const entry: Entry = { ...arrival, refusals: 0, refusedMs: undefined };
      const leave = () => {
        if (!route.lanes.remove(entry)) return;
        reject(stop?.reason);
        ask(route);
      };
      stop?.addEventListener('abort', leave, { once: true });
      route.lanes.put(entry);
      ask(route);
      return promise.finally(() => stop?.removeEventListener('abort', leave));
    },
    counts: () => ({
      total: sum(({ sent }) => sent),
      byRoute: each(({ sent }) => sent),
      rateLimited: sum(({ refused }) => refused),
    }),
    limits: () =>
      each(({ budget, timer, wakesMs }) => {
        const waitMs = Math.max(0, wakesMs - clock.monotonic());
        return { ...budget.limit(), ...(timer && { waitMs }) };
      }),
    platformNow: () => {
      const { epochMs } = platform;
      return epochMs === undefined ? undefined : Math.floor(epochMs + clock.monotonic());
    },
    signal,
  };
}

/** Returns the same gate for requests with precedence over all others, and counts only those. */
export function urgently(gate: Gate): Gate {
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

/** The platform's wall-clock time at the moment when our monotonic clock showed 0. */
interface PlatformTime {
  epochMs: number | undefined;
}

interface Route {
  name: string;
  platform: PlatformTime;
  clock: Clock;
  budget: Budget;
  limit: LimitFunction;
  lanes: ReturnType<typeof createLanes<Entry>>;
  came: number;
  sent: number;
  refused: number;
  stuck: ReturnType<typeof watchStuck>;
  asking: boolean;
  /** Runs while a request is waiting and none may leave. */
  timer: AbortController | undefined;
  /** When that is, in monotonic milliseconds. */
  wakesMs: number;
}

interface Entry {
  send(signal: AbortSignal | undefined): Promise<Answer>;
  signal: AbortSignal | undefined;
  priority: Priority;
  order: number;
  refusals: number;
  refusedMs: number | undefined;
  resolve(answer: Answer): void;
  reject(reason: unknown): void;
}

/** Asks the budget in a microtask, so that of one turn's requests the most urgent leaves first. */
function ask(route: Route): void {
  if (route.asking) return;
  route.asking = true;
  queueMicrotask(() => {
    route.asking = false;
    pump(route);
  });
}

/** Sends the requests that may leave; otherwise waits for as long as the budget demands. */
function pump(route: Route): void {
  const { lanes, budget, clock } = route;
  route.timer?.abort();
  route.timer = undefined;
  for (;;) {
    const nowMs = clock.monotonic();
    const { leave, waitMs } = budget.decide(nowMs, lanes.size());
    if (leave === 0) {
      if (waitMs === Number.POSITIVE_INFINITY) return;
      const timer = new AbortController();
      route.timer = timer;
      route.wakesMs = nowMs + waitMs;
      const wake = () => {
        if (route.timer === timer) ask(route);
      };
      clock.sleep(waitMs, timer.signal).then(wake, () => undefined);
      return;
    }
    for (let count = 0; count < leave; count += 1) {
      const entry = lanes.take();
      if (entry) void depart(route, entry, budget.ticket(nowMs));
    }
  }
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
  if (seen.dateMs !== undefined) route.platform.epochMs = seen.dateMs - clock.monotonic();
  route.sent += 1;
  if (seen.refused) {
    route.refused += 1;
    entry.refusals += 1;
    entry.refusedMs ??= clock.monotonic();
    route.stuck.refused(entry.refusals, entry.refusedMs);
    if (entry.signal?.aborted) entry.reject(entry.signal.reason);
    else if (entry.refusals < MOST_REFUSALS) route.lanes.put(entry, 'again');
    else {
      const what = `${route.name}: one request was refused ${MOST_REFUSALS} times in a row (429)`;
      const detail = { retryAfterMs: seen.retryAfterMs ?? 0, route: route.name };
      entry.reject(new RateLimited(`${what}, the waits asked for kept`, detail));
    }
  } else {
    route.stuck.through();
    entry.resolve(answer);
  }
  ask(route);
}

// The queue of one route decides whose turn it is, and the watch whether the route is stuck.

const URGENCY = ['event', 'opt_out', 'other'] as const;
/** The urgency of a request; `URGENCY` lists the values, most urgent first. */
export type Priority = (typeof URGENCY)[number];

/** One in this many requests is the one that has waited longest, whatever its priority. */
const FAIR = 8;

interface Waiting {
  priority: Priority;
  /** The arrival number, counted over all priorities. */
  order: number;
}

/** Creates an empty queue of the requests that wait for one route, sorted by priority. */
export function createLanes<Entry extends Waiting>() {
  // Two lanes each, because a request that is sent again takes precedence over new ones.
  const lanes = URGENCY.map((priority) => ({
    priority,
    again: new Set<Entry>(),
    new: new Set<Entry>(),
  }));
  let taken = 0;

  function* firsts(): Generator<Entry> {
    for (const lane of lanes) {
      const first = earliest(lane.again) ?? lane.new.values().next().value;
      if (first) yield first;
    }
  }
  const remove = (entry: Entry): boolean =>
    lanes.some((lane) => lane.again.delete(entry) || lane.new.delete(entry));

  return {
    /** Adds a request behind its equals, or with `again` ahead of all that wait anew. */
    put(entry: Entry, place?: 'again'): void {
      for (const lane of lanes) {
        if (lane.priority === entry.priority) lane[place ?? 'new'].add(entry);
      }
    },
    take(): Entry | undefined {
      taken += 1;
      const waiting = [...firsts()];
      const next = taken % FAIR === 0 ? earliest(waiting) : waiting[0];
      if (next) remove(next);
      return next;
    },
    remove,
    size: () => lanes.reduce((sum, lane) => sum + lane.again.size + lane.new.size, 0),
  };
}

function earliest<Entry extends Waiting>(entries: Iterable<Entry>): Entry | undefined {
  let first: Entry | undefined;
  for (const entry of entries) if (!first || entry.order < first.order) first = entry;
  return first;
}

/** A route is stuck if a request was refused this often and no other got through meanwhile. */
const leastRefusals = 3;

const leastMs = 30_000;

/** A report about a route that has become stuck or no longer is. */
export interface Stuck {
  route: string;
  forMs: number | undefined;
}

/** Creates a watch that calls `tell` once when the route becomes stuck, and once when it is not. */
export function watchStuck(route: string, clock: Clock, tell: (told: Stuck) => void) {
  let throughMs = Number.NEGATIVE_INFINITY;
  let isStuck = false;
  return {
    /** Call this when a request succeeded. */
    through() {
      throughMs = clock.monotonic();
      if (isStuck) tell({ route, forMs: undefined });
      isStuck = false;
    },
    /** Call this after a refusal, with how many there were and the time of the first one. */
    refused(refusals: number, sinceMs: number): void {
      const forMs = clock.monotonic() - Math.max(sinceMs, throughMs);
      if (isStuck || refusals < leastRefusals || forMs < leastMs) return;
      isStuck = true;
      tell({ route, forMs });
    },
  };
}
