/**
 * Counts which of our own requests a server may still count. A server with windows that do not
 * slide, or one that remembers each request for a window, gives back each request at most one
 * window after it came. So a program that is alone may send again what it sent a window ago,
 * whatever the headers show. (A server that counts in two windows at a time and weighs the older
 * one is recognised by what comes back: route-budget.ts.)
 *
 * A request is known only to have come some time before its answer. Three quarters of the shortest
 * round trip seen are taken off, because the way back may be the shorter one. A request that leaves
 * then comes when the old one no longer counts.
 */

/** Above this limit, requests answered at nearly the same time are remembered as one. */
const GRAINS = 1000;
/** Milliseconds added to every time at which something should be back. */
export const MARGIN_MS = 2;

/** The time from when a request left until its answer came, in monotonic milliseconds. */
interface Trip {
  sentMs: number;
  nowMs: number;
}

/** Our own requests to one route. Times are monotonic milliseconds. */
export interface Usage {
  /** The window and the shortest round trip, as far as they are known. */
  readonly pace: { windowMs: number | undefined; tripMs: number };
  /** Adds a request (or `n`) that was answered or given up: it came at some time in between. */
  add(trip: Trip, n?: number): void;
  /** Returns how many requests still count. */
  counted(nowMs: number): number;
  /** Returns the time at which at most `most` of them count. */
  downTo(most: number): number;
  /**
   * Returns how many requests certainly counted at both ends of a round trip, if each counts for a
   * window.
   */
  surely(trip: Trip): number;
  /** Returns the time at which a request answered at `ms` counts no more. */
  backMs(ms: number): number;
}

/** Requests answered between `fromMs` and `untilMs`, and sent no earlier than `sentMs`. */
interface Grain {
  sentMs: number;
  fromMs: number;
  untilMs: number;
  n: number;
}

/** Creates an empty usage. */
export function createUsage(): Usage {
  const pace: Usage['pace'] = { windowMs: undefined, tripMs: Number.POSITIVE_INFINITY };
  /** Oldest first. */
  const grains: Grain[] = [];
  let sum = 0;
  const tripMs = (): number => (pace.tripMs === Number.POSITIVE_INFINITY ? 0 : pace.tripMs);
  const backMs = (ms: number): number => ms - 0.75 * tripMs() + (pace.windowMs ?? 0) + MARGIN_MS;

  return {
    pace,
    backMs,
    add({ sentMs, nowMs }, n = 1) {
      sum += n;
      const last = grains.at(-1);
      const isClose = last && nowMs - last.fromMs < (pace.windowMs ?? 0) / GRAINS;
      if (isClose && sum > GRAINS) {
        last.n += n;
        last.untilMs = nowMs;
        last.sentMs = Math.min(last.sentMs, sentMs);
      } else grains.push({ sentMs, fromMs: nowMs, untilMs: nowMs, n });
    },
    counted(nowMs) {
      let over = 0;
      for (const { untilMs, n } of grains) {
        if (backMs(untilMs) > nowMs) break;
        sum -= n;
        over += 1;
      }
      grains.splice(0, over);
      return sum;
    },
    downTo(most) {
      let left = sum;
      for (const { untilMs, n } of grains) {
        left -= n;
        if (left <= most) return backMs(untilMs);
      }
      return Number.NEGATIVE_INFINITY;
    },
    surely({ sentMs, nowMs }) {
      const { windowMs = 0 } = pace;
      const atLeastMs = (grain: Grain) =>
        Math.min(grain.sentMs + windowMs, backMs(grain.untilMs) - 3 * tripMs());
      const still = grains.filter((grain) => grain.untilMs <= sentMs && atLeastMs(grain) > nowMs);
      return still.reduce((total, { n }) => total + n, 0);
    },
  };
}
