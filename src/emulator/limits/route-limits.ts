import { Invalid } from '../../domain/errors.ts';
import { type ApiOutcome, refuse } from '../shared/api-answer.ts';
import type { Algorithm, Instant, Limit, Meter, MeterReading } from './algorithms.ts';

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
  /** Returns the limit of a route, which is the same for every organization. */
  const limitOf = (route: Route): Limit =>
    stated.get(route) ?? stated.get('*') ?? { requests: perMinute[route], windowSeconds: 60 };
  return {
    limitOf,
    /** Counts one request of an organization. */
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

/**
 * Returns the rate-limit headers of a response ("Limits 4") at `nowMs` since the epoch. An
 * operation that sends email states when its window ends; any other states the length of the
 * window.
 */
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
