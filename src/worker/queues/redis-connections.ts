/** The two kinds of connection to Redis: one fails at once while Redis is away, one waits. */
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { Unavailable } from '../../domain/errors.ts';
import { prefix } from './queue-names.ts';
import { retryMs, waitsForNothing } from '../../rate-limit/shared/redis-reconnect.ts';

/**
 * A connection that does not wait: while Redis is away, or if it does not answer within a second, a
 * command fails, and nothing is sent twice. Its queues fail in the same way.
 */
export interface Quick {
  redis: Redis;
  queue<Data = unknown, Answer = unknown>(name: string): Queue<Data, Answer>;
  /**
   * Runs a command, after the first attempt to connect has ended. Throws Unavailable if Redis is
   * away, slow or refuses, with `fix` in its message.
   */
  ask<T>(command: () => Promise<T>, fix?: string): Promise<T>;
  close(): void;
}

/** Opens a connection that fails fast. */
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
      // Otherwise it never recovers from a Redis that was away when it was made.
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
        const detail = { fix, acted: 'maybe', cause: error } as const;
        throw new Unavailable(`Redis cannot be asked (${why})`, detail);
      }
    },
    close: () => redis.disconnect(),
  };
}

/**
 * Calls `notice` once when the connection is lost, with the reason, and once with undefined when it
 * is there again, until `ignore` is called.
 */
export function hearOf(
  connection: Redis,
  notice: (lost: string | undefined) => void,
): { ignore(): void } {
  let is: 'opening' | 'there' | 'lost' = 'opening';
  let reason = 'it closed the connection';
  let ignored = false;
  connection.on('error', (error: Error) => (reason = error.message));
  connection.on('ready', () => {
    if (is === 'lost' && !ignored) notice(undefined);
    is = 'there';
  });
  connection.on('close', () => {
    if (is !== 'lost' && !ignored) notice(reason);
    is = 'lost';
  });
  return { ignore: () => void (ignored = true) };
}

/** A connection to Redis for work: it waits however long Redis is away, until it is left. */
export interface Patient {
  redis: Redis;
  /** Stops waiting: once the connection is lost, whatever needs it fails. */
  leave(): void;
  close(): void;
}

/** Opens a connection that waits. */
export function connectPatiently(url: string): Patient {
  let isLeft = false;
  const retryStrategy = (times: number) => (isLeft ? null : retryMs(times));
  const redis = new Redis(url, { maxRetriesPerRequest: null, retryStrategy });
  redis.on('error', () => undefined);
  return {
    redis,
    leave: () => void (isLeft = true),
    close() {
      isLeft = true;
      // Between two attempts to connect it would never end, nor would those that wait: one more
      // try.
      if (redis.status === 'reconnecting') redis.once('ready', () => redis.disconnect());
      else redis.disconnect();
    },
  };
}
