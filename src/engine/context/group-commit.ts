/**
 * What many changes write at nearly the same time goes to disk as one transaction: else a fast
 * platform waits for the disk, twice for every change.
 *
 *   the work throws Held        it has written nothing yet, and rejects alone
 *   it throws anything else     all of them are undone, and reject with it
 *   the disk refuses            so do they
 */
import type { Clock } from '../../domain/clock.ts';
import { Held } from '../../domain/errors.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';

/** Does it within a transaction that others share; on disk when it resolves. */
export type GroupCommit = <T>(work: () => T) => Promise<T>;

interface Part {
  /** Answers how to tell what came of it, once all are on disk. */
  work(): () => void;
  fail(reason: unknown): void;
}

export function createGroupCommit(
  { transaction }: Pick<Snapshot, 'transaction'>,
  clock: Clock,
): GroupCommit {
  let parts: Part[] = [];

  /** Those that come in the same turn of the event loop, and while the disk was busy. */
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
            if (!(error instanceof Held)) throw error;
            return () => reject(error);
          }
        },
        fail: reject,
      });
      if (parts.length === 1) write().catch(reject);
    });
}
