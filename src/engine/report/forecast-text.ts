/** Renders forecasts and rate limits as lines of text. All functions are pure. */
import { type Forecast, leastMs } from './duration-forecast.ts';
import { withCommas } from '../../domain/values/counted.ts';

/** Formats a duration in milliseconds. */
type Range = (ms: number) => string;

/** Reading times below this are not mentioned. */
const longReadMs = 60_000;

/**
 * Renders the forecast lines of a plan: what the known limits say, and the duration under assumed
 * limits if some are not known.
 */
export function renderForecast(forecast: Forecast, range: Range): string[] {
  const { readMs, routes, ms } = forecast;
  if (routes.length === 0) return [];
  const known = routes.filter((one) => one.ms !== null);
  const lines = known.map((one) => lineOf(one, range));
  const after = readMs < longReadMs ? '' : `, after ${range(readMs)} of reading both sides`;
  const unknown = ms === null ? [unknownWords(forecast, range)] : [];
  if (known.length === 0) return [`Duration unknown${after}: ${unknown.join('')}`];
  const least = leastMs({ routes });
  const time = ms === null && least > 0 ? `at least ${range(least)}` : timeWords(least, range);
  return [
    `Duration: ${time}${after}, by the rate limits observed so far:`,
    ...lines,
    ...unknown.map(capitalized),
  ];
}

/** Returns the routes whose limit is not known, and the duration under each assumed limit. */
function unknownWords({ routes, assumed }: Forecast, range: Range): string {
  const names = routes
    .filter(({ ms }) => ms === null)
    .map(({ route, requests }) => `${route} (${requestWords(requests)})`);
  const listed = new Intl.ListFormat('en').format(names);
  const times = assumedWords({ assumed, least: leastMs({ routes }) }, range);
  return [`no rate limit observed yet for ${listed}.`, ...times].join(' ');
}

/** Returns nothing if the routes with known limits take longer in any case. */
function assumedWords(
  { assumed, least }: Pick<Forecast, 'assumed'> & { least: number },
  range: Range,
): string[] {
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

function timeWords(ms: number, range: Range): string {
  return ms === 0 ? 'a moment' : `about ${range(ms)}`;
}

function requestWords(requests: number): string {
  return `${withCommas(requests)} request${requests === 1 ? '' : 's'}`;
}

function lineOf(
  { route, requests, limit, windowMs, others }: Forecast['routes'][number],
  range: Range,
): string {
  const words = limitWords({ limit: limit ?? 0, windowMs: windowMs ?? 0, others }, range);
  return `  ${route}  ${requestWords(requests)}, ${words}`;
}

/** Renders a limit as "30 every 60 s, 20 % used by others". */
export function limitWords(
  { limit, windowMs, others }: { limit: number; windowMs: number; others: number },
  range: Range,
): string {
  const share = others >= 0.05 ? `, ${Math.round(others * 100)} % used by others` : '';
  return `${withCommas(limit)} every ${range(windowMs)}${share}`;
}
