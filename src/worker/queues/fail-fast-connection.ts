/**
 * A connection to Redis for those who cannot wait: what is asked while it is away, or what it does
 * not answer within a second, fails, and nothing is said twice. Its queues are there from the
 * beginning, and fail in the same way.
 */
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { Unavailable } from '../../domain/errors.ts';
import { prefix } from './queue-names.ts';
import { waitsForNothing } from '../../rate-limit/shared/redis-reconnect.ts';

export interface Quick {
  redis: Redis;
  queue<Data = unknown, Answer = unknown>(name: string): Queue<Data, Answer>;
  /**
   * Throws Unavailable where Redis is away, slow or unwilling, with the `fix` for it; waits for the
   * first answer.
   */
  ask<T>(command: () => Promise<T>, fix?: string): Promise<T>;
  close(): void;
}

export function connectQuickly(url: string): Quick {
  const redis = new Redis(url, waitsForNothing);
  let reason = 'it does not answer';
  redis.on('error', ({ message }: Error) => (reason = message || reason));
  const opened = new Promise((resolve) => {
    redis.once('ready', resolve);
    redis.once('close', resolve);
  });
  return {
    redis,
    queue<Data, Answer>(name: string) {
      // Without these two it never recovers from a Redis that was away when it was made.
      const recovers = { skipWaitingForReady: true, skipVersionCheck: true };
      const queue = new Queue<Data, Answer>(name, { connection: redis, prefix, ...recovers });
      queue.on('error', () => undefined);
      return queue;
    },
    async ask(command, fix) {
      await opened;
      try {
        return await command();
      } catch (error) {
        const said = redis.status === 'ready' && error instanceof Error;
        const why = said ? error.message : reason;
        const what = `Redis cannot be asked (${why})${fix === undefined ? '' : ` → ${fix}`}`;
        throw new Unavailable(what, { acted: 'maybe', cause: error });
      }
    },
    close: () => redis.disconnect(),
  };
}
