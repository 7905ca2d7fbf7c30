/**
 * Combines what many changes write at nearly the same time into one transaction. Otherwise, with a
 * fast platform, every change would wait for the disk twice.
 *
 *   a job throws NotSent         it has written nothing yet, and only its promise rejects
 *   a job throws anything else   all jobs of the transaction are undone and reject with that error
 *   the disk fails               all jobs of the transaction reject
 */
import type { Clock } from '../../domain/clock.ts';
import { NotSent } from '../../domain/errors.ts';
import type { Snapshot } from '../../store/snapshot.ts';

/** Does the work in a transaction shared with other work. Resolves when it is on disk. */
export type GroupCommit = <T>(work: () => T) => Promise<T>;

interface Part {
  /** Does the work. Returns the function that settles its promise once all work is on disk. */
  work(): () => void;
  fail(reason: unknown): void;
}

export function createGroupCommit(
  { transaction }: Pick<Snapshot, 'transaction'>,
  clock: Clock,
): GroupCommit {
  let parts: Part[] = [];

  /** Writes the jobs that arrived in one turn of the event loop, and while the disk was busy. */
  async function write(): Promise<void> {
    await clock.sleep(0);
    const all = parts;
    parts = [];
    try {
      const told = transaction(() => all.map(({ work }) => work()));
      for (const tell of told) tell();
    } catch (error) {
      for (const { fail } of all) fail(error);
    }
  }

  return async (work) =>
    new Promise((resolve, reject) => {
      parts.push({
        work() {
          try {
            const done = work();
            return () => resolve(done);
          } catch (error) {
            if (!(error instanceof NotSent)) throw error;
            return () => reject(error);
          }
        },
        fail: reject,
      });
      if (parts.length === 1) write().catch(reject);
    });
}
