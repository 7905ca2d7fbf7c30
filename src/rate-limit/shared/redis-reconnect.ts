/**
 * Defines how every connection to Redis reconnects, and the options of connections that do not
 * wait.
 */
import type { RedisOptions } from 'ioredis';
import { retryDelayMs, retrySchedules } from '../../domain/retry-schedules.ts';

/** The longest wait for a new connection. */
export const OPENING_MS = 2500;

/** Returns the milliseconds until the next attempt, which is number `times` in a row. */
export function retryMs(times: number): number {
  return retryDelayMs(retrySchedules.redis, times);
}

/** Options for a connection that repeats no command and queues nothing for later. */
export const waitsForNothing = {
  connectTimeout: OPENING_MS,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  retryStrategy: retryMs,
  connectionName: 'crm-mirror',
} satisfies RedisOptions;
