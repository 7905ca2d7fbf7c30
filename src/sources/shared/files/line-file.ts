/**
 * Reads a file of records. The read is certified if it ended without an error, the file was
 * complete and did not change meanwhile, every row could be read, and the last line is complete
 * (`finalNewline`). If it breaks off, the records read so far are kept, without a certificate.
 */
import { codeOf, Invalid, Unavailable } from '../../../domain/errors.ts';
import { certificateOf, type Flaw, brokenFlaws } from '../read-certificate.ts';
import type { PlacedOptions } from '../option-fields.ts';
import type { ReadRequest, Source, SourceRecord } from '../../source.ts';
import type { Clock, Random } from '../../../domain/clock.ts';
import { placeOf } from '../../../domain/values/config-file.ts';
import { addressOrigin, CHUNK_BYTES, localFile, type Origin } from './file-origin.ts';
import { createGunzip } from 'node:zlib';

export interface FileReading extends ReadRequest {
  name: string;
  /** The decompressed bytes. All chunks but the last are full. */
  chunks: AsyncIterable<Buffer>;
  tally: FileTally;
}

export interface FileSurroundings {
  clock: Clock;
  random: Random;
  input?: Origin | undefined;
}

/** Returns the source for a file. Each read calls `recordsOf` anew, which updates the tally. */
export function lineFile(
  options: PlacedOptions,
  surroundings: FileSurroundings,
  recordsOf: (reading: FileReading) => AsyncGenerator<SourceRecord[], void>,
): Source {
  const origin = openOrigin(options, surroundings);
  const { name } = origin;
  return {
    async *read(request) {
      const tally: FileTally = { bytes: 0, lineEnded: true, broken: 0 };
      let cut: Flaw | undefined;
      const file = await origin.open(request.signal);
      const { size = 0 } = file;
      async function* bytes() {
        let read = 0;
        for await (const chunk of file.bytes) {
          read += chunk.length;
          if (size > 0) request.progress?.(Math.min(1, read / size));
          yield chunk;
        }
      }
      try {
        const chunks = unpacked(bytes(), origin);
        try {
          yield* recordsOf({ ...request, name, chunks, tally });
        } catch (error) {
          if (!(error instanceof Unavailable) || tally.bytes === 0) throw error;
          const [{ reason, fix = 'read it again' }] = error.problems;
          cut = { why: `reading stopped: ${reason}`, fix };
        }
        const found = await file.flaws(!tally.stopped && !cut);
        const isEnded = tally.lineEnded || options.finalNewline === 'optional';
        return certificateOf(file.reading, flawsOf({ ...tally, lineEnded: isEnded }, cut, found));
      } finally {
        await file.close();
      }
    },
    still: origin.still,
  };
}

function openOrigin(options: PlacedOptions, surroundings: FileSurroundings): Origin {
  const { input, clock } = surroundings;
  const place = placeOf(options.path);
  if (place === 'address') return addressOrigin(options, surroundings);
  if (place === 'file') return localFile(options.path, clock);
  if (input) return input;
  throw new Invalid('there is no standard input to read from here', { fix: 'name a file' });
}

export interface FileTally {
  bytes: number;
  lineEnded: boolean;
  broken: number;
  firstBroken?: { where: string; fix: string };
  /** Set if the rest of the file was abandoned; this counts as one broken row. */
  stopped?: { where: string; why: string; fix: string };
}

/** Counts a row that cannot be read, and returns its record. */
export function brokenRow(tally: FileTally, where: string, { why, fix }: Flaw): SourceRecord {
  tally.broken += 1;
  tally.firstBroken ??= { where, fix };
  return { where, broken: why, fix };
}

/**
 * Returns the flaws of a read. A file cut off in a line looks like one without its last line break,
 * which is therefore required unless the export never writes one; then a last row with another
 * width counts as broken, like any other.
 */
