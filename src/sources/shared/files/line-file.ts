/**
 * A file of records as a source, read from its first byte to its last. Certified when that ended
 * without error, it came whole and did not change meanwhile, every row could be read, and the last
 * line is complete (`finalNewline`). Where it breaks off, what was read counts, without a
 * certificate.
 */
import { Unavailable } from '../../../domain/errors.ts';
import { brokenFlaw, certificateOf, type Flaw } from '../read-certificate.ts';
import { unpacked } from './gzip.ts';
import { type FileSurroundings, originOf } from './file-origin.ts';
import type { PlacedOptions } from './file-options.ts';
import type { ReadRequest, Source, SourceRecord } from '../../source.ts';

/** What the reading of a file has seen so far. */
export interface FileTally {
  bytes: number;
  /** Whether the last byte read is a line break. */
  lineEnded: boolean;
  broken: number;
  firstBroken?: string;
  /** Set when the rest of the file was given up; it is one of the broken. */
  stopped?: { where: string; why: string; fix: string };
}

export interface FileReading extends ReadRequest {
  /** For messages: the path, or where else it comes from. */
  name: string;
  /** Unpacked, and full up to the last one. */
  chunks: AsyncIterable<Buffer>;
  tally: FileTally;
}

/** Reads it anew each time, by `recordsOf`, which keeps the tally. */
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
          const [what = '', fix = 'read it again'] = error.message.split(' → ');
          cut = { why: `reading stopped: ${what}`, fix };
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
 * A file cut in mid-line looks like one that merely lacks its last line break: it is demanded,
 * unless the export never writes one. Then a last row of another width is broken like any other.
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
