/** The proof that a read was complete, its validity, and the cursors of changes. */
import { Interrupted, isExpected } from '../../domain/errors.ts';
import type { Certificate } from '../source.ts';
import type { Clock } from '../../domain/clock.ts';
import { hash } from 'node:crypto';
import { counted } from '../../domain/values/counted.ts';

/** A reason why a read is not proven to be complete, and how to fix it. */
export interface Flaw {
  why: string;
  fix: string;
  isCut?: true;
}

/** Returns the certificate of a read, which is complete if there are no flaws. */
export function certificateOf(
  reading: string,
  flaws: readonly Flaw[],
  more: { cursor?: string | undefined } = {},
): Certificate {
  if (flaws.length === 0) return { complete: true, reading, ...more };
  return {
    complete: false,
    reading,
    why: flaws.map(({ why }) => why).join('; '),
    fix: flaws.map(({ fix }) => fix).join('; '),
    ...(flaws.some(({ isCut }) => isCut) && { isCut: true }),
  };
}

/** Returns the flaw of a read that ended at `where`. Rethrows interruptions, bugs, early errors. */
export function stoppedBy(error: unknown, hasBegun: boolean, where: string): Flaw {
  if (!hasBegun || !isExpected(error) || error instanceof Interrupted) throw error;
  const [{ reason, fix = 'read it again' }] = error.problems;
  return { why: `reading stopped ${where}: ${reason}`, fix };
}

/** Returns the flaw of records that could not be read, if any: how many, and where the first is. */
export function brokenFlaws(what: string, count: number, first = '', fix = ''): Flaw[] {
  if (count === 0) return [];
  return [{ why: `${counted(count, what)} cannot be read, the first at ${first}`, fix }];
}

const HOLDS_MS = 15 * 60_000;

/** Remembers the latest read for 15 minutes, for a source that cannot tell of changes. */
export function holding(clock: Clock) {
  const ends = new Map<string, number>();
  return {
    /** Notes a read that has ended; `isBeside`: the reads before it stay valid. */
    keep(reading: string, isBeside = false): void {
      if (!isBeside) ends.clear();
      ends.set(reading, clock.now());
    },
    still(reading: string): boolean {
      const ageMs = clock.now() - (ends.get(reading) ?? Number.NaN);
      return ageMs >= 0 && ageMs < HOLDS_MS;
    },
  };
}

/** Returns 52 bits of a hash. A number takes far less memory than a text. */
export function markOf(text: string): number {
  return Number.parseInt(hash('sha1', text).slice(0, 13), 16);
}

/**
 * Returns the cursors of the changes after a read: a time and this many digits of a hash of `what`
 * is read. With other fields, conditions or another account, every record counts as changed.
 */
export function markedCursors(what: readonly unknown[], digits: number) {
  const mark = hash('sha256', JSON.stringify(what)).slice(0, digits);
  return {
    at: (time: string) => `${time} ${mark}`,
    /** Returns the time in a cursor, or undefined if the cursor was made for other settings. */
    timeIn(cursor: string): string | undefined {
      const [time, of, ...more] = cursor.split(' ');
      return of === mark && more.length === 0 ? time : undefined;
    },
  };
}
