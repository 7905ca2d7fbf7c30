/**
 * Virtual time: a wait takes none of the real time. The clock stands still until it is told to run,
 * and then moves to the time of the next sleeper, again and again.
 */

export type VirtualClock = ReturnType<typeof createVirtualClock>;

interface Sleeper {
  atMs: number;
  wake(): void;
}

/** Idle turns of the event loop before a promise counts as stuck: real I/O may be under way. */
const mostIdleTurns = 5000;
/** Idle turns after which the clock no longer occupies the processor while it waits. */
const busyTurns = 100;

/** Creates a clock. `pause` waits in real time, and with 0 for the next turn of the event loop. */
export function createVirtualClock(startMs: number, pause: (ms: number) => Promise<void>) {
  let elapsedMs = 0;
  let holds = 0;
  const sleepers = new Set<Sleeper>();

  /** Wakes the earliest sleeper until then, and of equals the one that lay down first. */
  function wakeNext(untilMs: number): boolean {
    let first: Sleeper | undefined;
    for (const sleeper of sleepers) if (!first || sleeper.atMs < first.atMs) first = sleeper;
    if (!first || first.atMs > untilMs) return false;
    elapsedMs = Math.max(elapsedMs, first.atMs);
    sleepers.delete(first);
    first.wake();
    return true;
  }

  return {
    now: () => startMs + elapsedMs,
    monotonic: () => elapsedMs,
    async sleep(ms: number, signal?: AbortSignal): Promise<void> {
      const atMs = elapsedMs + Math.max(0, ms);
      return new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason);
        const leave = () => {
          sleepers.delete(sleeper);
          reject(signal?.reason);
        };
        const wake = () => {
          signal?.removeEventListener('abort', leave);
          resolve();
        };
        const sleeper = { atMs, wake };
        sleepers.add(sleeper);
        signal?.addEventListener('abort', leave, { once: true });
      });
    },
    /** Lets `ms` pass. Every sleeper on the way wakes at its own time, in order. */
    async advance(ms: number): Promise<void> {
      const untilMs = elapsedMs + ms;
      await pause(0);
      while (wakeNext(untilMs)) await pause(0);
      elapsedMs = untilMs;
    },
    /** Lets time pass to the next sleeper until the promise settles. Throws if nothing sleeps. */
    async run<T>(promise: Promise<T>): Promise<T> {
      let settled = false;
      const end = () => (settled = true);
      promise.then(end, end);
      for (let idle = 0; idle < mostIdleTurns;) {
        await pause(0);
        if (settled) return promise;
        if (holds === 0 && wakeNext(Infinity)) idle = 0;
        else {
          if (idle > busyTurns) await pause(1);
          // Real work may take as long as it likes.
          idle = holds > 0 ? Math.min(idle + 1, busyTurns + 1) : idle + 1;
        }
      }
      throw new Error('nothing sleeps, and the promise does not settle');
    },
    /** Lets no time pass in `run` until the promise of real work settles. */
    async hold<T>(real: Promise<T>): Promise<T> {
      holds += 1;
      try {
        return await real;
      } finally {
        holds -= 1;
      }
    },
  };
}
