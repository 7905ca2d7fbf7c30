/** Reads which CRM ids a person has, so that the do-not-contact list can be queried with them. */
import { Interrupted, isExpected, renderProblem } from '../../domain/errors.ts';
import type { Deadlines } from '../../records/capabilities.ts';
import type { Mirror, MirrorPart } from '../context/mirror-context.ts';
import { readSource } from '../read/source-read.ts';
import { beginRun } from '../begin-run.ts';

/** How the source was read. If it was not read, or is not certified, ids may be missing. */
export interface CrmReading {
  read: boolean;
  certified: boolean;
  why: string | null;
}

/**
 * Reads the source so that `identityOf` knows all ids of a person. Returns expected failures.
 * Throws Interrupted, and unexpected errors.
 */
export async function readNames(
  mirror: Mirror,
  part: MirrorPart,
  { signal: stop, abort }: Deadlines,
): Promise<CrmReading> {
  const progress = (): void => undefined;
  const mode = 'fast';
  const { run } = beginRun(mirror, {
    mode,
    writes: false,
    only: 'contacts',
    stop,
    abort,
    progress,
  });
  try {
    const certificate = await readSource(run, part);
    if (certificate.complete) return { read: true, certified: true, why: null };
    return {
      read: true,
      certified: false,
      why: renderProblem({ reason: certificate.why, fix: certificate.fix }),
    };
  } catch (error) {
    if (!isExpected(error) || error instanceof Interrupted) throw error;
    return { read: false, certified: false, why: error.message };
  }
}
