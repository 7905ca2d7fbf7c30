/** What the demo says beforehand of each person and template. */

/** What should have happened to one person in one run. */
export interface Claim {
  /** The address. */
  who: string;
  says: string;
  /** Requests that changed something, such as `opt_in ch_news`. */
  sent: readonly string[];
  /** As `standingOf` says it. */
  shows: string;
  /** As which problem the run lists it. */
  listed?: 'conflict' | 'invalid';
}

/** What should have happened to one template in one run. */
export interface TemplateClaim {
  /** On the platform. */
  name: string;
  says: string;
  sent: readonly ('create' | 'update')[];
  subject: string;
}
