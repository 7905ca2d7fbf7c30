/** Holds what a run finds for a record type by reading the source and by listing the platform. */
import type { UnknownWords } from '../../domain/unknown-words.ts';
import type { RecordTypeName } from '../../domain/record.ts';
import type { RecordType } from '../../records/record-type.ts';

/** A listing of all records of one type on the platform. */
export interface PlatformListing {
  /** Whether it is proven that a record missing from the listing does not exist on the platform. */
  complete: boolean;
  /** The number of records in it. */
  size: number;
  /** When the listing began by our clock, in milliseconds since the epoch. */
  startedAt: number;
  /** When the listing ended, in the same unit. */
  endedAt: number;
  /** The number of the newest entry of the do-not-contact list when the listing began. */
  knownEntries: number;
  /**
   * When the listing began by the platform's clock; undefined if the response had no Date header.
   */
  platformStartedAt: number | undefined;
  /** The organization that the platform names as the owner; undefined if it names none. */
  organization: string | undefined;
}

/** The sizes of one reading of a source. */
export interface Sizes {
  /** The number of keys that have a valid record. */
  valid: number;
  /** The number of keys whose records request something, such as a subscription or a template. */
  wanted: number;
  /** The number of invalid records. */
  invalid: number;
  /** The number of records that identify no person. */
  skipped: number;
  /**
   * The number of recorded records that this reading is the first to lack. It stays 0 in an
   * incremental reading.
   */
  missing: number;
  /** Words in the records that the configuration does not define. */
  unknown: readonly UnknownWords[];
  /** The columns that hold nothing but dates; in an incremental reading, those remembered. */
  dateColumns: readonly string[];
}

/** Holds what a run has found for one record type so far. */
export interface Findings {
  /** Whether the source certified that its reading is complete. */
  certified: boolean;
  /** Whether the reading contains every record of the source, rather than only changed ones. */
  whole: boolean;
  /**
   * The position from which the next incremental reading continues; undefined if the source
   * provides none.
   */
  cursor: string | undefined;
  /** Undefined if nothing was listed, as in a fast run. */
  listing: PlatformListing | undefined;
  /**
   * Channels that so many people lost at the same time that the loss does not count as opt-outs.
   */
  lost: ReadonlySet<string>;
  /** The name by which the source identifies this reading; '' if nothing was read. */
  reading: string;
  sizes: Sizes;
  /** Returns whether the source is unchanged since it was read. */
  still(): boolean;
  /** Whether this run counts towards how long people have been missing from the CRM. */
  absenceCounts: boolean;
}

/** The findings of a record type that was not read. */
export const noFindings: Findings = {
  certified: false,
  whole: false,
  cursor: undefined,
  listing: undefined,
  lost: new Set(),
  reading: '',
  sizes: { valid: 0, wanted: 0, invalid: 0, skipped: 0, missing: 0, unknown: [], dateColumns: [] },
  still: () => false,
  absenceCounts: false,
};

/**
 * Returns the findings for the record type with this name, whether or not it is part of the run.
 */
export function findingsNamed(
  known: ReadonlyMap<RecordType, Findings>,
  kind: RecordTypeName,
): Findings {
  return [...known].find(([{ name }]) => name === kind)?.[1] ?? noFindings;
}
