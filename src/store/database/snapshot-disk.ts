/**
 * Tells the folders of snapshots apart. Each has an id in a file of its own: machines that mount
 * the same folder read the same id, and folders on local disks have different ones.
 */
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolderOf } from './snapshot-folder.ts';

type RandomHex = (bytes: number) => string;

const idFile = '.crm-mirror-disk';
const idPattern = /^[0-9a-f]{16}$/;

/**
 * Returns the id of the folder. Creates the folder and its id if there is none; of several
 * processes that do so at once, all return the same id. Returns undefined if that is not possible.
 * `randomHex` returns random bytes as hexadecimal digits.
 */
export function diskOf(folder: string, randomHex: RandomHex): string | undefined {
  const file = join(folder, idFile);
  try {
    makeFolderOf(file);
    return idIn(file) ?? create(file, randomHex(8));
  } catch {
    return undefined;
  }
}

function idIn(file: string): string | undefined {
  try {
    const text = readFileSync(file, 'utf8').trim();
    return idPattern.test(text) ? text : undefined;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** Creates the file with its whole content at once, unless another process was faster. */
function create(file: string, id: string): string | undefined {
  const part = `${file}.${id}`;
  writeFileSync(part, `${id}\n`, { flag: 'wx' });
  try {
    linkSync(part, file);
  } catch (error) {
    // A file system without links, or a file without an id. The next survey reads the last one.
    if (codeOf(error) !== 'EEXIST' || idIn(file) === undefined) renameSync(part, file);
  } finally {
    rmSync(part, { force: true });
  }
  return idIn(file);
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}
