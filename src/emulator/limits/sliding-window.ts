import { TINY, type Algorithm, type Meter } from './limit-meter.ts';

/** Remembers every request for one window: never more than the limit in any window. */
export const slidingLog: Algorithm = ({ requests, windowSeconds }): Meter => {
  const windowMs = windowSeconds * 1000;
  /** The times of the requests that count, the oldest first. */
  const log: number[] = [];
  return ({ monotonic }) => {
    while (log[0] !== undefined && log[0] + windowMs <= monotonic) log.shift();
    const allowed = log.length < requests;
    if (allowed) log.push(monotonic);
    const oldest = log[0] ?? monotonic;
    return { allowed, remaining: requests - log.length, resetMs: oldest + windowMs - monotonic };
  };
};

/**
 * Keeps two counters, for the current window since the epoch and the one before. The latter counts
 * for the share that a window ending now covers of it, as if its requests came evenly.
 */
export const slidingCounter: Algorithm = ({ requests, windowSeconds }): Meter => {
  const windowMs = windowSeconds * 1000;
  let current = Number.NaN;
  let before = 0;
  let used = 0;

  /** Returns the time from the window's beginning until `wanted` more fit. */
  function untilFits(wanted: number, earlier: number, own: number): number {
    if (earlier + own + wanted <= requests) return 0;
    return windowMs * (1 - (requests - own - wanted) / earlier);
  }

  return ({ epoch }) => {
    const window = Math.floor(epoch / windowMs);
    if (window !== current) {
      before = window === current + 1 ? used : 0;
      used = 0;
      current = window;
    }
    const elapsedMs = epoch - window * windowMs;
    const free = () => requests - used - before * (1 - elapsedMs / windowMs);
    const allowed = free() + TINY >= 1;
    if (allowed) used += 1;
    const remaining = Math.max(0, Math.floor(free() + TINY));
    const wanted = remaining + 1;
    const here = used + wanted <= requests && before > 0;
    const resetMs = here
      ? untilFits(wanted, before, used) - elapsedMs
      : windowMs - elapsedMs + untilFits(wanted, used, 0);
    return { allowed, remaining, resetMs: Math.max(0, resetMs) };
  };
};
