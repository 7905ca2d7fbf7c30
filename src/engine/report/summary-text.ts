/** Renders a forecast as lines of text. All functions are pure. */
import { type Forecast, leastMs } from './duration-forecast.ts';

/** Reading times below this are not mentioned. */
const longReadMs = 60_000;

/** Renders the forecast lines of a plan. */
export function renderForecast(
  { readMs, routes, ms }: Forecast,
  range: (ms: number) => string,
): string[] {
  if (routes.length === 0) return [];
  const time = ms === null ? atLeast(leastMs({ routes }), range) : about(ms, range);
  const after = readMs < longReadMs ? '' : `, after ${range(readMs)} of reading both sides`;
  const lines = routes.map((one) => lineOf(one, range));
  return [`${time}${after}, by the limits that were seen:`, ...lines];
}

function atLeast(ms: number, range: (ms: number) => string): string {
  return ms === 0 ? 'nobody knows yet how long' : `at least ${range(ms)}`;
}

function about(ms: number, range: (ms: number) => string): string {
  return ms === 0 ? 'a moment' : `about ${range(ms)}`;
}

function lineOf(
  { route, requests, limit, windowMs, others }: Forecast['routes'][number],
  range: (ms: number) => string,
): string {
  const count = `  ${route}  ${requests.toLocaleString('en')} request${requests === 1 ? '' : 's'}`;
  if (limit === null || windowMs === null) return `${count}, its limit was not seen yet`;
  return `${count}, ${limitWords({ limit, windowMs, others }, range)}`;
}

/** Renders a limit as "30 every 60 s, 20 % used by others". */
export function limitWords(
  { limit, windowMs, others }: { limit: number; windowMs: number; others: number },
  range: (ms: number) => string,
): string {
  const share = others >= 0.05 ? `, ${Math.round(others * 100)} % used by others` : '';
  return `${limit.toLocaleString('en')} every ${range(windowMs)}${share}`;
}
