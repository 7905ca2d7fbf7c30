import { setImmediate as turn, setTimeout as pause } from 'node:timers/promises';
import type { Clock } from '../../src/domain/clock.ts';

/** A clock that stands still until told otherwise. */
export interface VirtualClock extends Clock {
  /** Lets `ms` pass; every sleeper on the way wakes at its own time, in order. */
  advance(ms: number): Promise<void>;
  /**
   * Runs until the promise settles, each time letting the time pass to the next sleeper. Throws
   * when it neither settles nor anything sleeps any more.
   */
  run<T>(promise: Promise<T>): Promise<T>;
}

interface Sleeper {
  atMs: number;
  wake(): void;
}

/** Idle turns of the event loop before a promise counts as stuck: real I/O may be under way. */
const PATIENCE = 5000;

export function virtualClock(startMs = Date.UTC(2026, 0, 1)): VirtualClock {
  const time = { elapsedMs: 0, sleepers: new Set<Sleeper>() };

  async function advance(ms: number): Promise<void> {
    const untilMs = time.elapsedMs + ms;
    await turn();
    for (let first = next(time); first && first.atMs <= untilMs; first = next(time)) {
      wake(time, first);
      await turn();
    }
    time.elapsedMs = untilMs;
  }

  async function run<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    const end = () => (settled = true);
    promise.then(end, end);
    for (let idle = 0; idle < PATIENCE;) {
      await turn();
      if (settled) return promise;
      const first = next(time);
      if (first) wake(time, first);
      else if (idle > 100) await pause(1);
      idle = first ? 0 : idle + 1;
    }
    throw new Error('nothing sleeps, and the promise does not settle');
  }

  return {
    now: () => startMs + time.elapsedMs,
    monotonic: () => time.elapsedMs,
    sleep: (ms, signal) => lie(time, time.elapsedMs + Math.max(0, ms), signal),
    advance,
    run,
  };
}

interface Time {
  elapsedMs: number;
  sleepers: Set<Sleeper>;
}

function lie(time: Time, atMs: number, signal: AbortSignal | undefined): Promise<void> {
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
}

/** The earliest; of equals the one that lay down first. */
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
