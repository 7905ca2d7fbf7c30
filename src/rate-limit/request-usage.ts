/**
 * Counts which of our own requests a server may still count. A server with fixed windows, or one
 * that remembers each request for a window, frees each request at most one window after it arrived.
 * So a program that is the only client may send again what it sent a window ago, whatever the
 * headers show. (A server that counts in two windows and weighs the older one is recognized by the
 * capacity that comes back: route-budget.ts.)
 *
 * The arrival time of a request is known only to be some time before its response. Three quarters
 * of the shortest observed round trip are subtracted, because the return path may be the shorter
 * one. A request that leaves at the resulting time arrives when the old one no longer counts.
 */

/**
 * Above this limit, requests whose responses arrive at nearly the same time are remembered as one.
 */
const GRAINS = 1000;
/** Milliseconds added to every time at which capacity should be back. */
export const MARGIN_MS = 2;

/** The time from the departure of a request to its response, in monotonic milliseconds. */
interface Trip {
  sentMs: number;
  nowMs: number;
}

/** Tracks our own requests to one route. Times are monotonic milliseconds. */
export interface Usage {
  /** The window and the shortest round trip, if known. */
  readonly pace: { windowMs: number | undefined; tripMs: number };
  /** Adds a request (or `n`) that was answered or abandoned. It arrived at some time in between. */
  add(trip: Trip, n?: number): void;
  /** Returns how many requests still count. */
  counted(nowMs: number): number;
  /** Returns the time at which at most `most` of them still count. */
  downTo(most: number): number;
  /**
   * Returns how many requests certainly counted at both ends of a round trip, assuming that each
   * counts for one window.
   */
  surely(trip: Trip): number;
  /** Returns the time at which a request answered at `ms` no longer counts. */
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
  /** The grains, oldest first. */
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
