/**
 * Reads files on this machine: their bytes, their versions, and the reason why a file cannot be
 * read.
 */
import { type FileHandle, open, stat } from 'node:fs/promises';
import { Busy, Invalid, Unavailable } from '../../../domain/errors.ts';
import { readSmallFile } from '../../../domain/values/config-file.ts';
import { type Stats, statSync } from 'node:fs';
import type { Clock } from '../../../domain/clock.ts';
import type { Flaw } from '../read-certificate.ts';
import type { Origin } from './origin.ts';

export const CHUNK_BYTES = 64 * 1024;

/** Opens a file for reading. The caller closes it. Throws the errors that `unreadable` returns. */
async function opened(path: string): Promise<FileHandle> {
  return open(path, 'r').catch((error: unknown) => {
    throw unreadable(path, error);
  });
}

/** Returns the text of a small file. Throws the errors that `unreadable` returns. */
export function smallText(path: string): string {
  try {
    return readSmallFile(path).toString('utf8');
  } catch (error) {
    throw unreadable(path, error);
  }
}

/** Yields the bytes in chunks. All but the last are full, and a chunk is never written to again. */
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

/**
 * Converts a file system error into an error of this project, which is Invalid if only a person can
 * fix it.
 */
export function unreadable(path: string, error: unknown, what = 'file'): unknown {
  if (!(error instanceof Error && 'code' in error && 'syscall' in error)) return error;
  const reason = REASONS.get(String(error.code));
  if (reason !== undefined) return new Invalid(`${path}: ${reason.replace('{what}', what)}`);
  return new Unavailable(`${path}: the ${what} cannot be read now (${String(error.code)})`, {
    acted: 'no',
    cause: error,
  });
}

const QUIET_MS = 2_000;

const WAIT_MS = 60_000;

/** Identifies a version of a file. */
interface FileState {
  size: number;
  mtimeMs: number;
  ino: number;
}

/** Returns whether two states describe the same version. */
function sameState(a: FileState | undefined, b: FileState | undefined): boolean {
  return a?.size === b?.size && a?.mtimeMs === b?.mtimeMs && a?.ino === b?.ino;
}

/**
 * Waits until the file has not been written for two seconds, and returns its state. Throws Busy
 * after a minute, and Invalid if there is no readable file. If the modification time is far in the
 * future, two equal states two seconds apart are sufficient proof.
 */
async function settled(
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
      throw new Busy(`${path}: the file is still being written`, {
        fix: 'run again when it is done',
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

/**
 * Returns the state of the file behind a path or a handle, or undefined if the file no longer
 * exists.
 */
async function stateOf(file: FileHandle | string): Promise<FileState | undefined> {
  const stats = typeof file === 'string' ? stat(file) : file.stat();
  return stats.then(pick, () => undefined);
}

/** Returns the same state synchronously. */
function stateNow(path: string): FileState | undefined {
  try {
    return pick(statSync(path));
  } catch {
    return undefined;
  }
}

function pick({ size, mtimeMs, ino }: Stats): FileState {
  return { size, mtimeMs, ino };
}

/**
 * Returns the name of a read. Two files of the same size and time give the same name, wherever they
 * are stored.
 */
function readingOf({ size, mtimeMs }: FileState): string {
  return `${size}-${mtimeMs}`;
}

/**
 * Returns whether the file still has the state `latest` and that state was read under the name
 * `reading`.
 */
function isStill(path: string, latest: FileState | undefined, reading: string): boolean {
  const isLatest = latest !== undefined && readingOf(latest) === reading;
  return isLatest && sameState(stateNow(path), latest);
}

/** One version of a local file, opened for reading. The caller closes the handle. */
interface OpenedFile {
  handle: FileHandle;
  size: number;
  /** The name of the read. */
  reading: string;
  /** Returns a flaw if the file is no longer the same. */
  flaws(): Promise<Flaw[]>;
}

/** A local file that is opened again for each read. */
interface LocalFile {
  /**
   * Opens the current version. If the file is still being written, waits up to a minute. Throws
   * Busy or Invalid.
   */
  open(signal: AbortSignal): Promise<OpenedFile>;
  /** Works like `still` of a source. */
  still(reading: string): boolean;
}

/** Returns the local file at a path. */
export function localFile(path: string, clock: Clock): LocalFile {
  let latest: FileState | undefined;
  return {
    async open(signal) {
      const before = await settled(path, { clock, signal });
      latest = before;
      const handle = await opened(path);
      return {
        handle,
        size: before.size,
        reading: readingOf(before),
        async flaws() {
          const after = [await stateOf(handle), await stateOf(path)];
          if (after.every((state) => sameState(state, before))) return [];
          return [{ why: 'the file changed while it was read', fix: 'read it again' }];
        },
      };
    },
    still: (reading) => isStill(path, latest, reading),
  };
}

/** Returns the origin of a local file. The file is read again each time. */
export function fileOrigin(path: string, clock: Clock): Origin {
  const file = localFile(path, clock);
  return {
    name: path,
    isPacked: /\.gz$/i.test(path),
    async open(signal) {
      const { handle, size, reading, flaws } = await file.open(signal);
      let count = 0;
      async function* bytes() {
        for await (const chunk of chunksOf(handle, { path, signal })) {
          count += chunk.length;
          yield chunk;
        }
      }
      return {
        reading,
        size,
        bytes: bytes(),
        async flaws(whole) {
          const changed = await flaws();
          return changed.length === 0 && whole ? shortFlaws(count, size) : changed;
        },
        close: () => handle.close(),
      };
    },
    still: file.still,
  };
}

function shortFlaws(count: number, size: number): Flaw[] {
  if (count === size) return [];
  return [{ why: `${count} of ${size} bytes were read`, fix: 'read it again' }];
}
