/**
 * Creates the certificate of a read: the proof that it was complete, and its validity; and the
 * cursors from which changes are read, each a time and a mark of what was read up to then.
 */
import { Interrupted, isExpected } from '../../domain/errors.ts';
import type { Certificate } from '../source.ts';
import type { Clock } from '../../domain/clock.ts';
import { hash } from 'node:crypto';

/** A reason why a read is not proven to be complete, and how to fix it. */
export interface Flaw {
  why: string;
  fix: string;
  /** Set if a file was not read to its end. */
  isCut?: true;
}

/** Returns the certificate of a read, which is complete if there are no flaws. */
export function certificateOf(reading: string, flaws: readonly Flaw[]): Certificate {
  if (flaws.length === 0) return { complete: true, reading };
  return {
    complete: false,
    reading,
    why: flaws.map(({ why }) => why).join('; '),
    fix: flaws.map(({ fix }) => fix).join('; '),
    ...(flaws.some(({ isCut }) => isCut) && { isCut: true }),
  };
}

/** Adds the cursor from which changes continue, if it is known and the read has its proof. */
export function withCursor(certificate: Certificate, cursor: string | undefined): Certificate {
  return certificate.complete ? { ...certificate, cursor } : certificate;
}

/** Returns the flaw of a read that ended at `where`. Rethrows interruptions, bugs, early errors. */
export function stoppedBy(
  error: unknown,
  { hasBegun, where }: { hasBegun: boolean; where: string },
): Flaw {
  if (!hasBegun || !isExpected(error) || error instanceof Interrupted) throw error;
  const [{ reason, fix = 'read it again' }] = error.problems;
  return { why: `reading stopped ${where}: ${reason}`, fix };
}

/** Returns the flaw for records that could not be read; `what` names one of them. */
export function brokenFlaw(
  what: string,
  { count, first, fix }: { count: number; first: string | undefined; fix: string },
): Flaw {
  const some = count === 1 ? `1 ${what}` : `${count} ${what}s`;
  return { why: `${some} cannot be read, the first at ${first}`, fix };
}

const HOLDS_MS = 15 * 60_000;

/** Remembers the latest read for 15 minutes, for a source that cannot tell of changes. */
export function holding(clock: Clock) {
  let latest: { reading: string; at: number } | undefined;
  return {
    keep: (reading: string) => void (latest = { reading, at: clock.now() }),
    still(reading: string): boolean {
      if (latest?.reading !== reading) return false;
      const ageMs = clock.now() - latest.at;
      return ageMs >= 0 && ageMs < HOLDS_MS;
    },
  };
}

/** Returns 52 bits of a hash. A number takes far less memory than a text. */
export function markOf(text: string): number {
  return Number.parseInt(hash('sha1', text).slice(0, 13), 16);
}

/**
 * Returns the cursors from which the changes after one read are read. A cursor consists of a time
 * and a mark, which is a hash of `what` is read, with this many digits. With other fields,
 * conditions or another account, the mark differs, so every record counts as changed.
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
