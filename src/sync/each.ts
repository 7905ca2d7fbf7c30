/**
 * Runs `work` over `items`, at most `width` at a time. The first failure, also of the items, takes
 * no more of them, and is thrown once what is running has ended.
 */
export async function each<T>(
  items: Iterable<T> | AsyncIterable<T>,
  width: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const running = new Set<Promise<void>>();
  const failures: unknown[] = [];
  try {
    for await (const item of items) {
      const task = work(item)
        .catch((error: unknown) => void failures.push(error))
        .finally(() => running.delete(task));
      running.add(task);
      if (running.size >= width) await Promise.race(running);
      if (failures.length > 0) break;
    }
  } catch (error) {
    failures.push(error);
  }
  await Promise.all(running);
  if (failures.length > 0) throw failures[0];
}
