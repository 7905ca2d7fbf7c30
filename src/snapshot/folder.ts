/** The folder that a snapshot lies in. */
import { existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { Invalid } from '../model/errors.ts';

/**
 * Makes the folder of the file at `path`, and those above it. Step by step: Node's own way of
 * making all of them at once never ends where the file system says that there is nothing (/proc).
 * Throws Invalid when one cannot be made.
 */
export function makeFolderOf(path: string): void {
  const missing: string[] = [];
  for (let folder = dirname(path); !existsSync(folder); folder = dirname(folder)) {
    missing.push(folder);
  }
  for (const folder of missing.toReversed()) make(folder, path);
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
