import { Invalid } from '../../domain/errors.ts';
import { type ApiOutcome, refuse } from '../shared/api-answer.ts';
import type { Algorithm, Instant, Limit, Meter, MeterReading } from './algorithms.ts';

/**
 * The default limit of each route. The specification states none. Enrolments are faster than on
 * real platforms (30 per minute), so that a thousand people can be tried within two minutes.
 * Deletes and contact reads have the values seen there, and the other routes allow 60 per minute.
 */
const defaults = {
  'contacts.list': perMinute(60),
  'contacts.retrieve': perMinute(60),
  'contacts.delete': perMinute(30),
  'contacts.enrol': perMinute(1000),
  'templates.list': perMinute(60),
  'templates.create': perMinute(60),
  'templates.update': perMinute(60),
  'templates.test': perMinute(60),
  'domains.create': perMinute(60),
  'domains.verify': perMinute(60),
  'domains.nameservers': perMinute(60),
  'domains.list': perMinute(60),
  'keys.enable': perMinute(60),
} satisfies Record<string, Limit>;

/** The name of an operation, as used for limits and the request log. */
export type Route = keyof typeof defaults;

export const routes = Object.keys(defaults).filter(isRoute);

export function isRoute(name: string): name is Route {
  return Object.hasOwn(defaults, name);
}

/** Creates limits: `contacts.enrol=30/60`, 30 requests in 60 s; `*`: the rest. Throws Invalid. */
function createLimits(texts: readonly string[], algorithm: Algorithm) {
  const stated = new Map(texts.map(parseLimit));
  const meters = new Map<Route, Meter>();
  const limitOf = (route: Route): Limit => stated.get(route) ?? stated.get('*') ?? defaults[route];

  return {
    limitOf,
    /** Counts one request. */
    take(route: Route, at: Instant): { limit: Limit; reading: MeterReading } {
      const limit = limitOf(route);
      const meter = meters.get(route) ?? algorithm(limit);
      meters.set(route, meter);
      return { limit, reading: meter(at) };
    },
  };
}

/** Creates the limits. Throws Invalid if one cannot be parsed. */
export function createMeters(texts: readonly string[], algorithm: Algorithm) {
  const create = () => createLimits(texts, algorithm);
  // A limit that cannot be parsed must be refused now, not at the first request.
  const first = create();
  const meters = new Map([['', first]]);
  return {
    /** Returns the limit of a route, which is the same for every organization. */
    limitOf: first.limitOf,
    of({ id }: { id: string }) {
      const known = meters.get(id) ?? create();
      meters.set(id, known);
      return known;
    },
    clear: () => meters.clear(),
  };
}

export type Meters = ReturnType<typeof createMeters>;

/**
 * Returns the rate-limit headers of a response ("Limits 4") at `nowMs` since the epoch. An
 * operation that sends email states when its window ends; any other states the length of the
 * window.
 */
export function limitHeaders(
  { limit, reading }: { limit: Limit; reading: MeterReading },
  { sends, nowMs }: { sends: boolean; nowMs: number },
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

function perMinute(requests: number): Limit {
  return { requests, windowSeconds: 60 };
}
