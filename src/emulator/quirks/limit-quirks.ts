import { rateLimited, type Route } from '../limits/route-limits.ts';
import type { Organization } from '../store/organization.ts';
import { isRecord, withBody, type Quirk, type Reply } from './quirk.ts';

/**
 * Changes the rate-limit headers:
 *
 *   reset            X-RateLimit-Reset holds the seconds left, without X-RateLimit-Window
 *   none             no headers, but a 429 still has Retry-After
 *   none-templates   no headers on the template routes
 */
export function headers(which: string): Quirk {
  if (which === 'reset') return { turns: withSecondsLeft };
  return {
    turns: (reply) =>
      which === 'none' || reply.route?.startsWith('templates.') ? without(reply) : reply,
  };
}

function withSecondsLeft(reply: Reply): Reply {
  if (!reply.reading) return reply;
  const { 'x-ratelimit-window': _, ...rest } = reply.headers;
  const left = String(Math.ceil(reply.reading.resetMs / 1000));
  return { ...reply, headers: { ...rest, 'x-ratelimit-reset': left } };
}

function without(reply: Reply): Reply {
  const kept = Object.entries(reply.headers).filter(([name]) => !name.startsWith('x-ratelimit-'));
  return { ...reply, headers: Object.fromEntries(kept) };
}

/**
 * Rounds Retry-After to the nearest second instead of up, so that it can be half a second too
 * short.
 */
export function retryAfterShort(): Quirk {
  return {
    turns(reply) {
      if (!reply.reading || reply.reading.allowed) return reply;
      const seconds = String(Math.max(1, Math.round(reply.reading.resetMs / 1000)));
      return { ...reply, headers: { ...reply.headers, 'retry-after': seconds } };
    },
  };
}

/** Never resets a counter that has reached its limit, as if the counter had lost its expiry. */
export function retryAfterStuck(): Quirk {
  const stuck = new Map<Organization, Set<Route>>();
  const stuckIn = (organization: Organization): Set<Route> => {
    const known = stuck.get(organization) ?? new Set();
    stuck.set(organization, known);
    return known;
  };
  return {
    restart: () => stuck.clear(),
    answers: ({ route }, organization) =>
      stuckIn(organization).has(route) ? rateLimited(route, '1') : undefined,
    turns(reply) {
      const { route, organization, outcome, reading } = reply;
      if (route && organization && reading?.remaining === 0) stuckIn(organization).add(route);
      if (outcome.status !== 429) return reply;
      const said = { 'x-ratelimit-remaining': '0', 'retry-after': '1' };
      return { ...reply, headers: { ...reply.headers, ...said } };
    },
  };
}

/** Repeats Retry-After in the body of a 429 response. */
export function retryAfterBody(): Quirk {
  return {
    turns(reply) {
      const { status, body } = reply.outcome;
      if (status !== 429 || !isRecord(body)) return reply;
      return withBody(reply, { ...body, retryAfter: Number(reply.headers['retry-after']) });
    },
  };
}
