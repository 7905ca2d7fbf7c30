/**
 * Splits a lot of work into parts: several at a time, or one after the other with pauses for other
 * tasks.
 */
import type { KeyRange } from '../../snapshot/database/key-range.ts';
import type { RunContext } from './run-context.ts';

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
  const rest = restOf(items);
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

function restOf<T>(items: Iterable<T> | AsyncIterable<T>): Iterator<T> | AsyncIterator<T> {
  return Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
}

/** Does the work for each range and yields to other tasks in between. Each piece must be short. */
export async function forEachRange(
  { clock }: Pick<RunContext, 'clock'>,
  ranges: Iterable<KeyRange>,
  work: (range: KeyRange) => void,
): Promise<void> {
  for (const _ of eachRange(ranges, work)) await clock.sleep(0);
}

/** Like `forEachRange`, for a caller that decides when to yield. */
export function* eachRange(
  ranges: Iterable<KeyRange>,
  work: (range: KeyRange) => void,
): Generator<undefined> {
  for (const range of ranges) {
    work(range);
    yield;
  }
}

/**
 * Repeats the work until it returns false, and yields in between. Each repetition must be short.
 */
export async function untilDone(
  { clock }: Pick<RunContext, 'clock'>,
  work: () => boolean,
): Promise<void> {
  while (work()) await clock.sleep(0);
}
