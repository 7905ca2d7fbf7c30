/** How every connection to Redis comes back, and what those have in common that do not wait. */
import type { RedisOptions } from 'ioredis';

const MOST_RETRY_MS = 1000;
/** 200 ms tripped under load. */
const COMMAND_MS = 1000;
export const OPENING_MS = 2500;

/** Milliseconds until the next try, the `times`th in a row. */
export function retryMs(times: number): number {
  return Math.min(MOST_RETRY_MS, 50 * 2 ** Math.min(times, 10));
}

/** What was not answered is not said twice, and nothing is kept for later. */
export const waitsForNothing = {
  commandTimeout: COMMAND_MS,
  connectTimeout: OPENING_MS,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  retryStrategy: retryMs,
  connectionName: 'crm-mirror',
} satisfies RedisOptions;
