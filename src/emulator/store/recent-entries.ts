/** What happened last: it forgets the oldest, so that memory ends somewhere. */
export interface Recent<T> {
  add(entry: T): void;
  /** Oldest first: all of them, or the last `count`. */
  read(count?: number): T[];
  clear(): void;
}

/** Remembers at least the last `keep` entries. */
export function remember<T>(keep: number): Recent<T> {
  const entries: T[] = [];
  return {
    add(entry) {
      // Dropping half at a time makes an addition cheap on average.
      if (entries.length >= keep * 2) entries.splice(0, keep);
      entries.push(entry);
    },
    read: (count = entries.length) => entries.slice(Math.max(0, entries.length - count)),
    clear: () => void entries.splice(0),
  };
}
