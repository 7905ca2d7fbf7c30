/** What one page of a platform's list gives, and what asking for one record of it gives. */
import type { ObservedRow } from '../domain/record.ts';
import type { NamedParts } from './platform-facts.ts';

export interface ListingPage {
  page: number;
  limit: number;
}

export interface Page {
  rows: ObservedRow[];
  /** What the platform says there are; never trusted alone. */
  total: number;
  /** When the platform answered, by its own clock, in milliseconds since the epoch. */
  date: number | undefined;
  /** The id of the organization they are of, where the platform names it. */
  organization: string | undefined;
  /** Which parts its records name; undefined where there are none. */
  parts?: NamedParts | undefined;
}

/**
 * What asking for one record gave. alone: it is there, and nothing else is known of its key. whole:
 * it is gone, and `rows` are all that its key has now.
 */
export interface FoundRecord {
  is: 'alone' | 'whole';
  rows: ObservedRow[];
}
