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
}
