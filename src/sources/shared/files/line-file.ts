/**
 * A file of records as a source, read from its first byte to its last. The reading is certified
 * when it ended without an error, the file was whole and did not change meanwhile, every row could
 * be read, and the last line is complete (`finalNewline`). When it breaks off, what was read
 * counts, without a certificate.
 */
import { Invalid, Unavailable } from '../../../domain/errors.ts';
import { brokenFlaw, certificateOf, type Flaw } from '../read-certificate.ts';
import { unpacked } from './gzip.ts';
import type { PlacedOptions } from './file-options.ts';
import type { ReadRequest, Source, SourceRecord } from '../../source.ts';
import type { Clock, Random } from '../../../domain/clock.ts';
import { placeOf } from '../../../domain/values/config-file.ts';
import { fileOrigin } from './local-file.ts';
import type { Input } from './standard-input.ts';
import { addressOrigin } from './web-file.ts';
import type { Origin } from './origin.ts';

/** The facts of a reading so far. */
export interface FileTally {
  bytes: number;
  /** Whether the last byte read is a line break. */
  lineEnded: boolean;
  /** The number of rows that cannot be read. */
  broken: number;
  firstBroken?: string;
  /** Set when the rest of the file was given up; it counts as one of the broken rows. */
  stopped?: { where: string; why: string; fix: string };
}

/** One reading of a file. */
export interface FileReading extends ReadRequest {
  /** The name for messages: the path, or where else the file comes from. */
  name: string;
  /** The unpacked bytes; all chunks but the last are full. */
  chunks: AsyncIterable<Buffer>;
  tally: FileTally;
}

/**
 * Returns the source of a file. It is read anew each time by `recordsOf`, which keeps the tally.
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
        const chunks = unpacked(file.bytes, origin);
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

/**
 * Returns the flaws of a reading. A file that was cut in mid-line looks like one that merely lacks
 * its last line break. So the line break is required, unless the export never writes one; then a
 * last row of another width is broken like any other.
 */
function flawsOf(tally: FileTally, cut: Flaw | undefined, found: readonly Flaw[]): Flaw[] {
  const flaws: Flaw[] = cut ? [cut] : [];
  const { stopped, firstBroken } = tally;
  const count = tally.broken - (stopped ? 1 : 0);
  if (stopped) {
    flaws.push({ why: `reading stopped: ${stopped.where} ${stopped.why}`, fix: stopped.fix });
  }
  flaws.push(...found);
  if (count > 0) {
    const fix = 'mend those rows and export the file again';
    flaws.push(brokenFlaw('row', { count, first: firstBroken, fix }));
  }
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

/** The surroundings of a source in a file. */
export interface FileSurroundings {
  clock: Clock;
  random: Random;
  /** Standard input; undefined: there is none. */
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
