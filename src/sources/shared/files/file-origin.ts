/** The origins of a file's bytes: a path, standard input and a web address. */
import { type FileHandle, open, stat, mkdtemp, rm } from 'node:fs/promises';
import { Busy, Invalid, Unavailable } from '../../../domain/errors.ts';
import { readSmallFile } from '../../../domain/values/config-file.ts';
import { statSync } from 'node:fs';
import type { Clock } from '../../../domain/clock.ts';
import { type Flaw, holding } from '../read-certificate.ts';
import { createHash, hash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { download, type Download } from '../../../http/download.ts';
import {
  demandedMs,
  lowerCased,
  outwait,
  refusal,
  retryFreely,
  type Surroundings,
} from '../crm-request.ts';
import type { PlacedOptions } from '../option-fields.ts';

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
        .catch(rethrow(path));
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

/** Returns what throws that error for one of the file system. */
export function rethrow(path: string, what?: string) {
  return (error: unknown): never => {
    throw unreadable(path, error, what);
  };
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
 * Returns the state of a file once it has not been written for two seconds. Throws Busy after a
 * minute, and Invalid if it is not readable. If its time is far in the future, two equal states two
 * seconds apart are proof.
 */
async function waitUntilQuiet(path: string, clock: Clock, signal: AbortSignal): Promise<FileState> {
  const until = clock.monotonic() + WAIT_MS;
  let previous: FileState | undefined;
  for (;;) {
    signal.throwIfAborted();
    const stats = await stat(path).catch(rethrow(path));
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
      const fix = 'run again when it is done';
      throw new Busy(`${path}: the file is still being written`, { fix });
    }
    previous = state;
    const restMs = ageMs < QUIET_MS ? QUIET_MS - ageMs : QUIET_MS;
    await clock.sleep(Math.ceil(Math.min(restMs, QUIET_MS)), signal);
  }
}

/** Returns the origin of a local file. Each time it is opened, its version of now is read. */
export function localFile(path: string, clock: Clock) {
  let latest: FileState | undefined;
  /** The name of a read is the same for files of one size and time anywhere. */
  const readingOf = ({ size, mtimeMs }: FileState) => `${size}-${mtimeMs}`;
  return {
    name: path,
    isPacked: /\.gz$/i.test(path),
    /** Opens the file after up to a minute of writing. Throws Busy or Invalid. */
    async open(signal: AbortSignal): Promise<Opened & { handle: FileHandle }> {
      const before = await waitUntilQuiet(path, clock, signal);
      latest = before;
      const { size } = before;
      const handle = await open(path, 'r').catch(rethrow(path));
      const { bytes, shortOf } = countBytes(chunksOf(handle, { path, signal }));
      return {
        handle,
        reading: readingOf(before),
        size,
        bytes,
        async flaws(whole) {
          const states = [handle.stat(), stat(path)].map((one) => one.catch(() => undefined));
          const after = await Promise.all(states);
          if (after.every((state) => sameState(state, before))) return whole ? shortOf(size) : [];
          return [{ why: 'the file changed while it was read', fix: 'read it again' }];
        },
        close: () => handle.close(),
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

/** Passes bytes on, and tells whether fewer, or more, came than there are. */
function countBytes(chunks: AsyncIterable<Buffer>) {
  let count = 0;
  async function* bytes() {
    for await (const chunk of chunks) {
      count += chunk.length;
      yield chunk;
    }
  }
  const shortOf = (size: number): Flaw[] =>
    count === size ? [] : [{ why: `${count} of ${size} bytes were read`, fix: 'read it again' }];
  return { bytes: bytes(), shortOf };
}

export interface Origin {
  name: string;
  isPacked: boolean;
  /** Opens the file. Throws Invalid, Busy or Unavailable if it cannot be read. */
  open(signal: AbortSignal): Promise<Opened>;
  still(reading: string): boolean;
}

/** An opened file. It can be read once, from its first byte to its last. */
export interface Opened {
  reading: string;
  /** As they are stored. Throws Unavailable if they break off. */
  bytes: AsyncIterable<Buffer>;
  size?: number;
  /** Returns the signs that bytes are missing. `whole` states whether they were read to the end. */
  flaws(whole: boolean): Promise<Flaw[]>;
  close(): Promise<void>;
}

const INPUT = 'standard input';

type InputStream = Readable & { isTTY?: boolean };

/**
 * Returns the origin for standard input; `stream` is called at the first read. As it can be read
 * once, it is copied into an unnamed temporary file, which disappears with this process and never
 * changes. Byte-identical input counts as the same read.
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

// Reads a file from a web address. Its ETag, or the time of its last modification, names the read;
// without either, each is new. As the server cannot tell whether the file changed, a read is valid
// for 15 minutes. If the download breaks off, the records that arrived are kept.

const SILENCE_MS = 30_000;
const mend = { credentials: 'the headers', request: 'path', address: 'path' };

export function addressOrigin(options: PlacedOptions, surroundings: Surroundings): Origin {
  const { clock } = surroundings;
  const { host } = new URL(options.path);
  const { keep, still } = holding(clock);
  return {
    name: host,
    isPacked: false,
    async open(signal) {
      const { headers, body, close } = await fetchFile(options, surroundings, signal);
      const { etag, 'last-modified': modified, 'content-length': length = '' } = headers;
      const ofTime = modified ? `modified-${modified} ${length}`.trim() : `address-${clock.now()}`;
      const reading = etag ? `etag-${hash('sha256', etag).slice(0, 16)}` : ofTime;
      keep(reading);
      const { bytes, shortOf } = countBytes(body);
      const size = length === '' ? undefined : Number(length);
      const isChunked = /\bchunked\b/i.test(headers['transfer-encoding'] ?? '');
      return {
        reading,
        bytes,
        ...(size !== undefined && { size }),
        async flaws(whole) {
          if (!whole) return [];
          if (size !== undefined) return shortOf(size);
          if (isChunked) return [];
          // Without a length or chunks, a response ends wherever the connection does.
          const why = 'the answer does not say how long it is, so it may be cut off';
          return [{ why, fix: 'have the server name its length' }];
        },
        close,
      };
    },
    still,
  };
}

/** Returns the response with the file. The request is repeated only until a response begins. */
async function fetchFile(
  options: PlacedOptions,
  surroundings: Surroundings,
  signal: AbortSignal,
): Promise<Download> {
  const { clock } = surroundings;
  const { host } = new URL(options.path);
  const request = {
    url: options.path,
    timeoutMs: options.timeoutMs ?? SILENCE_MS,
    headers: {
      accept: '*/*',
      ...lowerCased(options.headers),
      'accept-encoding': 'gzip',
      'user-agent': 'crm-mirror',
    },
  };
  const attempt = async () => {
    const once = async () => {
      const found = await download(request, signal);
      if (found.status !== 200) await found.close();
      return found;
    };
    const found = await outwait(once, (one) => demandedMs(one, clock), { host, clock, signal });
    const fault = faultOf(found, host);
    if (!fault) return found;
    await found.close();
    throw fault;
  };
  return retryFreely(surroundings, attempt, signal);
}

function faultOf({ status, headers }: Download, host: string): Error | undefined {
  if (status === 404 || status === 410) {
    const fix = 'correct path of the source';
    return new Invalid(`${host} has no such file (${status})`, { fix });
  }
  if (status >= 500 || status === 408 || status === 425) {
    return new Unavailable(`${host} answered ${status}`, { acted: 'no', status });
  }
  if (status !== 200) return refusal(status, host, mend);
  if (headers['content-type']?.includes('html')) {
    const doubt = 'is path of the source the address of the file?';
    return new Unavailable(`${host} answered with a web page (${doubt})`, { acted: 'no' });
  }
  const encoding = headers['content-encoding'] ?? 'identity';
  if (/^(x-gzip|gzip|identity)$/i.test(encoding)) return undefined;
  const fix = 'have it use gzip or nothing';
  return new Invalid(`${host} packs the file as it was not asked to`, { fix });
}

/**
 * Returns whether a file is UTF-16 without a byte order mark: every other byte is NUL, as in
 * Western text. One or two stray NULs do not match.
 */
export function hasUtf16Pattern(sample: Buffer): boolean {
  const bytes = sample.subarray(0, 1024);
  const nuls: [even: number, odd: number] = [0, 0];
  for (let at = 0; at < bytes.length; at += 1) if (bytes[at] === 0) nuls[at % 2 === 0 ? 0 : 1] += 1;
  return Math.max(...nuls) >= 4 && Math.max(...nuls) > bytes.length / 4;
}

/**
 * Creates the decoder of chunks, which returns undefined for bytes that the encoding does not have.
 * Call it with undefined at the end, because a character may span two chunks.
 */
export function strictDecoder(encoding: string) {
  const decoder = new TextDecoder(encoding, { fatal: true });
  return (chunk: Buffer | undefined): string | undefined => {
    try {
      return decoder.decode(chunk, { stream: chunk !== undefined });
    } catch (error) {
      if (error instanceof TypeError) return undefined;
      throw error;
    }
  };
}

/** Returns the encoding that a byte order mark states, or undefined if there is none. */
export function markedEncoding(sample: Buffer): 'utf-8' | 'utf-16le' | 'utf-16be' | undefined {
  if (sample.subarray(0, 3).equals(Buffer.from([0xef, 0xbb, 0xbf]))) return 'utf-8';
  const mark = sample.toString('hex', 0, 2);
  if (mark === 'fffe') return 'utf-16le';
  return mark === 'feff' ? 'utf-16be' : undefined;
}
