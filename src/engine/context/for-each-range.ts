import type { KeyRange } from '../../snapshot/database/key-range.ts';
import type { RunContext } from './run-context.ts';

/** Does a part of the work, which must be short, for each range; others have their turn between. */
export async function forEachRange(
  { clock }: Pick<RunContext, 'clock'>,
  ranges: Iterable<KeyRange>,
  work: (range: KeyRange) => void,
): Promise<void> {
  for (const _ of eachRange(ranges, work)) await clock.sleep(0);
}

/** The same in steps, between which others have their turn if who takes them gives it. */
export function* eachRange(
  ranges: Iterable<KeyRange>,
  work: (range: KeyRange) => void,
): Generator<undefined> {
  for (const range of ranges) {
    work(range);
    yield;
  }
}

/** Does a part of the work, as short, until it answers that nothing is left. */
export async function untilDone(
  { clock }: Pick<RunContext, 'clock'>,
  work: () => boolean,
): Promise<void> {
  while (work()) await clock.sleep(0);
}
