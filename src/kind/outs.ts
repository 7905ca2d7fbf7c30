/** Who left by themselves, for the source to be told; pure. */
import type { Entry } from '../model/ledger.ts';
import type { DesiredRow, RecordedRow } from '../model/record.ts';
import type { ReturnCause } from '../model/returned.ts';

/** One way out that the platform knows of, and not from us. Times in milliseconds. */
export interface Out {
  /** '*': all of them. */
  channel: string;
  cause: ReturnCause;
  after: number | null;
  by: number;
}

export interface Outs {
  /** By what is recorded, of parts that are kept equal. */
  recorded(row: Pick<RecordedRow, 'body' | 'seenAt'>): Out[];
  /** By what the ledger remembers; undefined: that is not how somebody left. */
  remembered(entry: Entry): Out | undefined;
  /** Whether a record of the source says the same by itself: then it needs no telling. */
  saysSo(row: DesiredRow, out: Out): boolean;
  /** Whether what a record of the source says is newer, where that may count for more. */
  isNewer(row: DesiredRow, out: Out): boolean;
}
