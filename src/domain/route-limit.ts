/** What the platform allows of one route, as its answers tell ("Limits" 4). */
export interface RouteLimit {
  /** Requests in every window; undefined: no answer named it. */
  limit: number | undefined;
  windowMs: number | undefined;
  /** As the last answer had it, without what is reserved for others. */
  left: number | undefined;
  /** Share of the limit that others used, of this window or of the one before, 0 to 1. */
  others: number;
}
