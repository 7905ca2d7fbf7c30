import { setImmediate as turn, setTimeout as pause } from 'node:timers/promises';
import type { Clock } from '../src/model/clock.ts';

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
  let elapsedMs = 0;
  const sleepers = new Set<Sleeper>();

  const sleep: Clock['sleep'] = (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const leave = () => {
        sleepers.delete(sleeper);
        reject(signal?.reason);
      };
      const sleeper: Sleeper = {
        atMs: elapsedMs + Math.max(0, ms),
        wake() {
          sleepers.delete(sleeper);
          signal?.removeEventListener('abort', leave);
          resolve();
        },
      };
      sleepers.add(sleeper);
      signal?.addEventListener('abort', leave, { once: true });
    });

  /** The earliest, of equals the one that lay down first. */
  const next = () => {
    let first: Sleeper | undefined;
    for (const sleeper of sleepers) if (!first || sleeper.atMs < first.atMs) first = sleeper;
    return first;
  };
  const wake = (sleeper: Sleeper) => {
    elapsedMs = Math.max(elapsedMs, sleeper.atMs);
    sleeper.wake();
  };

  async function advance(ms: number): Promise<void> {
    const untilMs = elapsedMs + ms;
    await turn();
    for (let first = next(); first && first.atMs <= untilMs; first = next()) {
      wake(first);
      await turn();
    }
    elapsedMs = untilMs;
  }

  async function run<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    const end = () => (settled = true);
    promise.then(end, end);
    for (let idle = 0; ;) {
      await turn();
      if (settled) return promise;
      const first = next();
      if (first) wake(first);
      else if ((idle += 1) > PATIENCE) throw new Error('nothing sleeps and nothing settles');
      else if (idle > 100) await pause(1);
      if (first) idle = 0;
    }
  }

  return {
    now: () => startMs + elapsedMs,
    monotonic: () => elapsedMs,
    sleep,
    advance,
    run,
  };
}
