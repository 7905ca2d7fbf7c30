/** What the demo says beforehand of each person and template. */

/** What should have happened to one person in one run. */
export interface Claim {
  /** The address. */
  who: string;
  says: string;
  /** The requests that changed something, such as `opt_in ch_news`. */
  sent: readonly string[];
  /** The contact on the platform, as `standingOf` words it. */
  shows: string;
  /** The class of the problem that the run lists for the person; undefined: none. */
  listed?: 'conflict' | 'invalid';
}

/** What should have happened to one template in one run. */
export interface TemplateClaim {
  /** The template's name on the platform. */
  name: string;
  says: string;
  sent: readonly ('create' | 'update')[];
  subject: string;
}
