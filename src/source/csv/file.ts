/** A file on disk: whether it is still being written, its bytes, and what makes it unreadable. */
import type { Stats } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import type { Clock } from '../../model/clock.ts';
import { Invalid, Unavailable } from '../../model/errors.ts';

const CHUNK_BYTES = 64 * 1024;
const QUIET_MS = 2_000;
const WAIT_MS = 60_000;

/** What tells one version of a file from another. */
export interface FileState {
  size: number;
  mtimeMs: number;
  ino: number;
}

export function sameState(a: FileState | undefined, b: FileState | undefined): boolean {
  return a?.size === b?.size && a?.mtimeMs === b?.mtimeMs && a?.ino === b?.ino;
}

/**
 * The state of the file once nobody has written to it for two seconds. Throws Unavailable after a
 * minute, Invalid when there is no readable file. A modification time far in the future says
 * nothing: there, two equal looks two seconds apart are the proof.
 */
export async function settled(
  path: string,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Promise<FileState> {
  const until = clock.monotonic() + WAIT_MS;
  let previous: FileState | undefined;
  for (;;) {
    signal.throwIfAborted();
    const state = await look(path);
    const ageMs = clock.now() - state.mtimeMs;
    const unchanged = previous !== undefined && sameState(previous, state);
    if (ageMs >= QUIET_MS && (previous === undefined || unchanged)) return state;
    if (ageMs < -QUIET_MS && unchanged) return state;
    if (clock.monotonic() >= until) {
      throw new Unavailable(`${path}: the file is still being written; run again when it is done`, {
        acted: 'no',
      });
    }
    previous = state;
    const restMs = ageMs < QUIET_MS ? QUIET_MS - ageMs : QUIET_MS;
    await clock.sleep(Math.ceil(Math.min(restMs, QUIET_MS)), signal);
  }
}

async function look(path: string): Promise<FileState> {
  const stats = await stat(path).catch((error: unknown) => {
    throw unreadable(path, error);
  });
  if (!stats.isFile()) {
    const what = stats.isDirectory() ? 'a directory' : 'not a regular file';
    throw new Invalid(`${path}: this is ${what}; name a file in the configuration`);
  }
  return pick(stats);
}

/** The state of the file behind a path or a handle; undefined when it is gone. */
export async function stateOf(file: FileHandle | string): Promise<FileState | undefined> {
  const stats = typeof file === 'string' ? stat(file) : file.stat();
  return stats.then(pick, () => undefined);
}

function pick({ size, mtimeMs, ino }: Stats): FileState {
  return { size, mtimeMs, ino };
}

export async function opened(path: string): Promise<FileHandle> {
  return open(path, 'r').catch((error: unknown) => {
    throw unreadable(path, error);
  });
}

/** The bytes in chunks that are full up to the last one; a chunk is never written to again. */
export async function* chunksOf(
  handle: FileHandle,
  { path, signal }: { path: string; signal: AbortSignal },
): AsyncGenerator<Buffer> {
  for (;;) {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    let length = 0;
    while (length < CHUNK_BYTES) {
      signal.throwIfAborted();
      const { bytesRead } = await handle.read(chunk, length).catch((error: unknown) => {
        throw unreadable(path, error);
      });
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    signal.throwIfAborted();
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
