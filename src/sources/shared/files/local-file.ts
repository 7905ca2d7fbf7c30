/**
 * Reads files on this machine and standard input: their bytes, versions and errors. Both are
 * origins of the bytes of a file, as a web address is (web-file.ts).
 */
import { type FileHandle, open, stat, mkdtemp, rm } from 'node:fs/promises';
import { Busy, Invalid, Unavailable } from '../../../domain/errors.ts';
import { readSmallFile } from '../../../domain/values/config-file.ts';
import { statSync } from 'node:fs';
import type { Clock } from '../../../domain/clock.ts';
import type { Flaw } from '../read-certificate.ts';
import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';

export const CHUNK_BYTES = 64 * 1024;

/** Returns the text of a small file. Throws the errors that `unreadable` returns. */
export function smallText(path: string): string {
  try {
    return readSmallFile(path).toString('utf8');
  } catch (error) {
    throw unreadable(path, error);
  }
}

/** Yields the bytes in chunks. All but the last are full, and a chunk is never written to again. */
async function* chunksOf(
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

/** Returns this project's error for one of the file system; Invalid if only a person can fix it. */
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

interface FileState {
  size: number;
  mtimeMs: number;
  ino: number;
}

function sameState(a: FileState | undefined, b: FileState | undefined): boolean {
  return a?.size === b?.size && a?.mtimeMs === b?.mtimeMs && a?.ino === b?.ino;
}

/**
 * Waits until the file has not been written for two seconds, and returns its state. Throws Busy
 * after a minute, and Invalid if there is no readable file. If the modification time is far in the
 * future, two equal states two seconds apart are sufficient proof.
 */
async function waitUntilQuiet(path: string, clock: Clock, signal: AbortSignal): Promise<FileState> {
  const until = clock.monotonic() + WAIT_MS;
  let previous: FileState | undefined;
  for (;;) {
    signal.throwIfAborted();
    const stats = await stat(path).catch((error: unknown) => {
      throw unreadable(path, error);
    });
    if (!stats.isFile()) {
      const what = stats.isDirectory() ? 'a directory' : 'not a regular file';
      throw new Invalid(`${path}: this is ${what}; name a file in the configuration`);
    }
    const state: FileState = stats;
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

/** Returns the name of a read, the same for files of one size and time anywhere. */
function readingOf({ size, mtimeMs }: FileState): string {
  return `${size}-${mtimeMs}`;
}

export function localFile(path: string, clock: Clock) {
  let latest: FileState | undefined;
  return {
    /** Opens the version of now, after up to a minute of writing. Throws Busy or Invalid. */
    async open(signal: AbortSignal) {
      const before = await waitUntilQuiet(path, clock, signal);
      latest = before;
      const handle = await open(path, 'r').catch((error: unknown) => {
        throw unreadable(path, error);
      });
      return {
        handle,
        size: before.size,
        reading: readingOf(before),
        async flaws(): Promise<Flaw[]> {
          const states = [handle.stat(), stat(path)].map((one) => one.catch(() => undefined));
          const after = await Promise.all(states);
          if (after.every((state) => sameState(state, before))) return [];
          return [{ why: 'the file changed while it was read', fix: 'read it again' }];
        },
      };
    },
    still(reading: string): boolean {
      if (latest === undefined || readingOf(latest) !== reading) return false;
      try {
        return sameState(statSync(path), latest);
      } catch {
        return false;
      }
    },
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
          if (changed.length > 0 || !whole || count === size) return changed;
          return [{ why: `${count} of ${size} bytes were read`, fix: 'read it again' }];
        },
        close: () => handle.close(),
      };
    },
    still: file.still,
  };
}

export interface Origin {
  /** The name for messages: a path or a host. */
  name: string;
  /** Whether the file name indicates compression. */
  isPacked: boolean;
  /** Opens the file. Throws Invalid, Busy or Unavailable if it cannot be read. */
  open(signal: AbortSignal): Promise<Opened>;
  still(reading: string): boolean;
}

/** An opened file. It can be read once, from its first byte to its last. */
export interface Opened {
  reading: string;
  /** The bytes as they are stored. Throws Unavailable if they break off. */
  bytes: AsyncIterable<Buffer>;
  /** The number of stored bytes; undefined if it is not known. */
  size?: number;
  /** Returns the signs that bytes are missing. `whole` states whether they were read to the end. */
  flaws(whole: boolean): Promise<Flaw[]>;
  close(): Promise<void>;
}

const INPUT = 'standard input';

type InputStream = Readable & { isTTY?: boolean };

/**
 * Returns the origin for standard input; `stream` is called at the first read. Because it can be
 * read only once, it is copied into an unnamed temporary file, which only this process can read and
 * which disappears with the process. The copy never changes. Byte-identical input counts as the
 * same read.
 */
export function standardInput(stream: () => InputStream): Origin {
  let spool: ReturnType<typeof spoolInput> | undefined;
  let known: Awaited<typeof spool>;
  return {
    name: INPUT,
    isPacked: false,
    async open(signal) {
      spool ??= spoolInput(stream(), signal);
      known = await spool;
      const { handle, reading, size } = known;
      return {
        reading,
        size,
        bytes: chunksOf(handle, { path: INPUT, signal }),
        flaws: async () => [],
        close: async () => undefined,
      };
    },
    still: (reading) => known?.reading === reading,
  };
}

async function spoolInput(stream: InputStream, signal: AbortSignal) {
  if (stream.isTTY) {
    throw new Invalid(`${INPUT} is a terminal`, { fix: 'pipe the export into it, or name a file' });
  }
  const folder = await mkdtemp(join(tmpdir(), 'crm-mirror-'));
  const opening = open(join(folder, 'input'), 'wx+', 0o600);
  await Promise.allSettled([opening]);
  await rm(folder, { recursive: true });
  const handle = await opening;
  const stop = () => void stream.destroy();
  signal.addEventListener('abort', stop, { once: true });
  try {
    const hash = createHash('sha256');
    let size = 0;
    const chunks: AsyncIterable<Buffer> = stream;
    for await (const chunk of chunks) {
      hash.update(chunk);
      size += chunk.length;
      await handle.write(chunk);
    }
    return { handle, size, reading: `input-${hash.digest('hex').slice(0, 16)}` };
  } catch (error) {
    await handle.close();
    signal.throwIfAborted();
    throw unreadable(INPUT, error);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
