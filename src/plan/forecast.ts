/** How many requests a plan takes, and how long the platform's limits make that; pure. */
import type { RouteLimit } from '../model/limit.ts';

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
  const lanes = new Map<string, number>();
  for (const { route, ms } of routes) {
    lanes.set(laneOf(route), (lanes.get(laneOf(route)) ?? 0) + (ms ?? 0));
  }
  return Math.max(0, ...lanes.values());
}

/** Deletes of contacts are a phase after their enrolments; all else goes on side by side. */
function laneOf(route: string): string {
  return kindOf(route) === 'contact' && !isLook(route) ? 'contact' : route;
}

/** contact, of contacts.enrol. */
export function kindOf(route: string): string {
  return route.slice(0, route.indexOf('.') - 1);
}

export function isLook(route: string): boolean {
  return route.endsWith('.list') || route.endsWith('.retrieve');
}

/** The same by what is known of the limits now. */
export function forecastAgain({ routes, readMs }: Forecast, seen: Limits): Forecast {
  const needs = Object.fromEntries(routes.map(({ route, requests }) => [route, requests]));
  const limits = Object.fromEntries(routes.map((one) => [one.route, newest(one, seen)]));
  return forecast(needs, { ...seen, limits, readMs });
}

export interface Rest {
  ms: number;
  windowMs: number;
}

/**
 * How long the rest of one kind's changes takes when so many are done, by the limits that are
 * known, in whole windows. Enrolments are done before deletes; of all else as large a part.
 */
export function restOf(
  { routes }: Forecast,
  { kind, done }: { kind: string; done: number },
  seen: Limits,
): Rest {
  const ours = routes.filter(({ route }) => kindOf(route) === kind);
  const acts = ours.filter(({ route }) => !isLook(route));
  const all = acts.reduce((sum, { requests }) => sum + requests, 0);
  const enrolments = acts.find(({ route }) => route === 'contacts.enrol')?.requests ?? 0;
  const lanes = new Map<string, Rest>();
  for (const one of ours) {
    const { route, requests } = one;
    let over = Math.floor((requests * done) / Math.max(1, all));
    if (route === 'contacts.enrol') over = Math.min(done, requests);
    if (route === 'contacts.delete') over = Math.max(0, done - enrolments);
    const lane = lanes.get(laneOf(route)) ?? { ms: 0, windowMs: 0 };
    const rest = restOfRoute(one, over, seen);
    const windowMs = Math.max(lane.windowMs, rest.windowMs);
    lanes.set(laneOf(route), { ms: lane.ms + rest.ms, windowMs });
  }
  return [...lanes.values()].reduce((a, b) => (b.ms > a.ms ? b : a), { ms: 0, windowMs: 0 });
}

/** Of a route that was begun what is left of this window counts. */
function restOfRoute(one: RouteForecast, done: number, seen: Limits): Rest {
  const { limit, windowMs, others, left } = newest(one, seen);
  if (limit === undefined || windowMs === undefined) return { ms: 0, windowMs: 0 };
  const each = unitsOf(limit, { others, reserve: seen.reserve });
  const first = done > 0 ? (left ?? each) : each;
  const windows = Math.ceil(Math.max(0, one.requests - done - first) / each);
  return { ms: windows * windowMs, windowMs };
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

/** What fits into one window takes no time of its own; each that is begun after it, its length. */
function routeForecast(
  { route, requests, reserve }: { route: string; requests: number; reserve: number },
  seen: RouteLimit | undefined,
): RouteForecast {
  const { limit, windowMs, others = 0 } = seen ?? {};
  const shown = { route, requests, limit: limit ?? null, windowMs: windowMs ?? null, others };
  if (limit === undefined || windowMs === undefined) return { ...shown, ms: null };
  const each = unitsOf(limit, { others, reserve });
  return { ...shown, ms: Math.max(0, Math.ceil(requests / each) - 1) * windowMs };
}

/** Of one window, ours to use. */
function unitsOf(limit: number, taken: { reserve: number; others: number }): number {
  return Math.max(1, limit - Math.floor(limit * taken.reserve) - limit * taken.others);
}
