/** Declares how a record type tells whether the platform still shows what was written. */
import type { CanaryBound } from '../domain/guards/canary.ts';
import type { Change } from '../domain/change.ts';
import type { ObservedRow, RecordedRow } from '../domain/record.ts';

/** An acknowledged change of an earlier run. */
interface DoneBefore extends Pick<Change, 'op' | 'part'> {
  target: string | null;
}

/** What the platform shows of a record now, and what is recorded for it. */
interface ShownNow {
  rows: readonly ObservedRow[];
  recorded: RecordedRow | undefined;
}

/**
 * Returns what is wrong with what the platform shows some time after a change; undefined if it
 * shows the change. It is pure.
 */
export type ReadBack = (change: DoneBefore, now: ShownNow) => CanaryBound | undefined;
