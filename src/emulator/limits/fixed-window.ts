import type { Algorithm, Meter } from './limit-meter.ts';

/** A window begins with the first request after the last one ended. */
export const fixed: Algorithm = ({ requests, windowSeconds }): Meter => {
  let end = Number.NEGATIVE_INFINITY;
  let used = 0;
  return ({ monotonic }) => {
    if (monotonic >= end) {
      end = monotonic + windowSeconds * 1000;
      used = 0;
    }
    const allowed = used < requests;
    if (allowed) used += 1;
    return { allowed, remaining: requests - used, resetMs: end - monotonic };
  };
};

/** Windows lie end to end since the epoch: one of 60 seconds begins with each minute. */
export const aligned: Algorithm = ({ requests, windowSeconds }): Meter => {
  const windowMs = windowSeconds * 1000;
  let current = Number.NaN;
  let used = 0;
  return ({ epoch }) => {
    const window = Math.floor(epoch / windowMs);
    if (window !== current) {
      current = window;
      used = 0;
    }
    const allowed = used < requests;
    if (allowed) used += 1;
    return { allowed, remaining: requests - used, resetMs: (window + 1) * windowMs - epoch };
  };
};
