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
