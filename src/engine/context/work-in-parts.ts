/** Does much work in parts: several at a time, or one after the other with turns for others. */
import type { KeyRange } from '../../snapshot/database/key-range.ts';
import type { RunContext } from './run-context.ts';

/**
 * Runs `work` over `items`, at most `width` at a time. The first failure, also of the items, takes
 * no more of them, and is thrown once what is running has ended.
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
  // Whoever is ready takes the next one: to watch all that run would cost more than they do.
  await Promise.all(Array.from({ length: width }, takeAll));
  if (failures.length === 0) return;
  await rest.return?.();
  throw failures[0];
}

function restOf<T>(items: Iterable<T> | AsyncIterable<T>): Iterator<T> | AsyncIterator<T> {
  return Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
}

/** Does a part of the work, which must be short, for each range; others have their turn between. */
export async function forEachRange(
  { clock }: Pick<RunContext, 'clock'>,
  ranges: Iterable<KeyRange>,
  work: (range: KeyRange) => void,
): Promise<void> {
  for (const _ of eachRange(ranges, work)) await clock.sleep(0);
}

/** The same in steps, between which others have their turn if who takes them gives it. */
export function* eachRange(
  ranges: Iterable<KeyRange>,
  work: (range: KeyRange) => void,
): Generator<undefined> {
  for (const range of ranges) {
    work(range);
    yield;
  }
}

/** Does a part of the work, as short, until it answers that nothing is left. */
export async function untilDone(
  { clock }: Pick<RunContext, 'clock'>,
  work: () => boolean,
): Promise<void> {
  while (work()) await clock.sleep(0);
}
