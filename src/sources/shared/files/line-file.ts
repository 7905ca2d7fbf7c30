/**
 * Reads a file of records from its first byte to its last. The read is certified if it ended
 * without an error, the file was complete and did not change meanwhile, every row could be read,
 * and the last line is complete (`finalNewline`). If the read breaks off, the records read so far
 * are kept, without a certificate.
 */
import { Invalid, Unavailable } from '../../../domain/errors.ts';
import { certificateOf, type Flaw } from '../read-certificate.ts';
import { type FileTally, flawsOf } from './file-tally.ts';
import { unpacked } from './gzip.ts';
import type { PlacedOptions } from './file-options.ts';
import type { ReadRequest, Source, SourceRecord } from '../../source.ts';
import type { Clock, Random } from '../../../domain/clock.ts';
import { placeOf } from '../../../domain/values/config-file.ts';
import { fileOrigin } from './local-file.ts';
import type { Input } from './standard-input.ts';
import { addressOrigin } from './web-file.ts';
import type { Opened, Origin } from './origin.ts';

/** One read of a file. */
export interface FileReading extends ReadRequest {
  /** The name for messages: the path or another origin of the file. */
  name: string;
  /** The decompressed bytes. All chunks but the last are full. */
  chunks: AsyncIterable<Buffer>;
  tally: FileTally;
}

/**
 * Returns the source for a file. Each time, `recordsOf` reads the file again and updates the tally.
 */
export function lineFile(
  options: PlacedOptions,
  surroundings: FileSurroundings,
  recordsOf: (reading: FileReading) => AsyncGenerator<SourceRecord[], void>,
): Source {
  const origin = originOf(options, surroundings);
  const { name } = origin;
  return {
    async *read(request) {
      const tally: FileTally = { bytes: 0, lineEnded: true, broken: 0 };
      let cut: Flaw | undefined;
      const file = await origin.open(request.signal);
      try {
        const chunks = unpacked(counted(file, request), origin);
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

/** Yields the bytes, and reports which share of them has been read. */
async function* counted(
  { bytes, size }: Opened,
  { progress }: ReadRequest,
): AsyncGenerator<Buffer> {
  let read = 0;
  for await (const chunk of bytes) {
    read += chunk.length;
    if (size !== undefined && size > 0) progress?.(Math.min(1, read / size));
    yield chunk;
  }
}

/** The environment of a source that reads a file. */
export interface FileSurroundings {
  clock: Clock;
  random: Random;
  /** Standard input; undefined if there is none. */
  input?: Input | undefined;
}

function originOf(options: PlacedOptions, surroundings: FileSurroundings): Origin {
  const { input, clock } = surroundings;
  const place = placeOf(options.path);
  if (place === 'address') return addressOrigin(options, surroundings);
  if (place === 'file') return fileOrigin(options.path, clock);
  if (input) return input;
  throw new Invalid('there is no standard input to read from here', { fix: 'name a file' });
}