export function flawsOf(tally: FileTally, cut: Flaw | undefined, found: readonly Flaw[]): Flaw[] {
  const flaws: Flaw[] = cut ? [{ ...cut, isCut: true }] : [];
  const { stopped, firstBroken } = tally;
  const count = tally.broken - (stopped ? 1 : 0);
  if (stopped) {
    const why = `reading stopped: ${stopped.where} ${stopped.why}`;
    flaws.push({ why, fix: stopped.fix, isCut: true });
  }
  flaws.push(...found);
  flaws.push(...brokenFlaws('row', count, firstBroken?.where, firstBroken?.fix));
  if (!stopped && !cut && !tally.lineEnded) {
    flaws.push({
      why: 'the last line has no line break, so the file may be cut off',
      fix:
        'end the file with a line break, or, where the export never does, ' +
        'set finalNewline: optional in the source',
    });
  }
  return flaws;
}

/** A slice can grow at most about a thousandfold when it is decompressed. */
const SLICE_BYTES = 16 * 1024;
/** A compressed file may be compressed once more for its transport. */
const MOST_LAYERS = 2;

/**
 * Yields the decompressed bytes in full chunks. Gzip is recognized by two bytes, with which no text
 * begins. Throws Unavailable if data is cut or damaged, after all that could be decompressed, and
 * Invalid if it must be compressed (`isPacked`) but is not.
 */
async function* unpacked(
  bytes: AsyncIterable<Buffer>,
  { name, isPacked }: { name: string; isPacked: boolean },
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

/** Yields the same bytes in full chunks, and the rest at the end or before an error. */
async function* inFull(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let parts: Buffer[] = [];
  let count = 0;
  const take = () => {
    const taken = parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts);
    [parts, count] = [[], 0];
    return taken;
  };
  function* add(chunk: Buffer) {
    for (let rest = chunk; rest.length > 0;) {
      const part = rest.subarray(0, CHUNK_BYTES - count);
      parts.push(part);
      count += part.length;
      rest = rest.subarray(part.length);
      if (count === CHUNK_BYTES) yield take();
    }
  }
  try {
    for await (const chunk of bytes) yield* add(chunk);
  } catch (error) {
    if (count > 0) yield take();
    throw error;
  }
  if (count > 0) yield take();
}

/** Decompresses slice by slice: the reader sets the pace, and nothing is lost before an error. */
async function* gunzipped(bytes: AsyncIterable<Buffer>, name: string): AsyncGenerator<Buffer> {
  const gunzip = createGunzip();
  const made: Buffer[] = [];
  gunzip.on('data', (chunk: Buffer) => void made.push(chunk));
  const end = new Promise<End>((resolve) => {
    gunzip.once('end', () => resolve('end'));
    gunzip.once('error', (error) => {
      resolve(codeOf(error) === 'Z_BUF_ERROR' ? 'cut' : 'damaged');
    });
  });
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
  for await (const chunk of bytes)
    for (let start = 0; start < chunk.length; start += SLICE_BYTES)
      yield chunk.subarray(start, start + SLICE_BYTES);
}

type End = 'end' | 'cut' | 'damaged';

const spoils: Record<End, string> = {
  end: 'something follows the end of the gzip data',
  cut: 'the gzip data is cut off',
  damaged: 'the gzip data is damaged',
};

function spoilt(name: string, how: End): Unavailable {
  return new Unavailable(`${name}: ${spoils[how]}`, { fix: 'pack the file again', acted: 'no' });
}

const BATCH_RECORDS = 500;
const BATCH_BYTES = 4 * 1024 * 1024;

/** Regroups records by number and by bytes, and yields those before a failure. */
export async function* untilCut(
  groups: AsyncIterable<SourceRecord[]>,
  tally: { bytes: number },
): AsyncGenerator<SourceRecord[], void> {
  let batch: SourceRecord[] = [];
  let since = 0;
  const take = () => {
    const taken = batch;
    [batch, since] = [[], tally.bytes];
    return taken;
  };
  function* add(group: readonly SourceRecord[]) {
    for (const record of group) {
      batch.push(record);
      if (batch.length >= BATCH_RECORDS) yield take();
    }
    if (batch.length > 0 && tally.bytes - since >= BATCH_BYTES) yield take();
  }
  try {
    for await (const group of groups) yield* add(group);
  } catch (error) {
    if (batch.length > 0) yield batch;
    throw error;
  }
  if (batch.length > 0) yield batch;
}
