/** Decides which rate limits a rehearsal uses: those given, else those seen, else assumed ones. */
import { parseLimit, type Route, routes } from '../../emulator/limits/route-limits.ts';
import type { RouteLimit } from '../../domain/route-limit.ts';

/** The limit of a route, and where it comes from. */
export interface UsedLimit {
  route: Route;
  limit: number;
  windowMs: number;
  from: 'given' | 'seen' | 'assumed';
}

type Seen = Readonly<Record<string, Pick<RouteLimit, 'limit' | 'windowMs'> | undefined>>;

/** The limits of the platform where enrolments and deletes are the slowest; others: 60 a minute. */
const assumed: Partial<Record<Route, number>> = { 'contacts.enrol': 30, 'contacts.delete': 30 };
const minuteMs = 60_000;

/** Returns the limit of every route. Throws Invalid if a given limit cannot be read. */
export function limitsFor(given: readonly string[], seen: Seen): UsedLimit[] {
  const stated = new Map(given.map(parseLimit));
  return routes.map((route): UsedLimit => {
    const own = stated.get(route) ?? stated.get('*');
    if (own) {
      const { requests: limit, windowSeconds } = own;
      return { route, limit, windowMs: windowSeconds * 1000, from: 'given' };
    }
    const { limit, windowMs } = seen[route] ?? {};
    if (limit !== undefined && limit > 0 && windowMs !== undefined && windowMs > 0) {
      return { route, limit, windowMs, from: 'seen' };
    }
    return { route, limit: assumed[route] ?? 60, windowMs: minuteMs, from: 'assumed' };
  });
}

/** Returns the limits as an emulator takes them. */
export function limitTexts(limits: readonly UsedLimit[]): string[] {
  return limits.map(({ route, limit, windowMs }) => `${route}=${limit}/${windowMs / 1000}`);
}
