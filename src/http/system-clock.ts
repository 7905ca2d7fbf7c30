import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises';
import type { Clock } from '../domain/clock.ts';

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  async sleep(ms, signal) {
    try {
      if (ms > 0) await wait(ms, undefined, { signal });
      // A timer would take at least a millisecond, which is too long for code that yields often.
      else await turn(undefined, { signal });
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    }
  },
};

// Sets time limits that hold for a process that was suspended, too.

/** Long enough to read the responses to everything in flight. */
const READING_MS = 100;

/**
 * Calls `expire` after `ms` milliseconds; the returned function cancels that. If the process was
 * suspended, a response may have arrived unread: it waits to read one, unless `isSent` is false.
 */
export function setDeadline(ms: number, expire: () => void, isSent = () => true): () => void {
  const overdue = (): void => {
    if (isSent()) timer = setTimeout(expire, READING_MS);
    else expire();
  };
  let timer = setTimeout(overdue, ms);
  return () => clearTimeout(timer);
}
