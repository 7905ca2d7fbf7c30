/** How every connection to Redis comes back, and the options of those that do not wait. */
import type { RedisOptions } from 'ioredis';
import { retryDelayMs, retrySchedules } from '../../domain/retry-schedules.ts';

/** 200 ms was too short under load. */
const COMMAND_MS = 1000;
/** The longest wait for a new connection. */
export const OPENING_MS = 2500;

/** Returns the milliseconds until the next try, the `times`th in a row. */
export function retryMs(times: number): number {
  return retryDelayMs(retrySchedules.redis, times);
}

/** Options of a connection that repeats no command and queues nothing for later. */
export const waitsForNothing = {
  commandTimeout: COMMAND_MS,
  connectTimeout: OPENING_MS,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  retryStrategy: retryMs,
  connectionName: 'crm-mirror',
} satisfies RedisOptions;
