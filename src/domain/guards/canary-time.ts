/**
 * Measures how long a canary has waited. The clock that shows less counts; one that is set back
 * only makes the wait longer.
 */
import { z } from 'zod';

/** A time by our clock, and by the platform's (null if unknown), in epoch milliseconds. */
export const canaryTime = z.object({ at: z.number(), platformAt: z.number().nullable() });
export type CanaryTime = z.infer<typeof canaryTime>;

/** Returns how long a canary has waited by the clock that shows less; in milliseconds. */
export function waitedMs({ at, platformAt }: CanaryTime, now: CanaryTime): number {
  const waited = [now.at - at];
  if (platformAt !== null && now.platformAt !== null) waited.push(now.platformAt - platformAt);
  return Math.max(0, Math.min(...waited));
}

/** Returns the times without those that lie in the future, because a clock was set back. */
export function mended(since: CanaryTime, now: CanaryTime): CanaryTime {
  const { platformAt } = now;
  const isAhead = since.platformAt !== null && platformAt !== null && since.platformAt > platformAt;
  return {
    at: Math.min(since.at, now.at),
    platformAt: isAhead ? platformAt : (since.platformAt ?? platformAt),
  };
}
