/** What a run has read of the source, as its staging tables hold it. */
import type { DesiredRow, Key, RecordTypeName } from '../../domain/record.ts';
import type { KeyRange } from '../database/key-range.ts';

/**
 * What one run has read of a source. Of most people it says one of a few things: such a form is
 * kept once, and every record names it.
 */
export interface Desired {
  /** The `nth` record of the reading and those that follow; they count once they are sorted in. */
  addDesired(rows: Iterable<DesiredRow>, nth: number): void;
  /**
   * Sorts in what was added, for each range of its keys and once what has none. Of very many at a
   * time: then a page of the table is written once for several of them.
   */
  sortIn(kind: RecordTypeName, range: KeyRange | 'keyless'): void;
  /** Before that, and when all of it was sorted in. */
  beginSorting(): void;
  endSorting(): void;
  /**
   * Notes which records stand under an id that was never seen with this key: every other one is
   * found by that. First of all, for each range of keys, and once for those without a key.
   */
  noteStrange(kind: RecordTypeName, range: KeyRange | 'keyless'): void;
  /** Finds ids under which several addresses stand, unreadable ones included; by ranges of ids. */
  findSharedIds(kind: RecordTypeName, range: KeyRange): void;
  /** All records of the ids that were found are invalid. */
  invalidateSharedIds(kind: RecordTypeName, fault: { reason: string; fix: string }): void;
  /**
   * An invalid record stands under every key its id was last seen with as well: it is nobody who
   * left. Where it names somebody itself, a key that has a record of its own is left to that. These
   * follow the `count` records of the reading.
   */
  nameByOrigin(kind: RecordTypeName, count: number): void;
  /** Drops the records that have no address and were never known, and answers how many. */
  skipUnknown(kind: RecordTypeName): number;
  /** Recorded people of whom every record that is there has no address. */
  countAddressless(kind: RecordTypeName): number;
  desired(kind: RecordTypeName, key: Key): DesiredRow[];
  /** The ids of these records, each once; of those that have none, none. */
  idsOf(kind: RecordTypeName, key: Key): string[];
  /** The keys that records of these ids stand under. */
  keysOf(kind: RecordTypeName, ids: readonly string[]): Key[];
  /** Keys that have a valid record, and of these the ones that want something. */
  countDesired(kind: RecordTypeName, range: KeyRange): { valid: number; wanted: number };
  countInvalid(kind: RecordTypeName): number;
  /** Invalid records, in the order they were read, each once, after row `after`. */
  invalid(kind: RecordTypeName, after: number, count: number): (DesiredRow & { row: number })[];
  forgetDesired(kind: RecordTypeName): void;
  /** A stage came to nothing, and forms with it that were known by heart. */
  clearForms(): void;
}
