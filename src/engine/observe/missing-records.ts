/**
 * Requests from the platform, one by one, the recorded records that were on no page of a listing.
 * Each costs a request, so their number is limited, and each run starts at a random one.
 */
import { RateLimited, Rejected, Unavailable } from '../../domain/errors.ts';
import type { RecordedRow, RecordTypeName } from '../../domain/record.ts';
import type { RecordType, FoundRecord } from '../../records/record-type.ts';
import type { KeyRange } from '../../store/database/key-range.ts';
import type { CircuitBreaker } from '../context/circuit-breaker.ts';
import { each, inTurns } from '../context/work-in-parts.ts';
import type { Random } from '../../domain/clock.ts';
import type { Mirror } from '../context/mirror-context.ts';
import type { RunContext } from '../context/run-context.ts';
import { reasonOf } from '../read/source-read.ts';

const askedAtOnce = 16;
const askedAtLeast = 500;
const askedShare = 0.02;

/**
 * Adds the records that are found to the listing, and notes those that are gone. A refused route or
 * an unavailable platform ends the search; any other refused request concerns only its record.
 * Records that were not requested remain unknown. Throws on a refused key and on an interruption.
 */
export async function findMissing(
  run: RunContext,
  type: RecordType,
  { breaker, random }: { breaker: CircuitBreaker; random: Random },
): Promise<void> {
  const { personRead } = type.capabilities;
  if (!personRead) return;
  const { recorded } = run.snapshot;
  const most = Math.max(askedAtLeast, Math.floor(recorded.count(type.name) * askedShare));
  const rows = await unlisted({ ...run, random }, type.name, most);
  let isOver = false;
  let done = 0;
  await each(rows, askedAtOnce, async (row) => {
    if (run.stop.aborted) throw reasonOf(run.stop);
    if (isOver) return;
    try {
      learn(run, row, await personRead.find(row, run.stop));
    } catch (error) {
      const refused = error instanceof Rejected && error.status !== 401;
      const unwell = error instanceof Unavailable || error instanceof RateLimited;
      if (!refused && !unwell) throw error;
      isOver ||= unwell || breaker.refuses(error);
    }
    done += 1;
    run.progress({ stage: 'listing', kind: type.name, done, of: rows.length });
  });
}

/** Returns at most `most` records that no page showed, in key order. */
export async function unlisted(
  run: Pick<Mirror, 'snapshot' | 'clock' | 'random'>,
  kind: RecordTypeName,
  most: number,
): Promise<RecordedRow[]> {
  const { recorded, ranges } = run.snapshot;
  const counts: { range: KeyRange; n: number }[] = [];
  for await (const range of inTurns(run, ranges.ofRecorded(kind))) {
    counts.push({ range, n: recorded.countUnlisted(kind, range) });
  }
  const over = Math.max(0, counts.reduce((sum, { n }) => sum + n, 0) - most);
  let after = Math.floor(run.random() * (over + 1));
  const rows: RecordedRow[] = [];
  for (const { range, n } of counts) {
    const count = most - rows.length;
    if (after < n) rows.push(...recorded.unlisted(kind, { range, after, count }));
    after = Math.max(0, after - n);
  }
  return rows;
}

function learn(
  { snapshot, clock }: RunContext,
  { kind, key }: RecordedRow,
  { is, rows }: FoundRecord,
): void {
  const { staging } = snapshot;
  snapshot.stage(() => {
    staging.addObserved(rows, is === 'whole' ? key : undefined);
    if (is === 'whole') staging.addLooked(kind, key, clock.now());
  });
}
