import { Invalid } from '../../domain/errors.ts';
import { type ApiOutcome, refuse } from '../shared/api-answer.ts';

/**
 * The default limit of each route in requests per minute. The specification states none. Enrolments
 * are faster than on real platforms (30 per minute), so that a thousand people can be tried within
 * two minutes. Deletes and contact reads have the values seen there.
 */
const perMinute = {
  'contacts.list': 60,
  'contacts.retrieve': 60,
  'contacts.delete': 30,
  'contacts.enrol': 1000,
  'templates.list': 60,
  'templates.create': 60,
  'templates.update': 60,
  'templates.test': 60,
  'domains.create': 60,
  'domains.verify': 60,
  'domains.nameservers': 60,
  'domains.list': 60,
  'keys.enable': 60,
};

/** The name of an operation, as used for limits and the request log. */
export type Route = keyof typeof perMinute;

export const routes = Object.keys(perMinute).filter(isRoute);

export function isRoute(name: string): name is Route {
  return Object.hasOwn(perMinute, name);
}

/** Creates a meter for each organization and route. Throws Invalid if a limit cannot be parsed. */
export function createMeters(texts: readonly string[], algorithm: Algorithm) {
  const stated = new Map(texts.map(parseLimit));
  const meters = new Map<string, Meter>();
  const limitOf = (route: Route): Limit =>
    stated.get(route) ?? stated.get('*') ?? { requests: perMinute[route], windowSeconds: 60 };
  return {
    limitOf,
    take(organizationId: string, route: Route, at: Instant) {
      const name = `${route} ${organizationId}`;
      const limit = limitOf(route);
      const meter = meters.get(name) ?? algorithm(limit);
      meters.set(name, meter);
      return { limit, reading: meter(at) };
    },
    clear: () => meters.clear(),
  };
}

export type Meters = ReturnType<typeof createMeters>;

/** Returns the headers of "Limits 4": sending operations say when, others in which window. */
export function limitHeaders(
  { limit, reading }: { limit: Limit; reading: MeterReading },
  { sends, nowMs }: { sends: boolean | undefined; nowMs: number },
): Record<string, string> {
  const headers: Record<string, string> = {
    'x-ratelimit-limit': String(limit.requests),
    'x-ratelimit-remaining': String(reading.remaining),
  };
  if (sends) headers['x-ratelimit-reset'] = seconds(nowMs + reading.resetMs);
  else headers['x-ratelimit-window'] = String(limit.windowSeconds);
  if (!reading.allowed) headers['retry-after'] = seconds(reading.resetMs);
  return headers;
}

/** Returns the error response for a request above the limit. */
export function rateLimited(route: Route, retryAfter: string | undefined): ApiOutcome {
  return refuse(429, 'Rate limit exceeded', {
    why: `The organization has used up its limit for ${route} in this window.`,
    fix: `Wait ${retryAfter} s, as Retry-After says, and send the request again.`,
  });
}

/** Converts milliseconds to seconds, rounded up, so that a client never comes too early. */
function seconds(ms: number): string {
  // Subtracting one nanosecond makes 60.000000000000001 count as 60.
  return String(Math.ceil(ms / 1000 - 1e-9));
}

/** Parses a limit such as `contacts.enrol=30/60`, or for the route `*`. Throws Invalid. */
export function parseLimit(text: string): [route: string, limit: Limit] {
  const [, route = '', requests, windowSeconds] =
    /^([^=]+)=(\d{1,9})\/(\d{1,6}(?:\.\d+)?)$/.exec(text) ?? [];
  const limit = { requests: Number(requests), windowSeconds: Number(windowSeconds) };
  if (!(limit.requests >= 1 && limit.windowSeconds > 0)) {
    throw new Invalid(
      `limit "${text}" cannot be read: write route=requests/seconds, both above 0, ` +
        'for example contacts.enrol=30/60',
    );
  }
  if (route !== '*' && !isRoute(route)) {
    throw new Invalid(
      `limit "${text}" names no route: use one of ${routes.join(', ')}, or * for all`,
    );
  }
  return [route, limit];
}

/** Allows `requests` in each window of `windowSeconds`, which may be a fraction. */
export interface Limit {
  requests: number;
  windowSeconds: number;
}

export interface MeterReading {
  allowed: boolean;
  /** The exact number of further requests allowed at this moment. */
  remaining: number;
  /** The time until one more than `remaining` is allowed. */
  resetMs: number;
}

/** The arrival time of a request in milliseconds. `epoch` may jump; `monotonic` never does. */
export interface Instant {
  epoch: number;
  monotonic: number;
}

/** Counts each request to one route once, except for refused ones. */
export type Meter = (at: Instant) => MeterReading;

/** A counting algorithm. Each organization has one meter per route. */
export type Algorithm = (limit: Limit) => Meter;

/** Amounts below a millionth of a request are treated as rounding errors. */
const TINY = 1e-6;

