/** Two kinds of connection to Redis: one fails immediately while Redis is away, the other waits. */
import { Queue } from 'bullmq';
import { type ChainableCommander, Redis } from 'ioredis';
import { Unavailable } from '../../domain/errors.ts';
import { QuickRedis } from '../../http/rate-limit/shared/quick-redis.ts';
import { retryMs } from '../../http/rate-limit/shared/redis-reconnect.ts';

/**
 * If Redis is away or does not respond within a second, a command fails, and nothing is sent twice.
 */
export interface Quick {
  redis: Redis;
  queue<Data = unknown, Answer = unknown>(name: string): Queue<Data, Answer>;
  /**
   * Throws Unavailable, with `fix` in its message, if Redis is away, slow, or refuses the command.
   */
  ask<T>(command: () => Promise<T>, fix?: string): Promise<T>;
  close(): void;
}

/** Opens a connection that fails fast. */
export function connectQuickly(url: string): Quick {
  const redis = new QuickRedis(url);
  let reason = 'it does not answer';
  redis.on('error', ({ message }: Error) => (reason = message || reason));
  const opened = new Promise((resolve) => {
    redis.once('ready', resolve);
    redis.once('close', resolve);
  });
  return {
    redis,
    queue<Data, Answer>(name: string) {
      // Otherwise it never recovers if Redis was away when the queue was created.
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

/** Does work on a connection that fails fast, and closes it. */
export async function withRedis<T>(url: string, work: (quick: Quick) => Promise<T>): Promise<T> {
  const quick = connectQuickly(url);
  try {
    return await work(quick);
  } finally {
    quick.close();
  }
}

/** Runs the commands of a transaction. Throws the error of the first one that has failed. */
export async function repliesTo(transaction: ChainableCommander): Promise<unknown[]> {
  return ((await transaction.exec()) ?? []).map(([error, value]) => {
    if (error) throw error;
    return value;
  });
}

/** Returns by which policy Redis, by its INFO, drops keys when its memory is full. */
export function evictionPolicyIn(info: string): string | undefined {
  const policy = /^maxmemory_policy:(.+?)\r?$/m.exec(info)?.[1];
  return policy === 'noeviction' ? undefined : policy;
}

/** A connection for processing jobs, which waits for Redis no matter how long that is away. */
export type Patient = ReturnType<typeof connectPatiently>;

/** Calls `notice` with the reason when the connection is lost, with undefined when it is back. */
export function connectPatiently(
  url: string,
  notice: (lost: string | undefined) => void = () => undefined,
) {
  let isClosed = false;
  let isLost = false;
  let reason = 'it closed the connection';
  const retryStrategy = (times: number) => (isClosed ? null : retryMs(times));
  const redis = new Redis(url, { maxRetriesPerRequest: null, retryStrategy });
  redis.on('error', ({ message }: Error) => void (reason = message));
  redis.on('ready', () => {
    if (isLost && !isClosed) notice(undefined);
    isLost = false;
  });
  redis.on('close', () => {
    if (!isLost && !isClosed) notice(reason);
    isLost = true;
  });
  return {
    redis,
    /** Stops waiting: everything that needs the connection fails. */
    close() {
      isClosed = true;
      // Between two attempts it would never end, nor its callers: one more attempt is made.
      if (redis.status === 'reconnecting') redis.once('ready', () => redis.disconnect());
      else redis.disconnect();
    },
  };
}

/** The prefix of all keys in Redis. */
export const prefix = 'crm-mirror';

/** The queues of a mirror. Runs delay no sentinel and no event, and `commands` no `errands`. */
export const queueKinds = ['runs', 'sentinel', 'events', 'commands', 'errands'] as const;

/** Returns the name of a queue. */
export function queueName(kind: (typeof queueKinds)[number], mirror: string): string {
  return `${kind}-${mirror}`;
}
