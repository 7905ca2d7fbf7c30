import { existsSync, readdirSync, renameSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

/**
 * The file itself last: what was written last must not stay behind, and be taken for a part of the
 * next one.
 */
const ends = ['-shm', '-wal', ''];

/** After the name of a snapshot, in that of one that was put out of its way. */
export const broken = '.broken-';

/** The files of every damaged snapshot that was put out of the way of this one, and is there. */
export function filesAside(path: string): string[] {
  const folder = dirname(path);
  const names = readdirSync(folder).filter((name) => name.startsWith(basename(path) + broken));
  return names.toSorted().map((name) => join(folder, name));
}

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
