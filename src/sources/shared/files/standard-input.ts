/**
 * Reads standard input as a file. Because it can be read only once, it is copied into an unnamed
 * temporary file, which only this process can read and which disappears with the process. The copy
 * never changes. Byte-identical input counts as the same read.
 */
import { createHash } from 'node:crypto';
import { type FileHandle, mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { Invalid } from '../../../domain/errors.ts';
import { chunksOf, unreadable } from './local-file.ts';
import type { Origin } from './origin.ts';

const NAME = 'standard input';

/** The origin for standard input. */
export type Input = Origin;

interface Spool {
  handle: FileHandle;
  reading: string;
  size: number;
}

/** Returns the origin for `stream`, which is called at the first read. */
export function standardInput(stream: () => Readable & { isTTY?: boolean }): Input {
  let spool: Promise<Spool> | undefined;
  let known: Spool | undefined;
  return {
    name: NAME,
    isPacked: false,
    async open(signal) {
      spool ??= spooled(stream(), signal);
      known = await spool;
      const { handle, reading, size } = known;
      return {
        reading,
        size,
        bytes: chunksOf(handle, { path: NAME, signal }),
        flaws: async () => [],
        close: async () => undefined,
      };
    },
    still: (reading) => known?.reading === reading,
  };
}

async function spooled(
  stream: Readable & { isTTY?: boolean },
  signal: AbortSignal,
): Promise<Spool> {
  if (stream.isTTY) {
    throw new Invalid(`${NAME} is a terminal`, { fix: 'pipe the export into it, or name a file' });
  }
  const handle = await nameless();
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
    throw unreadable(NAME, error);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

async function nameless(): Promise<FileHandle> {
  const folder = await mkdtemp(join(tmpdir(), 'crm-mirror-'));
  try {
    return await open(join(folder, 'input'), 'wx+', 0o600);
  } finally {
    await rm(folder, { recursive: true });
  }
}
