/** Defines how every connection to Redis reconnects. */
import { retryDelayMs, retrySchedules } from '../../../domain/retry-schedules.ts';

/** The longest wait for a new connection. */
export const OPENING_MS = 2500;

/** Returns the milliseconds until the next attempt, which is number `times` in a row. */
export function retryMs(times: number): number {
  return retryDelayMs(retrySchedules.redis, times);
}
