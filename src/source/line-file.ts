/**
 * A file of records as a source, read from its first byte to its last. Certified when that ended
 * without error, the file is the same before and after, every row could be read, and the last line
 * is complete.
 */
import type { FileHandle } from 'node:fs/promises';
import type { Clock } from '../model/clock.ts';
import { brokenFlaw, certificateOf, type Flaw } from './certificate.ts';
import { opened } from './file.ts';
import type { ReadRequest, Source, SourceRecord } from './source.ts';
import { type FileState, isStill, readingOf, sameState, settled, stateOf } from './state.ts';

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

/** A file cut in mid-line looks like one that merely lacks its last line break: it is demanded. */
function fileFlaws(
  tally: FileTally,
  { before, after }: { before: FileState; after: readonly (FileState | undefined)[] },
): Flaw[] {
  const flaws: Flaw[] = [];
  const { stopped, firstBroken } = tally;
  const count = tally.broken - (stopped ? 1 : 0);
  if (stopped) {
    flaws.push({ why: `reading stopped: ${stopped.where} ${stopped.why}`, fix: stopped.fix });
  }
  if (after.some((state) => !sameState(state, before))) {
    flaws.push({ why: 'the file changed while it was read', fix: 'read it again' });
  } else if (!stopped && tally.bytes !== before.size) {
    const why = `${tally.bytes} of ${before.size} bytes were read`;
    flaws.push({ why, fix: 'read it again' });
  }
  if (count > 0) {
    const fix = 'mend those rows and export the file again';
    flaws.push(brokenFlaw('row', { count, first: firstBroken, fix }));
  }
  if (!stopped && !tally.lineEnded) {
    flaws.push({
      why: 'the last line has no line break, so the file may be cut off',
      fix: 'end the file with a line break',
    });
  }
  return flaws;
}

export interface FileReading extends ReadRequest {
  path: string;
  handle: FileHandle;
  tally: FileTally;
}

/**
 * Reads `path` anew each time, by `recordsOf`, which keeps the tally. Waits, at most a minute, for
 * a file that is still being written.
 */
export function lineFile(
  path: string,
  clock: Clock,
  recordsOf: (reading: FileReading) => AsyncGenerator<SourceRecord[], void>,
): Source {
  let latest: FileState | undefined;
  return {
    async *read(request) {
      const before = await settled(path, { clock, signal: request.signal });
      latest = before;
      const handle = await opened(path);
      const tally: FileTally = { bytes: 0, lineEnded: true, broken: 0 };
      try {
        yield* recordsOf({ ...request, path, handle, tally });
        const after = [await stateOf(handle), await stateOf(path)];
        return certificateOf(readingOf(before), fileFlaws(tally, { before, after }));
      } finally {
        await handle.close();
      }
    },
    still: (reading) => isStill(path, latest, reading),
  };
}
