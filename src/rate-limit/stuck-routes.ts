/** Tells when nothing but refusals comes of a route, and when a request gets through again. */
import type { Clock } from '../domain/clock.ts';

/** It is said when one request was refused so often, and for so long no other got through. */
const leastRefusals = 3;
const leastMs = 30_000;

export interface Stuck {
  route: string;
  /** For how long one was refused again and again, milliseconds; undefined: it gets through. */
  forMs: number | undefined;
}

export interface StuckWatch {
  through(): void;
  /** One request was refused so often by now, for the first time at `sinceMs` (monotonic). */
  refused(refusals: number, sinceMs: number): void;
}

export function watchStuck(route: string, clock: Clock, tell: (told: Stuck) => void): StuckWatch {
  let throughMs = Number.NEGATIVE_INFINITY;
  let isStuck = false;
  return {
    through() {
      throughMs = clock.monotonic();
      if (isStuck) tell({ route, forMs: undefined });
      isStuck = false;
    },
    refused(refusals, sinceMs) {
      const forMs = clock.monotonic() - Math.max(sinceMs, throughMs);
      if (isStuck || refusals < leastRefusals || forMs < leastMs) return;
      isStuck = true;
      tell({ route, forMs });
    },
  };
}
