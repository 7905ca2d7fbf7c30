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
