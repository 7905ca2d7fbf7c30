/**
 * Virtual time: a wait takes none of the real time. The clock stands still until it is told to run,
 * and then moves to the time of the next sleeper, again and again.
 */
import type { Clock } from '../../domain/clock.ts';

export interface VirtualClock extends Clock {
  /** Lets `ms` pass. Every sleeper on the way wakes at its own time, in order. */
  advance(ms: number): Promise<void>;
  /**
   * Runs until the promise settles, each time letting the time pass to the next sleeper. Throws if
   * the promise does not settle and nothing sleeps any more.
   */
  run<T>(promise: Promise<T>): Promise<T>;
  /** Lets no time pass in `run` until the promise of real work settles. */
  hold<T>(real: Promise<T>): Promise<T>;
}

interface Sleeper {
  atMs: number;
  wake(): void;
}

interface Time {
  elapsedMs: number;
  sleepers: Set<Sleeper>;
  /** How much real work has not ended yet. */
  holds: number;
}

/** Idle turns of the event loop before a promise counts as stuck: real I/O may be under way. */
const mostIdleTurns = 5000;
/** Idle turns after which the clock no longer occupies the processor while it waits. */
const busyTurns = 100;

/**
 * Creates a clock that shows `startMs`, in milliseconds since the epoch. `pause` waits in real
 * time, and with 0 for the next turn of the event loop.
 */
export function createVirtualClock({
  startMs,
  pause,
}: {
  startMs: number;
  pause(ms: number): Promise<void>;
}): VirtualClock {
  const time: Time = { elapsedMs: 0, sleepers: new Set(), holds: 0 };

  async function advance(ms: number): Promise<void> {
    const untilMs = time.elapsedMs + ms;
    await pause(0);
    for (let first = next(time); first && first.atMs <= untilMs; first = next(time)) {
      wake(time, first);
      await pause(0);
    }
    time.elapsedMs = untilMs;
  }

  async function run<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    const end = () => (settled = true);
    promise.then(end, end);
    for (let idle = 0; idle < mostIdleTurns;) {
      await pause(0);
      if (settled) return promise;
      const first = time.holds > 0 ? undefined : next(time);
      if (first) wake(time, first);
      else if (idle > busyTurns) await pause(1);
      // Real work may take as long as it likes.
      if (first) idle = 0;
      else idle = time.holds > 0 ? Math.min(idle + 1, busyTurns + 1) : idle + 1;
    }
    throw new Error('nothing sleeps, and the promise does not settle');
  }

  return {
    now: () => startMs + time.elapsedMs,
    monotonic: () => time.elapsedMs,
    sleep: (ms, signal) => {
      const atMs = time.elapsedMs + Math.max(0, ms);
      return new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason);
        const leave = () => {
          time.sleepers.delete(sleeper);
          reject(signal?.reason);
        };
        const rise = () => {
          signal?.removeEventListener('abort', leave);
          resolve();
        };
        const sleeper = { atMs, wake: rise };
        time.sleepers.add(sleeper);
        signal?.addEventListener('abort', leave, { once: true });
      });
    },
    advance,
    run,
    async hold(real) {
      time.holds += 1;
      try {
        return await real;
      } finally {
        time.holds -= 1;
      }
    },
  };
}

/** Returns the earliest sleeper; of equals the one that lay down first. */
function next({ sleepers }: Time): Sleeper | undefined {
  let first: Sleeper | undefined;
  for (const sleeper of sleepers) if (!first || sleeper.atMs < first.atMs) first = sleeper;
  return first;
}

function wake(time: Time, sleeper: Sleeper): void {
  time.elapsedMs = Math.max(time.elapsedMs, sleeper.atMs);
  time.sleepers.delete(sleeper);
  sleeper.wake();
}