/** Counts in windows by one of the clocks; `startAt` returns when the window of a time begins. */
function inWindows(
  clock: keyof Instant,
  startAt: (nowMs: number, windowMs: number, startMs: number) => number,
): Algorithm {
  return ({ requests, windowSeconds }) => {
    const windowMs = windowSeconds * 1000;
    let startMs = Number.NEGATIVE_INFINITY;
    let used = 0;
    return ({ [clock]: nowMs }) => {
      const start = startAt(nowMs, windowMs, startMs);
      if (start !== startMs) used = 0;
      startMs = start;
      const allowed = used < requests;
      if (allowed) used += 1;
      return { allowed, remaining: requests - used, resetMs: startMs + windowMs - nowMs };
    };
  };
}

/** Starts a window with the first request after the previous window ended. */
const fixed = inWindows('monotonic', (nowMs, windowMs, startMs) =>
  nowMs < startMs + windowMs ? startMs : nowMs,
);

/** Uses consecutive windows since the epoch; a window of 60 seconds starts with each minute. */
const aligned = inWindows('epoch', (nowMs, windowMs) => Math.floor(nowMs / windowMs) * windowMs);

/** Remembers every request for one window, so that no window ever holds more than the limit. */
const slidingLog: Algorithm = ({ requests, windowSeconds }): Meter => {
  const windowMs = windowSeconds * 1000;
  const log: number[] = [];
  return ({ monotonic }) => {
    while (log[0] !== undefined && log[0] + windowMs <= monotonic) log.shift();
    const allowed = log.length < requests;
    if (allowed) log.push(monotonic);
    const oldest = log[0] ?? monotonic;
    return { allowed, remaining: requests - log.length, resetMs: oldest + windowMs - monotonic };
  };
};

/**
 * Keeps two counters, for the current window since the epoch and for the previous one. The previous
 * window counts in proportion to its overlap with a window that ends now, as if its requests had
 * been evenly spread.
 */
const slidingCounter: Algorithm = ({ requests, windowSeconds }): Meter => {
  const windowMs = windowSeconds * 1000;
  let current = Number.NaN;
  let before = 0;
  let used = 0;

  /** Returns the time from the start of the window until `wanted` more requests fit. */
  function untilFits(wanted: number, earlier: number, own: number): number {
    if (earlier + own + wanted <= requests) return 0;
    return windowMs * (1 - (requests - own - wanted) / earlier);
  }

  return ({ epoch }) => {
    const window = Math.floor(epoch / windowMs);
    if (window !== current) {
      before = window === current + 1 ? used : 0;
      used = 0;
      current = window;
    }
    const elapsedMs = epoch - window * windowMs;
    const free = () => requests - used - before * (1 - elapsedMs / windowMs);
    const allowed = free() + TINY >= 1;
    if (allowed) used += 1;
    const remaining = Math.max(0, Math.floor(free() + TINY));
    const wanted = remaining + 1;
    const here = used + wanted <= requests && before > 0;
    const resetMs = here
      ? untilFits(wanted, before, used) - elapsedMs
      : windowMs - elapsedMs + untilFits(wanted, used, 0);
    return { allowed, remaining, resetMs: Math.max(0, resetMs) };
  };
};

/** Restores capacity evenly, up to the full limit, by the time when all requests are paid off. */
const gcra: Algorithm = ({ requests, windowSeconds }): Meter => {
  const windowMs = windowSeconds * 1000;
  const eachMs = windowMs / requests;
  let paidAt = Number.NEGATIVE_INFINITY;
  return ({ monotonic }) => {
    const due = Math.max(paidAt, monotonic);
    const saved = () => (windowMs - (Math.max(paidAt, monotonic) - monotonic)) / eachMs;
    const allowed = saved() + TINY >= 1;
    if (allowed) paidAt = due + eachMs;
    const remaining = Math.floor(saved() + TINY);
    return { allowed, remaining, resetMs: Math.max(0, remaining + 1 - saved()) * eachMs };
  };
};

export const algorithms: readonly { name: string; line: string; counts: Algorithm }[] = [
  { name: 'fixed', line: 'a window begins with its first request', counts: fixed },
  { name: 'aligned', line: 'windows lie end to end since the epoch', counts: aligned },
  { name: 'sliding-log', line: 'never more than the limit in any window', counts: slidingLog },
  {
    name: 'sliding-counter',
    line: 'the window before counts for the share that still overlaps',
    counts: slidingCounter,
  },
  { name: 'gcra', line: 'capacity comes back evenly, one request at a time', counts: gcra },
];

/** Returns the algorithm of this name, by default `fixed`. Throws Invalid for another one. */
export function findAlgorithm(name = 'fixed'): Algorithm {
  const found = algorithms.find((one) => one.name === name);
  if (found) return found.counts;
  const names = algorithms.map((one) => one.name).join(', ');
  throw new Invalid(`algorithm "${name}" is not known: use one of ${names}`);
}
