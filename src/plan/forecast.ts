/** How many requests a plan takes, and how long the platform's limits make that; pure. */
import type { RouteLimit } from '../model/limit.ts';

/** Routes of the platform, and the requests to each. */
export type Needs = Record<string, number>;

export interface Forecast {
  /** How long reading both sides took before the plan was known, milliseconds. */
  readMs: number;
  routes: RouteForecast[];
  /** Of the slowest route: they run side by side. Null: the limit of one is not known yet. */
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

/** A limit that nobody has shown yet says nothing of the time; the slowest route first. */
export function forecast(
  needs: Needs,
  seen: { limits: Record<string, RouteLimit>; reserve: number; readMs: number },
): Forecast {
  const { limits, reserve, readMs } = seen;
  const routes = Object.entries(needs)
    .filter(([, requests]) => requests > 0)
    .map(([route, requests]) => routeForecast({ route, requests, reserve }, limits[route]));
  routes.sort((a, b) => (b.ms ?? 0) - (a.ms ?? 0));
  const known = routes.map(({ ms }) => ms).filter((ms) => ms !== null);
  return { readMs, routes, ms: known.length < routes.length ? null : Math.max(0, ...known) };
}

/**
 * The same by what is known of the limits now, when of each part of the needs only this share is
 * left.
 */
export function forecastAgain(
  { routes, readMs }: Forecast,
  { limits, reserve }: { limits: Record<string, RouteLimit>; reserve: number },
  share = 1,
): Forecast {
  const needs = routes.map(({ route, requests }) => [route, Math.ceil(requests * share)] as const);
  const known = routes.map(({ route, limit, windowMs, others }) => {
    const seen = limits[route];
    if (seen?.limit !== undefined && seen.windowMs !== undefined) return [route, seen] as const;
    const before = { limit: limit ?? undefined, windowMs: windowMs ?? undefined, others };
    return [route, { ...before, left: undefined }] as const;
  });
  return forecast(Object.fromEntries(needs), {
    limits: Object.fromEntries(known),
    reserve,
    readMs,
  });
}

/** What fits into one window takes no time of its own; each that is begun after it, its length. */
function routeForecast(
  { route, requests, reserve }: { route: string; requests: number; reserve: number },
  seen: RouteLimit | undefined,
): RouteForecast {
  const { limit, windowMs, others = 0 } = seen ?? {};
  const shown = { route, requests, limit: limit ?? null, windowMs: windowMs ?? null, others };
  if (limit === undefined || windowMs === undefined) return { ...shown, ms: null };
  const each = Math.max(1, limit - Math.floor(limit * reserve) - limit * others);
  return { ...shown, ms: Math.max(0, Math.ceil(requests / each) - 1) * windowMs };
}

/** Reading that took less goes without saying. */
const longReadMs = 60_000;

/** The lines of a plan about it. */
export function renderForecast(
  { readMs, routes, ms }: Forecast,
  span: (ms: number) => string,
): string[] {
  if (routes.length === 0) return [];
  const after = readMs < longReadMs ? '' : `, after ${span(readMs)} of reading both sides`;
  const lines = routes.map((one) => lineOf(one, span));
  return [`${timeWords(ms, span)}${after}, by the limits that were seen:`, ...lines];
}

function timeWords(ms: number | null, span: (ms: number) => string): string {
  if (ms === null) return 'nobody knows yet how long';
  return ms === 0 ? 'a moment' : `about ${span(ms)}`;
}

function lineOf(
  { route, requests, limit, windowMs, others }: RouteForecast,
  span: (ms: number) => string,
): string {
  const count = `  ${route}  ${requests.toLocaleString('en')} request${requests === 1 ? '' : 's'}`;
  if (limit === null || windowMs === null) return `${count}, its limit was not seen yet`;
  return `${count}, ${limitWords({ limit, windowMs, others }, span)}`;
}

/** 30 every 60 s, 20 % used by others. */
export function limitWords(
  { limit, windowMs, others }: { limit: number; windowMs: number; others: number },
  span: (ms: number) => string,
): string {
  const share = others >= 0.05 ? `, ${Math.round(others * 100)} % used by others` : '';
  return `${limit.toLocaleString('en')} every ${span(windowMs)}${share}`;
}
