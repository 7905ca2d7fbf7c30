/** Creates the folder of a snapshot, and moves damaged files there out of the way. */
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  statfsSync,
  statSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { codeOf, Invalid } from '../../domain/errors.ts';

/**
 * Creates the folders of the file at `path`, one at a time: Node's recursive `mkdir` never returns
 * in a file system such as /proc. Throws Invalid.
 */
export function makeFolderOf(path: string): void {
  for (const folder of missingFolders(path).toReversed()) make(folder, path);
}

/**
 * Returns why the file at `path` cannot be created or written, if so. If `isOnlyRead`, a file that
 * exists need not be writable. Creates nothing.
 */
export function whyNotWritable(
  path: string,
  { isOnlyRead = false }: { isOnlyRead?: boolean } = {},
): string | undefined {
  const isThere = existsSync(path);
  if (isThere && isOnlyRead) return undefined;
  let folder = dirname(path);
  while (!existsSync(folder)) folder = dirname(folder);
  const fault = faultOf(folder);
  if (fault !== undefined) return fault;
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

/** Innermost first. Throws Invalid if they cannot be created. */
export function missingFolders(path: string): string[] {
  const missing: string[] = [];
  let folder = dirname(path);
  for (; !existsSync(folder); folder = dirname(folder)) missing.push(folder);
  const fault = faultOf(folder);
  if (fault === undefined) return missing;
  throw new Invalid(`${path}: ${fault}`, { fix: 'write another path into snapshot' });
}

/** Returns why no file can be created in a folder that exists, for every user. */
function faultOf(folder: string): string | undefined {
  if (!statSync(folder).isDirectory()) return `${folder} is no folder`;
  return shown.includes(statfsSync(folder).type) ? `no file can be made in ${folder}` : undefined;
}

function make(folder: string, path: string): void {
  try {
    mkdirSync(folder);
  } catch (error) {
    const code = codeOf(error);
    // Another process may have created it in the meantime. A dangling link also causes EEXIST.
    if (code === 'EEXIST' && existsSync(folder)) return;
    if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'EIO') throw error;
    throw new Invalid(`${path}: the folder ${folder} cannot be made (${code})`, {
      fix: 'correct the path, or let the user who runs this write there',
    });
  }
}

/**
 * The suffixes of a database's files, in the order in which they are moved: a write-ahead log left
 * behind would be taken for a part of the next database.
 */
const ends = ['-shm', '-wal', ''];

export const broken = '.broken-';

/** The damaged snapshots that were moved out of the way of this one. */
export function filesAside(path: string): string[] {
  const folder = dirname(path);
  const names = readdirSync(folder).filter((name) => name.startsWith(basename(path) + broken));
  return names.toSorted().map((name) => join(folder, name));
}

/** Returns the first 100 bytes of a file, fewer if it is shorter: the header of a database. */
export function headerOf(path: string): Buffer {
  const file = openSync(path, 'r');
  try {
    const bytes = Buffer.alloc(100);
    return bytes.subarray(0, readSync(file, bytes));
  } finally {
    closeSync(file);
  }
}

export function hasHeader(header: Buffer): boolean {
  return header.length === 100 && header.toString('latin1').startsWith('SQLite format 3\0');
}

/** Renames a database and the files beside it to the first name (`nameOf` 1, 2 …) that is free. */
export function moveAside(path: string, nameOf: (count: number) => string): string {
  let count = 1;
  while (ends.some((end) => existsSync(nameOf(count) + end))) count += 1;
  const aside = nameOf(count);
  for (const end of ends) {
    if (existsSync(path + end)) renameSync(path + end, aside + end);
  }
  return aside;
}
