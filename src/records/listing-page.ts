/** The platform's responses: a page of its listing, and the search for one record. */
import type { ObservedRow } from '../domain/record.ts';
import type { NamedParts } from './platform-facts.ts';

/** The page to request: its number, starting at 1, and the maximum number of records on it. */
export interface ListingPage {
  page: number;
  limit: number;
}

/** One page of the listing. */
export interface Page {
  rows: ObservedRow[];
  /** The total number of records, as stated by the platform. It is never trusted on its own. */
  total: number;
  /** When the platform responded, by its own clock, in milliseconds since the epoch. */
  date: number | undefined;
  /**
   * The id of the organization that owns the records; undefined if the platform does not state it.
   */
  organization: string | undefined;
  /** The parts that the records name; undefined if there are none. */
  parts?: NamedParts | undefined;
  /** The parts that the configuration does not name, once for each record that is in one. */
  others?: readonly { id: string; name: string }[];
}

/**
 * The result of a search for one recorded record.
 *
 *   alone   the record exists; nothing else is known about its key
 *   whole   the record is gone, and `rows` are all records that have its key now
 */
export interface FoundRecord {
  is: 'alone' | 'whole';
  rows: ObservedRow[];
}
