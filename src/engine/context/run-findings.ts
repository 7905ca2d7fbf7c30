/** Holds what a run finds of a record type: by reading the source, and by listing the platform. */
import type { UnknownWords } from '../../domain/unknown-words.ts';
import type { RecordTypeName } from '../../domain/record.ts';
import type { RecordType } from '../../records/record-type.ts';

/** A listing of all records of one type on the platform. */
export interface PlatformListing {
  /** Whether it is proven that what the listing does not show is not there. */
  complete: boolean;
  /** When the listing began, by our clock; milliseconds since the epoch. */
  startedAt: number;
  /** When the listing had ended, likewise. */
  endedAt: number;
  /** The number of the newest entry of the do-not-contact list when the listing began. */
  knownEntries: number;
  /** When the listing began by the platform's clock; undefined: its answer had no Date. */
  platformStartedAt: number | undefined;
  /** The organization that the platform names as the owner; undefined: it names none. */
  organization: string | undefined;
}

/** How much a reading of a source has. */
export interface Sizes {
  /** Keys that have a valid record. */
  valid: number;
  /** Keys whose records ask for something: a subscription, a template. */
  wanted: number;
  /** Invalid records. */
  invalid: number;
  /** Records that name nobody. */
  skipped: number;
  /** Words in the records that the configuration does not know. */
  unknown: readonly UnknownWords[];
}

/** Holds what a run has found of one record type so far. */
export interface Findings {
  /** Whether the source certified that its reading was complete. */
  certified: boolean;
  /** Whether the reading names every record that the source has, not only changed ones. */
  whole: boolean;
  /** Where the next reading of changes goes on; undefined: the source does not tell. */
  cursor: string | undefined;
  /** Undefined: nothing was listed, as in a fast run. */
  listing: PlatformListing | undefined;
  /** Channels that so many people have lost at once that nothing is concluded from it. */
  lost: ReadonlySet<string>;
  /** The name that the source gives to what was read; '' if nothing was. */
  reading: string;
  sizes: Sizes;
  /** Returns whether the source still has what was read. */
  still(): boolean;
  /** Whether this run counts for how long somebody has been missing from the CRM. */
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
  sizes: { valid: 0, wanted: 0, invalid: 0, skipped: 0, unknown: [] },
  still: () => false,
  absenceCounts: false,
};

/** Returns the findings of the record type of this name, whether or not it takes part. */
export function findingsNamed(
  known: ReadonlyMap<RecordType, Findings>,
  kind: RecordTypeName,
): Findings {
  return [...known].find(([{ name }]) => name === kind)?.[1] ?? noFindings;
}
