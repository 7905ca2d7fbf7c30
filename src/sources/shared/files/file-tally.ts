/** Counts what happens during the read of a file, and derives the flaws of its certificate. */
import type { SourceRecord } from '../../source.ts';
import { brokenFlaw, type Flaw } from '../read-certificate.ts';

/** The facts gathered during a read. */
export interface FileTally {
  bytes: number;
  /** Whether the last byte read is a line break. */
  lineEnded: boolean;
  /** The number of rows that cannot be read. */
  broken: number;
  firstBroken?: { where: string; fix: string };
  /** Set if the rest of the file was abandoned; this counts as one broken row. */
  stopped?: { where: string; why: string; fix: string };
}

/** Counts a row that cannot be read, and returns its record. */
export function brokenRow(tally: FileTally, where: string, { why, fix }: Flaw): SourceRecord {
  tally.broken += 1;
  tally.firstBroken ??= { where, fix };
  return { where, broken: why, fix };
}

/**
 * Returns the flaws of a read. A file cut off in the middle of a line looks like one that merely
 * lacks its last line break, so the line break is required unless the export never writes one. In
 * that case a last row with a different width counts as broken, like any other row.
 */
export function flawsOf(tally: FileTally, cut: Flaw | undefined, found: readonly Flaw[]): Flaw[] {
  const flaws: Flaw[] = cut ? [{ ...cut, isCut: true }] : [];
  const { stopped, firstBroken } = tally;
  const count = tally.broken - (stopped ? 1 : 0);
  if (stopped) {
    const why = `reading stopped: ${stopped.where} ${stopped.why}`;
    flaws.push({ why, fix: stopped.fix, isCut: true });
  }
  flaws.push(...found);
  if (firstBroken && count > 0) {
    const { where: first, fix } = firstBroken;
    flaws.push(brokenFlaw('row', { count, first, fix }));
  }
  if (!stopped && !cut && !tally.lineEnded) {
    flaws.push({
      why: 'the last line has no line break, so the file may be cut off',
      fix:
        'end the file with a line break, or, where the export never does, ' +
        'set finalNewline: optional in the source',
    });
  }
  return flaws;
}
