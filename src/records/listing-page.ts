/** Describes one page of a platform's list, and the answer to a request for one record of it. */
import type { ObservedRow } from '../domain/record.ts';
import type { NamedParts } from './platform-facts.ts';

export interface ListingPage {
  page: number;
  limit: number;
}

export interface Page {
  rows: ObservedRow[];
  /** The number of records that the platform says there are; it is never trusted alone. */
  total: number;
  /** When the platform answered, by its own clock, in milliseconds since the epoch. */
  date: number | undefined;
  /** The id of the organization they are of, where the platform names it. */
  organization: string | undefined;
  /** The parts that its records name; undefined where records have no parts. */
  parts?: NamedParts | undefined;
}

/**
 * The answer to a request for one record. alone: it is there, and nothing else is known of its key.
 * whole: it is gone, and `rows` are all that its key has now.
 */
export interface FoundRecord {
  is: 'alone' | 'whole';
  rows: ObservedRow[];
}
