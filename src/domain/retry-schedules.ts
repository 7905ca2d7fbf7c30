/**
 * The schedules for retrying failed work; after a 429, the route's limit states how long to wait.
 */
import type { Random } from './clock.ts';

interface RetrySchedule {
  firstMs: number;
  factor: number;
  longestMs: number;
  /** The number of tries, including the first. */
  tries: number;
  /** full: from 0 to the whole delay, at random. half: from half of it to one and a half times. */
  jitter: 'none' | 'full' | 'half';
}

const endless = { tries: Number.MAX_SAFE_INTEGER, jitter: 'none' } as const;
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

const every = (ms: number) => ({ firstMs: ms, factor: 1, longestMs: ms, ...endless });

export const retrySchedules = {
  request: { firstMs: 250, factor: 2, longestMs: 5_000, tries: 4, jitter: 'full' },
  /** An opt-out that the platform rejected. Other changes wait until their record changes. */
  rejectedOptOut: { firstMs: hourMs, factor: 2, longestMs: dayMs, ...endless },
  /** All changes except opt-outs, after the platform refused too many of them. */
  quarantine: { firstMs: hourMs, factor: 2, longestMs: dayMs, ...endless },
  rejectedReport: every(dayMs),
  /** An event of the CRM whose run failed; it is a job of a queue. */
  event: { firstMs: 1_000, factor: 2, longestMs: 60_000, ...endless },
  jobElsewhere: every(1_000),
  /** A message to a receiver. A run begins anew, and a process that ends leaves it to the next. */
  notification: { firstMs: 1_000, factor: 5, longestMs: hourMs, ...endless, jitter: 'half' },
  /** A worker that waits for the lease of a mirror, or for Redis to name the worker that has it. */
  lease: every(2_000),
  redis: { firstMs: 100, factor: 2, longestMs: 1_000, ...endless },
  /** A check of a Salesforce Bulk API job that is not finished. */
  bulkJob: { firstMs: 1_000, factor: 2, longestMs: 30_000, ...endless },
  lockedDatabase: every(50),
  /** Another read of a person whose address changed meanwhile; then left to a later event. */
  personRead: { ...every(0), tries: 5 },
} as const satisfies Record<string, RetrySchedule>;

/** Returns the delay in milliseconds after this many tries in a row; jitter needs `random`. */
export function retryDelayMs(
  { firstMs, factor, longestMs, jitter }: RetrySchedule,
  tries: number,
  random?: Random,
): number {
  const delayMs = Math.min(longestMs, firstMs * factor ** (tries - 1));
  if (jitter === 'none' || !random) return delayMs;
  return delayMs * (jitter === 'full' ? random() : 0.5 + random());
}
