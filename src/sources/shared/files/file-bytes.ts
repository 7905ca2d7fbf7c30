/** The bytes of a file, and what makes it unreadable. */
import { type FileHandle, open } from 'node:fs/promises';
import { Invalid, Unavailable } from '../../../domain/errors.ts';
import { readSmallFile } from '../../../domain/values/config-file.ts';

export const CHUNK_BYTES = 64 * 1024;

/** Open for reading; the caller closes it. Throws what `unreadable` makes of an error. */
export async function opened(path: string): Promise<FileHandle> {
  return open(path, 'r').catch((error: unknown) => {
    throw unreadable(path, error);
  });
}

/** The text of a file that holds one small thing. Throws what `unreadable` makes of an error. */
export function smallText(path: string): string {
  try {
    return readSmallFile(path).toString('utf8');
  } catch (error) {
    throw unreadable(path, error);
  }
}

/** The bytes in chunks that are full up to the last one; a chunk is never written to again. */
export async function* chunksOf(
  handle: FileHandle,
  { path, signal }: { path: string; signal: AbortSignal },
): AsyncGenerator<Buffer> {
  for (let position = 0; ; position += CHUNK_BYTES) {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    let length = 0;
    while (length < CHUNK_BYTES) {
      signal.throwIfAborted();
      const { bytesRead } = await handle
        .read(chunk, length, CHUNK_BYTES - length, position + length)
        .catch((error: unknown) => {
          throw unreadable(path, error);
        });
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    if (length > 0) yield chunk.subarray(0, length);
    if (length < CHUNK_BYTES) return;
  }
}

const REASONS = new Map([
  ['ENOENT', 'there is no such {what}; put it there or correct the path in the configuration'],
  ['ENOTDIR', 'a part of the path is no directory; correct the path in the configuration'],
  ['EISDIR', 'this is a directory; name a file in the configuration'],
  ['EACCES', 'reading it is not permitted; let the user who runs this read it'],
  ['EPERM', 'reading it is not permitted; let the user who runs this read it'],
  ['ELOOP', 'the symbolic links lead in a circle; mend the link'],
  ['EFBIG', 'it holds more than 1 MiB; name the right file in the configuration'],
  ['ENAMETOOLONG', 'the path is too long; correct it in the configuration'],
]);

/** What an error of the file system means: Invalid when only a person can mend it. */
export function unreadable(path: string, error: unknown, what = 'file'): unknown {
  if (!(error instanceof Error && 'code' in error && 'syscall' in error)) return error;
  const reason = REASONS.get(String(error.code));
  if (reason !== undefined) return new Invalid(`${path}: ${reason.replace('{what}', what)}`);
  return new Unavailable(`${path}: the ${what} cannot be read now (${String(error.code)})`, {
    acted: 'no',
    cause: error,
  });
}
