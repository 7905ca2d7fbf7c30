import { withCommas } from './values/counted.ts';

/** The limit of a route; undefined if no response has stated it. */
export interface StatedLimit {
  limit: number | undefined;
  windowMs: number | undefined;
}

/** The rate limit of one route, as its responses show it ("Limits" 4). */
export interface RouteLimit extends StatedLimit {
  /** The requests left after the last response, excluding the share reserved for other programs. */
  left: number | undefined;
  /** The share of the limit that other programs used in this window or the previous one, 0 to 1. */
  others: number;
  /** How long, in milliseconds, until a request that waits may leave; undefined if none has to. */
  waitMs?: number;
}

/** Says what of a limit everybody has used, such as: 27 of 30 (90 %), 3 left to others */
export function sayUsage({ limit, left }: RouteLimit, reserve: number): string | undefined {
  if (limit === undefined || left === undefined) return undefined;
  const reserved = Math.floor(limit * reserve);
  const used = Math.max(0, limit - reserved - left);
  const share = `${withCommas(used)} of ${withCommas(limit)} (${Math.round((used * 100) / limit)} %)`;
  return reserved === 0 ? share : `${share}, ${withCommas(reserved)} left to others`;
}
