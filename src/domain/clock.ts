/**
 * The clock of a process. Code below the command line takes it as a parameter, so that a test can
 * run time virtually.
 */
export interface Clock {
  /**
   * Returns milliseconds since the epoch, for records and messages. Never measure a wait with it.
   */
  now(): number;
  /** Returns the milliseconds of a clock that never jumps, for measuring. */
  monotonic(): number;
  /** Resolves after `ms` milliseconds; rejects with the signal's reason when it is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** Returns a number in [0, 1). Passed in like the clock. */
export type Random = () => number;
