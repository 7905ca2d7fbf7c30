/** How canaries end, as the snapshot holds it of the last one. */
import { z } from 'zod';

/**
 * How many records of a slice were read back (`of`), and how many of them are out of line. Each
 * record counts once in a cause.
 */
export const canaryCounts = z.object({
  unsubscribed: z.number(),
  refused: z.number(),
  drift: z.number(),
  of: z.number(),
});
export type CanaryCounts = z.infer<typeof canaryCounts>;

/**
 * The end of a canary.
 *
 *   passed     the slice was within the bounds
 *   approved   it was not (`says`), and a person has approved the rest
 *   replaced   it was not, and the mapping has changed since
 *   unwanted   it was not, and a complete run plans nothing of the class any more
 */
export const canaryEnd = z.object({
  class: z.enum(['delete', 'opt_in', 'template']),
  is: z.enum(['passed', 'approved', 'replaced', 'unwanted']),
  /** When it ended, by our clock, in milliseconds since the epoch. */
  at: z.number(),
  /** The id of the run that began it. */
  run: z.string(),
  size: z.number(),
  of: z.number(),
  /** What was out of bounds. */
  says: z.string().optional(),
  counts: canaryCounts.optional(),
});
export type CanaryEnd = z.infer<typeof canaryEnd>;

/** What ends, and what follows it; a canary of any state. */
interface Ending {
  guard: CanaryEnd['class'];
  before: Pick<CanaryEnd, 'run' | 'size' | 'of' | 'says' | 'counts'> & { state: string };
  after: { state: string } | undefined;
  at: number;
}

/** Returns the end of a canary; undefined if it goes on, or has ended before. */
export function endOf(
  { guard, before, after, at }: Ending,
  without: 'replaced' | 'unwanted',
): CanaryEnd | undefined {
  const { run, size, of, says, counts } = before;
  const about = { class: guard, at, run, size, of, says, counts };
  if (before.state === 'waiting') {
    return after?.state === 'passed' ? { ...about, is: 'passed' } : undefined;
  }
  if (before.state !== 'failed' || after?.state === 'failed') return undefined;
  return { ...about, is: after ? 'approved' : without };
}
