/**
 * Creates the certificate of a read: the proof that it was complete, and how long it stays valid.
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

/**
 * Adds the cursor from which changes continue after the read, if it is known. A read without proof
 * gets no cursor.
 */
export function withCursor(certificate: Certificate, cursor: string | undefined): Certificate {
  return certificate.complete ? { ...certificate, cursor } : certificate;
}

/**
 * Returns the flaw of a read that an error ended at `where`. Rethrows the error if nothing was read
 * before it, if it is an interruption, and if it is a bug.
 */
export function stoppedBy(
  error: unknown,
  { hasBegun, where }: { hasBegun: boolean; where: string },
): Flaw {
  if (!hasBegun || !isExpected(error) || error instanceof Interrupted) throw error;
  const [{ reason, fix = 'read it again' }] = error.problems;
  return { why: `reading stopped ${where}: ${reason}`, fix };
}

/**
 * Returns the flaw for records that could not be read; `what` names one such record in the
 * singular.
 */
export function brokenFlaw(
  what: string,
  { count, first, fix }: { count: number; first: string | undefined; fix: string },
): Flaw {
  const some = count === 1 ? `1 ${what}` : `${count} ${what}s`;
  return { why: `${some} cannot be read, the first at ${first}`, fix };
}

const HOLDS_MS = 15 * 60_000;

/**
 * Remembers the latest read for a quarter of an hour, for a source that cannot report whether it
 * has changed.
 */
export function holding(clock: Clock): {
  keep(reading: string): void;
  still(reading: string): boolean;
} {
  let latest: { reading: string; at: number } | undefined;
  return {
    keep: (reading) => void (latest = { reading, at: clock.now() }),
    still(reading) {
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
