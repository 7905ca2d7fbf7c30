/** The rate limit of one route, as its answers show it ("Limits" 4). */
export interface RouteLimit {
  /** Requests per window; undefined: no answer named it. */
  limit: number | undefined;
  /** The length of the window; undefined: no answer named it. */
  windowMs: number | undefined;
  /** Requests left after the last answer, without the share reserved for other programs. */
  left: number | undefined;
  /** The share of the limit that other programs used in this window or the one before, 0 to 1. */
  others: number;
}
