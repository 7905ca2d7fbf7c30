import { existsSync, renameSync } from 'node:fs';

/**
 * The file itself last: what was written last must not stay behind, and be taken for a part of the
 * next one.
 */
const ends = ['-shm', '-wal', ''];

/**
 * Renames a database, and what lies beside it, to the first of the names (`nameOf` 1, 2, 3 …) that
 * is free for all of it; answers that name.
 */
export function moveAside(path: string, nameOf: (count: number) => string): string {
  let count = 1;
  while (ends.some((end) => existsSync(nameOf(count) + end))) count += 1;
  const aside = nameOf(count);
  for (const end of ends) {
    if (existsSync(path + end)) renameSync(path + end, aside + end);
  }
  return aside;
}
