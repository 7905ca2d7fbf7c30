/** The rate limit of one route, as its responses show it ("Limits" 4). */
export interface RouteLimit {
  /** The number of requests per window; undefined if no response has stated it. */
  limit: number | undefined;
  /** The length of the window; undefined if no response has stated it. */
  windowMs: number | undefined;
  /** The requests left after the last response, excluding the share reserved for other programs. */
  left: number | undefined;
  /** The share of the limit that other programs used in this window or the previous one, 0 to 1. */
  others: number;
}
