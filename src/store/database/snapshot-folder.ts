/** Creates the folder of a snapshot, and moves damaged files there out of the way. */
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  statfsSync,
  statSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { Invalid } from '../../domain/errors.ts';

/**
 * Creates the folder of the file at `path`, and its parent folders. It creates one at a time,
 * because Node's recursive `mkdir` never returns in a file system such as /proc. Throws Invalid if
 * a folder cannot be created.
 */
export function makeFolderOf(path: string): void {
  for (const folder of missingOf(path).toReversed()) make(folder, path);
}

/** Throws Invalid if the folder of the file at `path` cannot be created. Creates nothing. */
export function refuseNoPlace(path: string): void {
  missingOf(path);
}

/**
 * Returns why the file at `path` cannot be created or written, or undefined if it can be. If
 * `isOnlyRead`, a file that exists need not be writable. Looks only at the file and at the
 * innermost folder that exists, and creates nothing.
 */
export function whyNotWritable(
  path: string,
  { isOnlyRead = false }: { isOnlyRead?: boolean } = {},
): string | undefined {
  const isThere = existsSync(path);
  if (isThere && isOnlyRead) return undefined;
  let folder = dirname(path);
  while (!existsSync(folder)) folder = dirname(folder);
  if (!statSync(folder).isDirectory()) return `${folder} is no folder`;
  if (shown.includes(statfsSync(folder).type)) return `no file can be made in ${folder}`;
  if (!isAllowed(folder, constants.W_OK + constants.X_OK)) return `${folder} cannot be written`;
  return isThere && !isAllowed(path, constants.W_OK) ? `${path} cannot be written` : undefined;
}

function isAllowed(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
}

/** The type numbers of file systems in which no file can be created: proc and sysfs. */
const shown: readonly number[] = [0x9fa0, 0x62656572];

/** Returns the missing folders of `path`, innermost first. Throws Invalid. */
function missingOf(path: string): string[] {
  const missing: string[] = [];
  let folder = dirname(path);
  for (; !existsSync(folder); folder = dirname(folder)) missing.push(folder);
  const fix = 'write another path into snapshot';
  if (!statSync(folder).isDirectory()) {
    throw new Invalid(`${path}: ${folder} is no folder`, { fix });
  }
  if (shown.includes(statfsSync(folder).type)) {
    throw new Invalid(`${path}: no file can be made in ${folder}`, { fix });
  }
  return missing;
}

function make(folder: string, path: string): void {
  try {
    mkdirSync(folder);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    // Another process may have created it in the meantime. A dangling link also causes EEXIST.
    if (code === 'EEXIST' && existsSync(folder)) return;
    if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'EIO') throw error;
    throw new Invalid(`${path}: the folder ${folder} cannot be made (${code})`, {
      fix: 'correct the path, or let the user who runs this write there',
    });
  }
}

/**
 * The suffixes of a database's files, in the order in which they are moved. The write-ahead log is
 * moved before the database, because a log left behind would be taken for a part of the next
 * database.
 */
const ends = ['-shm', '-wal', ''];

/**
 * The suffix, after the name of a snapshot, in the name of a damaged snapshot that was moved aside.
 */
export const broken = '.broken-';

/** Returns the files of all damaged snapshots that were moved out of the way of this one. */
export function filesAside(path: string): string[] {
  const folder = dirname(path);
  const names = readdirSync(folder).filter((name) => name.startsWith(basename(path) + broken));
  return names.toSorted().map((name) => join(folder, name));
}

/**
 * Renames a database and the files beside it to the first name (`nameOf` 1, 2, 3 …) that is free
 * for all of them. Returns that name.
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
