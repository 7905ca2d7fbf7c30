/** Converts stored bytes into readable bytes: full chunks, decompressed if necessary. */
import { createGunzip, type Gunzip } from 'node:zlib';
import { Invalid, Unavailable } from '../../../domain/errors.ts';
import { CHUNK_BYTES } from './local-file.ts';

/** A slice can grow at most about a thousandfold when it is decompressed. */
const SLICE_BYTES = 16 * 1024;
/** A compressed file may be compressed once more for its transport. */
const MOST_LAYERS = 2;

interface Packing {
  /** The name for messages. */
  name: string;
  /** Whether the bytes must be compressed. */
  isPacked: boolean;
}

/**
 * Yields the decompressed bytes in full chunks. Gzip is recognized by its first two bytes, with
 * which no text begins. Throws Unavailable if the data is truncated or damaged, after yielding
 * everything that could be decompressed. Throws Invalid if the data must be compressed but is not.
 */
export async function* unpacked(
  bytes: AsyncIterable<Buffer>,
  { name, isPacked }: Packing,
  layers = MOST_LAYERS,
): AsyncGenerator<Buffer> {
  let found: boolean | undefined;
  const chunks = inFull(bytes);
  async function* all(first: Buffer) {
    yield first;
    yield* chunks;
  }
  for await (const first of chunks) {
    found = layers > 0 && first[0] === 0x1f && first[1] === 0x8b;
    if (isPacked && !found) break;
    if (!found) yield* all(first);
    else yield* unpacked(gunzipped(all(first), name), { name, isPacked: false }, layers - 1);
    return;
  }
  if (isPacked) throw new Invalid(`${name}: this is no gzip file; pack it again, or rename it`);
}

async function* inFull(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const hold = createHold();
  try {
    for await (const chunk of bytes) yield* hold.add(chunk);
  } catch (error) {
    yield* hold.rest();
    throw error;
  }
  yield* hold.rest();
}

function createHold() {
  let held: Buffer[] = [];
  let count = 0;
  const take = () => {
    const taken = held.length === 1 && held[0] ? held[0] : Buffer.concat(held);
    held = [];
    count = 0;
    return taken;
  };
  return {
    *add(chunk: Buffer): Generator<Buffer> {
      let rest = chunk;
      while (rest.length > 0) {
        const part = rest.subarray(0, CHUNK_BYTES - count);
        held.push(part);
        count += part.length;
        rest = rest.subarray(part.length);
        if (count === CHUNK_BYTES) yield take();
      }
    },
    *rest(): Generator<Buffer> {
      if (count > 0) yield take();
    },
  };
}

/**
 * Decompresses by writing each slice itself, so that the reader sets the pace and nothing is lost
 * before an error.
 */
async function* gunzipped(bytes: AsyncIterable<Buffer>, name: string): AsyncGenerator<Buffer> {
  const gunzip = createGunzip();
  const made: Buffer[] = [];
  gunzip.on('data', (chunk: Buffer) => void made.push(chunk));
  const end = endOf(gunzip);
  try {
    for await (const slice of slicesOf(bytes)) {
      const written = new Promise<'written'>((done) => gunzip.write(slice, () => done('written')));
      const how = await Promise.race([end, written]);
      yield* made.splice(0);
      if (how !== 'written') throw spoilt(name, how);
    }
    gunzip.end();
    const how = await end;
    yield* made.splice(0);
    if (how !== 'end') throw spoilt(name, how);
  } finally {
    gunzip.destroy();
  }
}

async function* slicesOf(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const chunk of bytes) {
    for (let start = 0; start < chunk.length; start += SLICE_BYTES) {
      yield chunk.subarray(start, start + SLICE_BYTES);
    }
  }
}

type End = 'end' | 'cut' | 'damaged';

function endOf(gunzip: Gunzip): Promise<End> {
  return new Promise((resolve) => {
    gunzip.once('end', () => resolve('end'));
    gunzip.once('error', (error) => {
      const isCut = 'code' in error && error.code === 'Z_BUF_ERROR';
      resolve(isCut ? 'cut' : 'damaged');
    });
  });
}

const spoils: Record<End, string> = {
  end: 'something follows the end of the gzip data',
  cut: 'the gzip data is cut off',
  damaged: 'the gzip data is damaged',
};

function spoilt(name: string, how: End): Unavailable {
  return new Unavailable(`${name}: ${spoils[how]}`, { fix: 'pack the file again', acted: 'no' });
}
