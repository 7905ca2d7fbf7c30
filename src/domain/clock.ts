/** Time, passed in everywhere below command/, so that a test can run it virtually. */
export interface Clock {
  /** Milliseconds since the epoch; for records and messages, never for measuring a wait. */
  now(): number;
  /** Milliseconds of a clock that never jumps. */
  monotonic(): number;
  /** Resolves after `ms`; rejects with the signal's reason when aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** A number in [0, 1), passed in like the clock. */
export type Random = () => number;
