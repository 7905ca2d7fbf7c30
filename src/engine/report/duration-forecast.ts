/** Forecasts how long a plan takes, by its requests and the platform's limits; pure. */
import type { RouteLimit } from '../../domain/route-limit.ts';

/** Routes of the platform, and the requests to each. */
export type Needs = Record<string, number>;

export interface Forecast {
  /** How long reading both sides took before the plan was known, milliseconds. */
  readMs: number;
  routes: RouteForecast[];
  /** The time of what takes longest (see leastMs); null: a route's limit is not known yet. */
  ms: number | null;
}

interface RouteForecast {
  route: string;
  requests: number;
  limit: number | null;
  windowMs: number | null;
  /** Share of the limit that other programs used when it was last seen, 0 to 1. */
  others: number;
  ms: number | null;
}

interface Limits {
  limits: Record<string, RouteLimit>;
  reserve: number;
}

/** Forecasts each route, the slowest first; null: the time of a route without a known limit. */
export function forecast(needs: Needs, seen: Limits & { readMs: number }): Forecast {
  const { limits, reserve, readMs } = seen;
  const routes = Object.entries(needs)
    .filter(([, requests]) => requests > 0)
    .map(([route, requests]) => routeForecast({ route, requests, reserve }, limits[route]));
  routes.sort((a, b) => (b.ms ?? 0) - (a.ms ?? 0));
  const isKnown = routes.every(({ ms }) => ms !== null);
  return { readMs, routes, ms: isKnown ? leastMs({ routes }) : null };
}

/** Returns how long it takes at least, by the limits that are known. */
export function leastMs({ routes }: Pick<Forecast, 'routes'>): number {
  return longest(routes, ({ ms, windowMs }) => ({ ms: ms ?? 0, windowMs: windowMs ?? 0 })).ms;
}

/** How long the rest of some requests takes. */
export interface Rest {
  ms: number;
  /** The longest window of its routes. */
  windowMs: number;
}

export const noTime: Rest = { ms: 0, windowMs: 0 };

/**
 * Returns what takes longest. Contacts are deleted after they are enrolled; all other routes go on
 * side by side.
 */
function longest(
  routes: readonly RouteForecast[],
  restOfRoute: (one: RouteForecast) => Rest,
): Rest {
  const lanes = new Map<string, Rest>();
  for (const one of routes) {
    const { route } = one;
    const lane = kindOf(route) === 'contact' && !isLook(route) ? 'contact' : route;
    const before = lanes.get(lane) ?? noTime;
    const { ms, windowMs } = restOfRoute(one);
    lanes.set(lane, { ms: before.ms + ms, windowMs: Math.max(before.windowMs, windowMs) });
  }
  return [...lanes.values()].reduce((a, b) => (b.ms > a.ms ? b : a), noTime);
}

/** Returns "contact" of contacts.enrol. */
function kindOf(route: string): string {
  return route.slice(0, route.indexOf('.') - 1);
}

function isLook(route: string): boolean {
  return route.endsWith('.list') || route.endsWith('.retrieve');
}

/** Counts the changes of each record type. */
export function changesOf({ routes }: Pick<Forecast, 'routes'>): Map<string, number> {
  const changes = new Map<string, number>();
  for (const { route, requests } of routes) {
    const kind = kindOf(route);
    if (!isLook(route)) changes.set(kind, (changes.get(kind) ?? 0) + requests);
  }
  return changes;
}

/** Forecasts the same requests by the limits that are known now. */
export function forecastAgain({ routes, readMs }: Forecast, seen: Limits): Forecast {
  const needs = Object.fromEntries(routes.map(({ route, requests }) => [route, requests]));
  const limits = Object.fromEntries(routes.map((one) => [one.route, newest(one, seen)]));
  return forecast(needs, { ...seen, limits, readMs });
}

/**
 * Returns how long the rest of one record type's changes takes when `done` of them are done, by the
 * limits that are known, in whole windows. Enrolments count as done before deletes; of each other
 * route the same share is done.
 */
export function restOf(
  { routes }: Forecast,
  { kind, done }: { kind: string; done: number },
  { limits, reserve }: Limits,
): Rest {
  const ours = routes.filter(({ route }) => kindOf(route) === kind);
  const all = changesOf({ routes: ours }).get(kind) ?? 1;
  const enrolments = ours.find(({ route }) => route === 'contacts.enrol')?.requests ?? 0;
  const doneOf = ({ route, requests }: RouteForecast): number => {
    if (route === 'contacts.enrol') return Math.min(done, requests);
    if (route === 'contacts.delete') return Math.max(0, done - enrolments);
    return Math.floor((requests * done) / all);
  };
  return longest(ours, (one) => {
    const over = doneOf(one);
    const seen = newest(one, { limits });
    // A route that was begun has only what is left of this window.
    const left = over > 0 ? seen.left : undefined;
    const ms = waitMs(one.requests - over, { ...seen, left }, reserve);
    return ms === null ? noTime : { ms, windowMs: seen.windowMs ?? 0 };
  });
}

/** Returns the limit of a route as it is seen now, else as it was. */
function newest(
  { route, limit, windowMs, others }: RouteForecast,
  { limits }: Pick<Limits, 'limits'>,
): RouteLimit {
  const seen = limits[route];
  if (seen?.limit !== undefined && seen.windowMs !== undefined) return seen;
  return { limit: limit ?? undefined, windowMs: windowMs ?? undefined, others, left: undefined };
}

function routeForecast(
  { route, requests, reserve }: { route: string; requests: number; reserve: number },
  seen: RouteLimit | undefined,
): RouteForecast {
  const { limit, windowMs, others = 0 } = seen ?? {};
  const ms = waitMs(requests, { limit, windowMs, others, left: undefined }, reserve);
  return { route, requests, limit: limit ?? null, windowMs: windowMs ?? null, others, ms };
}

/**
 * Returns how long the requests wait: those that fit into this window do not, and each window begun
 * after it adds its length. Null: the limit is not known.
 */
function waitMs(
  requests: number,
  { limit, windowMs, others, left }: RouteLimit,
  reserve: number,
): number | null {
  if (limit === undefined || windowMs === undefined) return null;
  const each = Math.max(1, limit - Math.floor(limit * reserve) - limit * others);
  return Math.ceil(Math.max(0, requests - (left ?? each)) / each) * windowMs;
}
