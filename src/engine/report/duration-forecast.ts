/** Forecasts the duration of a plan from its requests and the platform's limits, and renders it. */
import type { RouteLimit } from '../../domain/route-limit.ts';
import { withCommas } from '../../domain/values/counted.ts';

export type Needs = Record<string, number>;

export interface Forecast {
  /** How long reading both sides took before the plan was known, in milliseconds. */
  readMs: number;
  routes: RouteForecast[];
  /** The duration of the slowest work (see leastMs); null if a route's limit is not known yet. */
  ms: number | null;
  /** The duration under three assumed limits, for routes without a known one; else empty. */
  assumed: AssumedDuration[];
}

interface AssumedDuration {
  limit: number;
  windowMs: number;
  ms: number;
}

interface RouteForecast {
  route: string;
  requests: number;
  limit: number | null;
  windowMs: number | null;
  /** The share of the limit that other programs used when it was last observed, from 0 to 1. */
  others: number;
  ms: number | null;
}

interface Limits {
  limits: Record<string, RouteLimit>;
  reserve: number;
}

/** The limits to assume for a route that has not stated its own, the most generous first. */
const assumedLimits = [
  { limit: 10, windowMs: 1000 },
  { limit: 100, windowMs: 60_000 },
  { limit: 30, windowMs: 60_000 },
];

/** Forecasts each route, the slowest first. Without a known limit, its duration is null. */
export function forecast(needs: Needs, seen: Limits & { readMs: number }): Forecast {
  const { limits, reserve, readMs } = seen;
  const routes = Object.entries(needs)
    .filter(([, requests]) => requests > 0)
    .map(([route, requests]) => routeForecast({ route, requests, reserve }, limits[route]));
  routes.sort((a, b) => (b.ms ?? 0) - (a.ms ?? 0));
  const isKnown = routes.every(({ ms }) => ms !== null);
  if (isKnown) return { readMs, routes, ms: leastMs({ routes }), assumed: [] };
  const assumed = assumedLimits.map((limit) => {
    const known = { ...limit, others: 0, left: undefined };
    const all = routes.map((one) =>
      one.ms === null ? routeForecast({ ...one, reserve }, known) : one,
    );
    return { ...limit, ms: leastMs({ routes: all }) };
  });
  return { readMs, routes, ms: null, assumed };
}

/** Returns the minimum duration, based on the limits that are known. */
export function leastMs({ routes }: { routes: readonly RouteForecast[] }): number {
  return longest(routes, ({ ms, windowMs }) => ({ ms: ms ?? 0, windowMs: windowMs ?? 0 })).ms;
}

export interface Rest {
  ms: number;
  /** The longest window of their routes. */
  windowMs: number;
}

export const noTime: Rest = { ms: 0, windowMs: 0 };

/** Returns the longest work. Deletes of contacts follow enrolments; all else runs in parallel. */
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

function kindOf(route: string): string {
  return route.slice(0, route.indexOf('.') - 1);
}

function isLook(route: string): boolean {
  return route.endsWith('.list') || route.endsWith('.retrieve');
}

export function changesOf({ routes }: { routes: readonly RouteForecast[] }): Map<string, number> {
  const changes = new Map<string, number>();
  for (const { route, requests } of routes) {
    const kind = kindOf(route);
    if (!isLook(route)) changes.set(kind, (changes.get(kind) ?? 0) + requests);
  }
  return changes;
}

/** Uses the limits that are known now. */
export function forecastAgain({ routes, readMs }: Forecast, seen: Limits): Forecast {
  const needs = Object.fromEntries(routes.map(({ route, requests }) => [route, requests]));
  const limits = Object.fromEntries(routes.map((one) => [one.route, newest(one, seen.limits)]));
  return forecast(needs, { ...seen, limits, readMs });
}

/**
 * Returns how long the remaining changes of one record type take when `done` of them are done, in
 * whole windows. Enrolments are done before deletes; of other routes, the same share.
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
    const seen = newest(one, limits);
    // A route already in use has only the rest of this window.
    const left = over > 0 ? seen.left : undefined;
    const ms = waitMs(one.requests - over, { ...seen, left }, reserve);
    return ms === null ? noTime : { ms, windowMs: seen.windowMs ?? 0 };
  });
}

function newest(
  { route, limit, windowMs, others }: RouteForecast,
  limits: Limits['limits'],
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

/** Returns how long requests wait; those of the first window do not. Null without a limit. */
function waitMs(
  requests: number,
  { limit, windowMs, others, left }: RouteLimit,
  reserve: number,
): number | null {
  if (limit === undefined || windowMs === undefined) return null;
  const each = Math.max(1, limit - Math.floor(limit * reserve) - limit * others);
  return Math.ceil(Math.max(0, requests - (left ?? each)) / each) * windowMs;
}

type Range = (ms: number) => string;

const longReadMs = 60_000;

/** Renders the forecast of a plan by the known limits, or by assumed ones where none is. */
export function renderForecast(forecast: Forecast, range: Range): string[] {
  const { readMs, routes, ms } = forecast;
  if (routes.length === 0) return [];
  const known = routes.filter((one) => one.ms !== null);
  const lines = known.map(({ route, requests, limit, windowMs, others }) => {
    const words = limitWords({ limit: limit ?? 0, windowMs: windowMs ?? 0, others }, range);
    return `  ${route}  ${requestWords(requests)}, ${words}`;
  });
  const after = readMs < longReadMs ? '' : `, after ${range(readMs)} of reading both sides`;
  const least = leastMs({ routes });
  const about = least === 0 ? 'a moment' : `about ${range(least)}`;
  if (ms !== null)
    return [`Duration: ${about}${after}, by the rate limits observed so far:`, ...lines];
  const names = routes
    .filter((one) => one.ms === null)
    .map(({ route, requests }) => `${route} (${requestWords(requests)})`);
  const listed = new Intl.ListFormat('en').format(names);
  const times = assumedWords(forecast.assumed, least, range);
  const unknown = [`no rate limit observed yet for ${listed}.`, ...times].join(' ');
  if (known.length === 0) return [`Duration unknown${after}: ${unknown}`];
  const time = least > 0 ? `at least ${range(least)}` : about;
  const head = `Duration: ${time}${after}, by the rate limits observed so far:`;
  return [head, ...lines, capitalized(unknown)];
}

/** Returns nothing if the routes with known limits take longer in any case. */
function assumedWords(assumed: Forecast['assumed'], least: number, range: Range): string[] {
  const slowest = assumed.at(-1);
  if (!slowest || (slowest.ms === least && least > 0)) return [];
  if (slowest.ms === 0) return [`At ${rateWords(slowest)} or more: a moment.`];
  const times = assumed.map(
    (one) => `at ${rateWords(one)}: ${one.ms === 0 ? 'a moment' : range(one.ms)}`,
  );
  return [`${capitalized(times.join('; '))}.`];
}

function capitalized(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function rateWords({ limit, windowMs }: { limit: number; windowMs: number }): string {
  return `${limit} a ${windowMs === 1000 ? 'second' : 'minute'}`;
}

function requestWords(requests: number): string {
  return `${withCommas(requests)} request${requests === 1 ? '' : 's'}`;
}

/** Renders a limit as "30 every 60 s, 20 % used by others". */
export function limitWords(
  { limit, windowMs, others }: { limit: number; windowMs: number; others: number },
  range: Range,
): string {
  const share = others >= 0.05 ? `, ${Math.round(others * 100)} % used by others` : '';
  return `${withCommas(limit)} every ${range(windowMs)}${share}`;
}
