/** What a run knows of one record type: what was read of the source, and what was listed. */
import type { UnknownWords } from '../../domain/unknown-words.ts';
import type { RecordTypeName } from '../../domain/record.ts';
import type { RecordType } from '../../records/record-type.ts';

export interface PlatformListing {
  /** Whether what it does not show is proven absent. */
  complete: boolean;
  /** When it began, by our clock; milliseconds since the epoch. */
  startedAt: number;
  /** When it had ended, likewise. */
  endedAt: number;
  /** How far the ledger had got when it began. */
  knownEntries: number;
  /** When it began by the platform's clock, likewise; undefined: its answer had no Date. */
  platformStartedAt: number | undefined;
  /** Of whom the platform says that these records are; undefined when it does not. */
  organization: string | undefined;
}

/**
 * Of a reading: keys that have a valid record, those that want something, invalid records, and
 * those that name nobody; and the words that are not known.
 */
export interface Sizes {
  valid: number;
  wanted: number;
  invalid: number;
  skipped: number;
  unknown: readonly UnknownWords[];
}

/** What is known of one kind in this run. */
export interface Findings {
  /** Whether the reading of the source was certified. */
  certified: boolean;
  /** Whether that reading names everybody whom the source has. */
  whole: boolean;
  /** From where its changes go on, where the source tells them. */
  cursor: string | undefined;
  /** Undefined in a fast run: nothing was listed. */
  listing: PlatformListing | undefined;
  /** Parts that so many records have lost at once that nothing is concluded from it. */
  lost: ReadonlySet<string>;
  /** The name of what was read of the source, and how much it is. */
  reading: string;
  sizes: Sizes;
  /** Whether the source is still that. */
  still(): boolean;
  /** Whether it counts for how long somebody has not been named (README, people who left). */
  absenceCounts: boolean;
}

/** Where nothing was read. */
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

/** Of the kind of this name, whether or not it takes part. */
export function findingsNamed(
  known: ReadonlyMap<RecordType, Findings>,
  kind: RecordTypeName,
): Findings {
  return [...known].find(([{ name }]) => name === kind)?.[1] ?? noFindings;
}
