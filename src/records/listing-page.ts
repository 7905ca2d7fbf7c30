/** The answers of a platform: a page of its listing, and the search for one record. */
import type { ObservedRow } from '../domain/record.ts';
import type { NamedParts } from './platform-facts.ts';

/** The page to ask for: its number, from 1, and the most records on it. */
export interface ListingPage {
  page: number;
  limit: number;
}

/** One page of the listing. */
export interface Page {
  rows: ObservedRow[];
  /** The number of all records, as the platform says. It is never trusted alone. */
  total: number;
  /** When the platform answered, by its own clock, in milliseconds since the epoch. */
  date: number | undefined;
  /**
   * The id of the organization that the records belong to; undefined where the platform does not
   * say.
   */
  organization: string | undefined;
  /** The parts that the records name; undefined where there are none. */
  parts?: NamedParts | undefined;
}

/**
 * The result of a search for one recorded record.
 *
 *   alone   the record is there; nothing else is known about its key
 *   whole   the record is gone, and `rows` are all records that its key has now
 */
export interface FoundRecord {
  is: 'alone' | 'whole';
  rows: ObservedRow[];
}
