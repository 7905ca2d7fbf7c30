/** What keeps a reading from its certificate. */
import type { Certificate } from '../source.ts';

/** Why a reading is not proven to be complete, and how to mend it. */
export interface Flaw {
  why: string;
  fix: string;
}

/** Given when there is no flaw. */
export function certificateOf(reading: string, flaws: readonly Flaw[]): Certificate {
  if (flaws.length === 0) return { complete: true, reading };
  return {
    complete: false,
    reading,
    why: flaws.map(({ why }) => why).join('; '),
    fix: flaws.map(({ fix }) => fix).join('; '),
  };
}

/** With where changes go on after it, where that is known; without proof they do not. */
export function withCursor(certificate: Certificate, cursor: string | undefined): Certificate {
  return certificate.complete ? { ...certificate, cursor } : certificate;
}

/** That some could not be read; `what`: one of them, in the singular. */
export function brokenFlaw(
  what: string,
  { count, first, fix }: { count: number; first: string | undefined; fix: string },
): Flaw {
  const some = count === 1 ? `1 ${what}` : `${count} ${what}s`;
  return { why: `${some} cannot be read, the first at ${first}`, fix };
}
