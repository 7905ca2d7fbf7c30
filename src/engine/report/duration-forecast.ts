/** How many requests a plan takes, and how long the platform's limits make that; pure. */
import type { RouteLimit } from '../../domain/route-limit.ts';

/** Routes of the platform, and the requests to each. */
export type Needs = Record<string, number>;

export interface Forecast {
  /** How long reading both sides took before the plan was known, milliseconds. */
  readMs: number;
  routes: RouteForecast[];
  /** Of what takes longest (see leastMs). Null: the limit of a route is not known yet. */
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

/** A limit that nobody has shown yet says nothing of the time; the slowest route first. */
export function forecast(needs: Needs, seen: Limits & { readMs: number }): Forecast {
  const { limits, reserve, readMs } = seen;
  const routes = Object.entries(needs)
    .filter(([, requests]) => requests > 0)
    .map(([route, requests]) => routeForecast({ route, requests, reserve }, limits[route]));
  routes.sort((a, b) => (b.ms ?? 0) - (a.ms ?? 0));
  const isKnown = routes.every(({ ms }) => ms !== null);
  return { readMs, routes, ms: isKnown ? leastMs({ routes }) : null };
}

/** How long it takes at least, by the limits that are known. */
export function leastMs({ routes }: Pick<Forecast, 'routes'>): number {
  return longest(routes, ({ ms, windowMs }) => ({ ms: ms ?? 0, windowMs: windowMs ?? 0 })).ms;
}

export interface Rest {
  ms: number;
  /** The longest window of that. */
  windowMs: number;
}

export const noTime: Rest = { ms: 0, windowMs: 0 };

/** Deletes of contacts are a phase after their enrolments; all else goes on side by side. */
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

/** contact, of contacts.enrol. */
function kindOf(route: string): string {
  return route.slice(0, route.indexOf('.') - 1);
}

function isLook(route: string): boolean {
  return route.endsWith('.list') || route.endsWith('.retrieve');
}

/** How many changes there are of each kind. */
export function changesOf({ routes }: Pick<Forecast, 'routes'>): Map<string, number> {
  const changes = new Map<string, number>();
  for (const { route, requests } of routes) {
    const kind = kindOf(route);
    if (!isLook(route)) changes.set(kind, (changes.get(kind) ?? 0) + requests);
  }
  return changes;
}

/** The same by what is known of the limits now. */
export function forecastAgain({ routes, readMs }: Forecast, seen: Limits): Forecast {
  const needs = Object.fromEntries(routes.map(({ route, requests }) => [route, requests]));
  const limits = Object.fromEntries(routes.map((one) => [one.route, newest(one, seen)]));
  return forecast(needs, { ...seen, limits, readMs });
}

/**
 * How long the rest of one kind's changes takes when so many are done, by the limits that are
 * known, in whole windows. Enrolments are done before deletes; of all else as large a part.
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
    // Of a route that was begun what is left of this window counts.
    const left = over > 0 ? seen.left : undefined;
    const ms = waitMs(one.requests - over, { ...seen, left }, reserve);
    return ms === null ? noTime : { ms, windowMs: seen.windowMs ?? 0 };
  });
}

/** As it is seen now, else as it was. */
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
 * What fits into this window takes no time of its own; each that is begun after it, its length.
 * Null: not known.
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
