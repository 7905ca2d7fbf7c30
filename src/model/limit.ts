/** What the platform allows of one route, as its answers tell ("Limits" 4). */
export interface RouteLimit {
  /** Requests in every window; undefined: no answer named it. */
  limit: number | undefined;
  windowMs: number | undefined;
  /** As the last answer had it, without what is reserved for others. */
  left: number | undefined;
  /** Share of what was used of the window that others used, 0 to 1. */
  others: number;
}
