/** Groups the records of a file into batches that take little memory. */
import type { SourceRecord } from '../../source.ts';

const BATCH_RECORDS = 500;
const BATCH_BYTES = 4 * 1024 * 1024;

/** The number of bytes read so far. */
interface ByteCount {
  bytes: number;
}

/** Yields the records read before a failure, then throws. */
export async function* untilCut(
  groups: AsyncIterable<SourceRecord[]>,
  tally: ByteCount,
): AsyncGenerator<SourceRecord[], void> {
  const failures: unknown[] = [];
  async function* quietly() {
    try {
      yield* groups;
    } catch (error) {
      failures.push(error);
    }
  }
  yield* batchesOf(quietly(), tally);
  if (failures.length > 0) throw failures[0];
}

/**
 * Regroups records by number and by bytes, because hundreds of rows of a megabyte each must not be
 * in memory at the same time.
 */
async function* batchesOf(
  groups: AsyncIterable<SourceRecord[]>,
  tally: ByteCount,
): AsyncGenerator<SourceRecord[], void> {
  let held: SourceRecord[] = [];
  let heldSince = 0;
  for await (const group of groups) {
    for (const record of group) {
      held.push(record);
      if (held.length < BATCH_RECORDS) continue;
      yield held;
      held = [];
      heldSince = tally.bytes;
    }
    if (held.length === 0 || tally.bytes - heldSince < BATCH_BYTES) continue;
    yield held;
    held = [];
    heldSince = tally.bytes;
  }
  if (held.length > 0) yield held;
}
