/** Files that hold one small thing: a key, a password, a configuration. */
import { closeSync, openSync, readSync } from 'node:fs';

/** Far more than any of them needs. */
const mostBytes = 1024 * 1024;

/**
 * The bytes of the file at `path`. Reads at most a mebibyte, so that a device which never ends ends
 * here; throws an error with the code EFBIG for more, and what the file system throws.
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
