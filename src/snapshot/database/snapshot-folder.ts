/** The folder that a snapshot lies in. */
import { existsSync, mkdirSync, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { Invalid } from '../../domain/errors.ts';

/**
 * Makes the folder of the file at `path`, and those above it. Step by step: Node's own way of
 * making all of them at once never ends where the file system says that there is nothing (/proc).
 * Throws Invalid when one cannot be made.
 */
export function makeFolderOf(path: string): void {
  for (const folder of missingOf(path).toReversed()) make(folder, path);
}

/** Throws Invalid where the folder of the file at `path` can never be; makes nothing. */
export function refuseNoPlace(path: string): void {
  missingOf(path);
}

/** File systems in which nobody makes a file, by their number: proc and sysfs. */
const shown: readonly number[] = [0x9fa0, 0x62656572];

/** The folders of `path` that there are not, from the innermost outwards. Throws Invalid. */
function missingOf(path: string): string[] {
  const missing: string[] = [];
  let folder = dirname(path);
  for (; !existsSync(folder); folder = dirname(folder)) missing.push(folder);
  const fix = 'write another path into snapshot';
  if (!statSync(folder).isDirectory())
    throw new Invalid(`${path}: ${folder} is no folder → ${fix}`);
  if (shown.includes(statfsSync(folder).type)) {
    throw new Invalid(`${path}: no file can be made in ${folder} → ${fix}`);
  }
  return missing;
}

function make(folder: string, path: string): void {
  try {
    mkdirSync(folder);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    // Another process may have made it meanwhile; a link that leads nowhere is there, too.
    if (code === 'EEXIST' && existsSync(folder)) return;
    if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'EIO') throw error;
    throw new Invalid(
      `${path}: the folder ${folder} cannot be made (${code}) → correct the path, or let the user who runs this write there`,
    );
  }
}
