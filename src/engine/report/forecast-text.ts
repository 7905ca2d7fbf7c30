/** A forecast as people read it. */
import { leastMs, type Forecast } from './duration-forecast.ts';

/** Reading that took less goes without saying. */
const longReadMs = 60_000;

/** The lines of a plan about it. */
export function renderForecast(
  { readMs, routes, ms }: Forecast,
  span: (ms: number) => string,
): string[] {
  if (routes.length === 0) return [];
  const time = ms === null ? atLeast(leastMs({ routes }), span) : about(ms, span);
  const after = readMs < longReadMs ? '' : `, after ${span(readMs)} of reading both sides`;
  const lines = routes.map((one) => lineOf(one, span));
  return [`${time}${after}, by the limits that were seen:`, ...lines];
}

function atLeast(ms: number, span: (ms: number) => string): string {
  return ms === 0 ? 'nobody knows yet how long' : `at least ${span(ms)}`;
}

function about(ms: number, span: (ms: number) => string): string {
  return ms === 0 ? 'a moment' : `about ${span(ms)}`;
}

function lineOf(
  { route, requests, limit, windowMs, others }: Forecast['routes'][number],
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
