/** Files that a configuration names: their location, and the bytes of small ones. */
import { closeSync, openSync, readSync, renameSync, rmSync, writeFileSync } from 'node:fs';

/** Far more than a key, a password or a configuration needs. */
const mostBytes = 1024 * 1024;

/**
 * Returns the bytes of a file, at most one mebibyte, because a device may never end. Throws file
 * system errors, and one with the code EFBIG for a larger file.
 */
export function readSmallFile(path: string): Buffer {
  const file = openSync(path, 'r');
  try {
    const bytes = Buffer.alloc(mostBytes + 1);
    let length = 0;
    while (length <= mostBytes) {
      const read = readSync(file, bytes, length, bytes.length - length, null);
      if (read === 0) return bytes.subarray(0, length);
      length += read;
    }
  } finally {
    closeSync(file);
  }
  const error = new Error(`${path}: holds more than 1 MiB`);
  throw Object.assign(error, { code: 'EFBIG', syscall: 'read', path });
}

/** Writes the whole file (0600), or nothing: it gets its name once it is whole. */
export function writeWhole(path: string, text: string): void {
  const part = `${path}.part`;
  rmSync(part, { force: true });
  try {
    writeFileSync(part, text, { flag: 'wx', mode: 0o600, flush: true });
    renameSync(part, path);
  } finally {
    rmSync(part, { force: true });
  }
}

/** The location of a file that the configuration names. */
export type Place = 'file' | 'address' | 'input';

/** Returns where a path points: `-` is standard input, and a scheme makes a web address. */
export function placeOf(path: string): Place {
  if (path === '-') return 'input';
  return /^[a-z][a-z\d+.-]+:\/\//i.test(path) ? 'address' : 'file';
}
