/** Splits a lot of work into parts, several at a time or with turns for other tasks in between. */
import type { Clock } from '../../domain/clock.ts';
import { NotSent } from '../../domain/errors.ts';
import type { Snapshot } from '../../store/snapshot.ts';

/**
 * Runs `work` over `items`, at most `width` at a time. After the first failure, including one of
 * the iterator itself, it takes no further items, waits for the running work to end, and throws
 * that failure.
 */
export async function each<T>(
  items: Iterable<T> | AsyncIterable<T>,
  width: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const failures: unknown[] = [];
  const rest: Iterator<T> | AsyncIterator<T> =
    Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
  const takeAll = async (): Promise<void> => {
    try {
      while (failures.length === 0) {
        const next = await rest.next();
        if (next.done) return;
        await work(next.value);
      }
    } catch (error) {
      failures.push(error);
    }
  };
  // Each worker takes the next item when it is ready, which costs less than tracking every promise.
  await Promise.all(Array.from({ length: width }, takeAll));
  if (failures.length === 0) return;
  await rest.return?.();
  throw failures[0];
}

interface Pausing {
  clock: { sleep(ms: number): Promise<void> };
}

/** Yields parts of short work, and lets other tasks run after each but the last. */
export async function* inTurns<P>({ clock }: Pausing, parts: Iterable<P>): AsyncGenerator<P> {
  for (const part of parts) {
    yield part;
    await clock.sleep(0);
  }
}

/** Yields pages until one is empty. `next` reads the page that follows a row, or the first page. */
export function* pagesOf<Row>(next: (last?: Row) => readonly Row[]): Generator<readonly Row[]> {
  for (let rows = next(); rows.length > 0; rows = next(rows.at(-1))) yield rows;
}

/** Work in steps, for a caller that lets other tasks run between them. */
export type Steps<End = void> = Generator<undefined, End>;

/** Does the work for each part, for a caller that takes the turns. Ends when it returns false. */
export function* eachPart<P>(parts: Iterable<P>, work: (part: P) => boolean | void): Steps {
  for (const part of parts) {
    if (work(part) === false) return;
    yield;
  }
}

/** Repeats short work while it returns true, with other tasks in between. Returns its end. */
export async function untilDone<End>({ clock }: Pausing, work: () => End | true): Promise<End> {
  for (;;) {
    const end = work();
    if (end !== true) return end;
    await clock.sleep(0);
  }
}

// Combines what many changes write at nearly the same time into one transaction. Otherwise, with a
// fast platform, every change would wait for the disk twice.
//
//   a job throws NotSent         it has written nothing yet, and only its promise rejects
//   a job throws anything else   all jobs of the transaction are undone and reject with that error
//   the disk fails               all jobs of the transaction reject

/** Does the work in a transaction shared with other work. Resolves when it is on disk. */
export type GroupCommit = <T>(work: () => T) => Promise<T>;

interface Part {
  /** Does the work. Returns the function that settles its promise once all work is on disk. */
  work(): () => void;
  fail(reason: unknown): void;
}

export function createGroupCommit({ transaction }: Snapshot, clock: Clock): GroupCommit {
  let parts: Part[] = [];

  /** Writes the jobs that arrived in one turn of the event loop, and while the disk was busy. */
  async function write(): Promise<void> {
    await clock.sleep(0);
    const all = parts;
    parts = [];
    try {
      const settled = transaction(() => all.map(({ work }) => work()));
      for (const settle of settled) settle();
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
