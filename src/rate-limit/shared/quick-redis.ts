/** Provides a connection to Redis whose commands fail if they are not answered within a second. */
import { type Command, Redis } from 'ioredis';
import { waitsForNothing } from './redis-reconnect.ts';

/** The time limit of a command. 200 ms was too short under load. */
const COMMAND_MS = 1000;
/** Long enough to read the responses that have arrived. */
const HEARING_MS = 100;

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
    setDeadline(sent[0]);
    return super.sendCommand(...sent);
  }
}

/**
 * Rejects the command after COMMAND_MS, but first lets the event loop read responses that have
 * arrived.
 */
function setDeadline(command: Command): void {
  const late = (): void => command.reject(new Error('Command timed out'));
  let timer = setTimeout(() => (timer = setTimeout(late, HEARING_MS)), COMMAND_MS);
  const answered = (): void => clearTimeout(timer);
  command.promise.then(answered, answered);
}
