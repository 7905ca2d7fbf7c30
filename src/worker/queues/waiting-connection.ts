import { Redis } from 'ioredis';
import { retryMs } from '../../rate-limit/shared/redis-reconnect.ts';

/** A connection to Redis for work: it waits for it however long it is away, until it is left. */
export interface Patient {
  redis: Redis;
  /** Once lost it is not waited for any more, and whatever waits for it fails. */
  leave(): void;
  close(): void;
}

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
      // Between two attempts it would never end, and what waits for it neither: it has one more.
      if (redis.status === 'reconnecting') redis.once('ready', () => redis.disconnect());
      else redis.disconnect();
    },
  };
}
