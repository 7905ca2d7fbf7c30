/** Who left by themselves, for the source to be told; pure. */
import type { Entry } from '../domain/do-not-contact.ts';
import type { DesiredRow, RecordedRow } from '../domain/record.ts';
import type { ReturnCause } from '../domain/opt-out-report.ts';
import type { PlatformFacts } from './platform-facts.ts';

/**
 * One way out that the platform knows of, and not from us. Times in milliseconds. doubtful: nobody
 * is known to have left by it; it may be a channel's default, or the work of a request of ours that
 * had no answer. The source is not told.
 */
export interface PlatformOptOut {
  /** '*': all of them. */
  channel: string;
  cause: ReturnCause | 'doubtful';
  after: number | null;
  by: number;
}

export interface PlatformOptOuts {
  /** By what is recorded, of parts that are kept equal. */
  recorded(row: Pick<RecordedRow, 'body' | 'seenAt'>, facts: PlatformFacts): PlatformOptOut[];
  /** By what the ledger remembers; undefined: that is not how somebody left. */
  remembered(entry: Entry, facts: PlatformFacts): PlatformOptOut | undefined;
  /** Whether a record of the source says the same by itself: then it needs no telling. */
  saysSo(row: DesiredRow, out: PlatformOptOut): boolean;
  /** Whether what a record of the source says is newer, where that may count for more. */
  isNewer(row: DesiredRow, out: PlatformOptOut): boolean;
}
