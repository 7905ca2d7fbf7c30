/**
 * Which of our own requests a server may still count. One that counts in windows that do not slide,
 * or remembers each request for a window, gives back each at most one window after it came; so who
 * is alone may send again what it sent a window ago, whatever the headers show. (One that counts in
 * two windows at a time, and weighs the older one, is found out by what comes back:
 * route-budget.ts.)
 *
 * When a request came is known only as some time before its answer. Three quarters of the shortest
 * round trip seen are taken off: the way back may be the shorter one. A request that leaves then
 * comes when the old one no longer counts.
 */

/** Above this limit, requests answered at nearly the same time are remembered as one. */
const GRAINS = 1000;
export const MARGIN_MS = 2;

/** From when a request left until its answer came; monotonic milliseconds. */
interface Trip {
  sentMs: number;
  nowMs: number;
}

/** Times are monotonic milliseconds. */
export interface Usage {
  /** The window and the shortest round trip, as far as they are known. */
  readonly pace: { windowMs: number | undefined; tripMs: number };
  /** One more (or `n`) was answered, or is given up: it came at some time in between. */
  add(trip: Trip, n?: number): void;
  /** How many count still. */
  counted(nowMs: number): number;
  /** When at most `most` of them count. */
  downTo(most: number): number;
  /** How many certainly counted at both ends of a round trip, were each counted for a window. */
  surely(trip: Trip): number;
  /** When what was answered at `ms` counts no more. */
  backMs(ms: number): number;
}

/** Answered between `fromMs` and `untilMs`, and sent no earlier than `sentMs`. */
interface Grain {
  sentMs: number;
  fromMs: number;
  untilMs: number;
  n: number;
}

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
