/**
 * Counts which of our own requests a server may still count. A server with fixed windows, or one
 * that remembers each request for a window, frees each request at most one window after it arrived.
 * So a program that is the only client may send again what it sent a window ago, whatever the
 * headers show. (A server that counts in two windows and weighs the older one is recognized by the
 * capacity that comes back: permit-decision.ts.)
 *
 * The arrival time of a request is known only to be some time before its response. Three quarters
 * of the shortest observed round trip are subtracted, because the return path may be the shorter
 * one. A request that leaves at the resulting time arrives when the old one no longer counts.
 */
import { z } from 'zod';

/** Our own requests to one route that may still count. Times are monotonic milliseconds. */
export const usage = z.object({
  windowMs: z.number().optional(),
  tripMs: z.number().optional(),
  /** The number of requests in `grains`. */
  sum: z.number(),
  /** `n` requests answered until `untilMs` and sent from `sentMs` on, if known; oldest first. */
  grains: z.array(
    z.object({
      sentMs: z.number().optional(),
      untilMs: z.number(),
      n: z.number(),
    }),
  ),
});
export type Usage = z.infer<typeof usage>;

/** Above this number, requests answered in the same of so many parts of a window are one. */
const GRAINS = 200;
/** Milliseconds added to every time at which capacity should be back. */
export const MARGIN_MS = 2;

/** The time from the departure of a request to its response, in monotonic milliseconds. */
interface Trip {
  /** Undefined if it is not known. */
  sentMs: number | undefined;
  nowMs: number;
}

/** Adds `n` requests that were answered or abandoned. They arrived at some time in between. */
export function addUse(usage: Usage, { sentMs, nowMs }: Trip, n = 1): void {
  const { grains, windowMs = 0 } = usage;
  const last = grains.at(-1);
  // Reports of several processes may arrive in another order than the responses.
  const atMs = Math.max(nowMs, last?.untilMs ?? nowMs);
  usage.sum += n;
  if (last && usage.sum > GRAINS && partOf(last.untilMs, windowMs) === partOf(atMs, windowMs)) {
    last.n += n;
    last.untilMs = atMs;
    if (last.sentMs !== undefined) last.sentMs = sentMs && Math.min(last.sentMs, sentMs);
  } else grains.push({ sentMs, untilMs: atMs, n });
}

function partOf(ms: number, windowMs: number): number {
  return windowMs > 0 ? Math.floor((GRAINS * ms) / windowMs) : ms;
}

/** Returns the time at which a request answered at `ms` no longer counts. */
export function backMs({ windowMs = 0, tripMs = 0 }: Usage, ms: number): number {
  return ms - 0.75 * tripMs + windowMs + MARGIN_MS;
}

/** Returns how many requests still count. */
export function counted(usage: Usage, nowMs: number): number {
  const { grains } = usage;
  const first = grains.findIndex(({ untilMs }) => backMs(usage, untilMs) > nowMs);
  const over = grains.splice(0, first < 0 ? grains.length : first);
  for (const { n } of over) usage.sum -= n;
  return usage.sum;
}

/** Returns the time at which at most `most` of them still count. */
export function downTo(usage: Usage, most: number): number {
  let left = usage.sum;
  for (const { untilMs, n } of usage.grains) {
    left -= n;
    if (left <= most) return backMs(usage, untilMs);
  }
  return Number.NEGATIVE_INFINITY;
}

/** Returns how many requests counted for certain at both ends of a round trip, once each. */
export function surelyCounted(usage: Usage, trip: { sentMs: number; nowMs: number }): number {
  const { windowMs = 0, tripMs = 0 } = usage;
  let sum = 0;
  for (const { sentMs, untilMs, n } of usage.grains) {
    if (sentMs === undefined || untilMs > trip.sentMs) continue;
    const atLeastMs = Math.min(sentMs + windowMs, backMs(usage, untilMs) - 3 * tripMs);
    if (atLeastMs > trip.nowMs) sum += n;
  }
  return sum;
}
