/** Provides a connection to Redis whose commands fail if they are not answered within a second. */
import { Redis, type RedisOptions } from 'ioredis';
import { setDeadline } from '../../system-clock.ts';
import { OPENING_MS, retryMs } from './redis-reconnect.ts';

/** The time limit of a command. 200 ms was too short under load. */
const COMMAND_MS = 1000;

/** Options for a connection that repeats no command and queues nothing for later. */
const waitsForNothing = {
  connectTimeout: OPENING_MS,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  retryStrategy: retryMs,
  connectionName: 'crm-mirror',
} satisfies RedisOptions;

/**
 * A connection that does not wait. The `commandTimeout` of ioredis is not used because it also
 * rejects commands whose responses arrived while this process was suspended. A duplicate of this
 * connection has no time limit.
 */
export class QuickRedis extends Redis {
  /** Takes a redis:// or rediss:// URL. */
  constructor(url: string) {
    super(url, waitsForNothing);
  }

  override sendCommand(...sent: Parameters<Redis['sendCommand']>): unknown {
    const [command] = sent;
    const cancel = setDeadline(COMMAND_MS, () => command.reject(new Error('Command timed out')));
    command.promise.then(cancel, cancel);
    return super.sendCommand(...sent);
  }
}
