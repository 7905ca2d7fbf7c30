/** How records of a kind leave by themselves, where the platform counts and lists who did. */
import type { DesiredRow, Key, ObservedRow } from '../domain/record.ts';

export interface UnsubscribeListing {
  /** The route by which they are counted and listed. */
  readonly route: string;
  /** The ways out that can be listed, each by itself. */
  readonly ways: readonly string[];
  /**
   * One request. Of each way a count that rises when somebody goes it, unless somebody comes back
   * at the same time; undefined where the platform does not count.
   */
  counts(how: Asking): Promise<UnsubscribeCounts | undefined>;
  /** One page of those who went this way, the last ones that were made first. */
  list(page: { way: string; page: number; limit: number }, how: Asking): Promise<LeavingPage>;
  /** Somebody the source names, when nothing else is known of what it says. */
  named(key: Key): DesiredRow;
}

export type UnsubscribeCounts = Readonly<Record<string, number>>;

export interface LeavingPage {
  /** Those of them that have left indeed. */
  rows: ObservedRow[];
  /** How many stood on the page. */
  listed: number;
  /** How many went this way, as the platform says. */
  total: number;
}

/** `signal` ends the waiting, `abort` what is under way. */
interface Asking {
  signal: AbortSignal;
  abort: AbortSignal;
}
