/** The clock of a process. Code below the command line is given it: tests use virtual time. */
export interface Clock {
  /** Returns milliseconds since the epoch, for records and messages, not for durations. */
  now(): number;
  /** Returns the milliseconds of a clock that never jumps, for measuring durations. */
  monotonic(): number;
  /** Resolves after `ms` milliseconds; rejects with the signal's reason when it is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** A time by our clock, and by the platform's (null if unknown), in epoch milliseconds. */
export interface BothTimes {
  at: number;
  platformAt: number | null;
}

/** The tolerated difference between the clocks of two machines, in milliseconds. */
export const toleratedMs = 300_000;

/** Two clocks that differ by more do not show the same time, in milliseconds. */
export const apartMs = 3_600_000;

/** Smaller differences between the clocks may come from the resolution and the way of a `Date`. */
export const sameClockMs = 2_000;

/** Returns the time that has come by both clocks. */
export function passedByBoth({ at, platformAt }: BothTimes): number {
  return platformAt === null ? at : Math.min(at, platformAt + sameClockMs);
}

/** Returns when the future begins for certain: by both clocks, or an hour after the platform's. */
export function certainFuture({ at, platformAt }: BothTimes): number {
  return platformAt === null ? at : Math.min(Math.max(at, platformAt), platformAt + apartMs);
}

/** Returns a number in [0, 1). It is passed as a parameter, like the clock. */
export type Random = () => number;
