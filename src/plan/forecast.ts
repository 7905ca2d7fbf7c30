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

/** What fits into one window takes no time of its own; each window more takes its length. */
function routeForecast(
  { route, requests, reserve }: { route: string; requests: number; reserve: number },
  seen: RouteLimit | undefined,
): RouteForecast {
  const { limit, windowMs, others = 0 } = seen ?? {};
  const shown = { route, requests, limit: limit ?? null, windowMs: windowMs ?? null, others };
  if (limit === undefined || windowMs === undefined) return { ...shown, ms: null };
  const each = Math.max(1, limit * (1 - reserve - others));
  return { ...shown, ms: Math.round(Math.max(0, requests / each - 1) * windowMs) };
}

/** Reading that took less goes without saying. */
const longReadMs = 60_000;

/** The lines of a plan about it. */
export function renderForecast(
  { readMs, routes, ms }: Forecast,
  span: (ms: number) => string,
): string[] {
  if (routes.length === 0) return [];
  const time = ms === null ? 'nobody knows yet how long' : `about ${span(ms)}`;
  const after = readMs < longReadMs ? '' : `, after ${span(readMs)} of reading both sides`;
  const lines = routes.map((one) => lineOf(one, span));
  return [`${time}${after}, by the limits that were seen:`, ...lines];
}

function lineOf(
  { route, requests, limit, windowMs, others }: RouteForecast,
  span: (ms: number) => string,
): string {
  const count = `  ${route}  ${requests.toLocaleString('en')} requests`;
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
