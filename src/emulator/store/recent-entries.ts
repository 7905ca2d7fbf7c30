/** Holds the most recent entries of a list. Older entries are dropped to limit memory use. */
export interface Recent<T> {
  add(entry: T): void;
  /** Returns all entries, or the last `count`, oldest first. */
  read(count?: number): T[];
  clear(): void;
}

/** Creates a list that remembers at least the last `keep` entries. */
export function remember<T>(keep: number): Recent<T> {
  const entries: T[] = [];
  return {
    add(entry) {
      // Dropping half of the entries at a time makes an addition cheap on average.
      if (entries.length >= keep * 2) entries.splice(0, keep);
      entries.push(entry);
    },
    read: (count = entries.length) => entries.slice(Math.max(0, entries.length - count)),
    clear: () => void entries.splice(0),
  };
}
