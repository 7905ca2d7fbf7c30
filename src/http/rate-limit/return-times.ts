/** Tells when capacity returns that others share, as far as our own requests show it. */
import type { LearnedLimits } from './learned-limits.ts';
import { units } from './limit-standing.ts';
import { downTo } from './request-usage.ts';

/** The share of others above which they may be clients like this one, which send in bursts. */
const MOST_FOREIGN = 0.34;
/** Requests that others may send beyond what they did. */
const SPARE = 2;
const NEVER = Number.POSITIVE_INFINITY;

/** Returns how many units are held back to notice early that capacity is back. */
export function sensorsOf(limit: number): number {
  return Math.min(4, Math.max(1, Math.round(limit * 0.02)));
}

/** Returns when some of our own no longer count, with others and a window that opened short. */
export function someBackAt({ window, usage, mark, limit = 1 }: LearnedLimits): number {
  if (!window.short || !mark || mark.left === 0) return NEVER;
  return downTo(usage, Math.max(0, mark.counted - Math.max(2, sensorsOf(limit))));
}

/**
 * Returns when a unit is free again because our own requests no longer count, if others go on as
 * they did. It is taken only where capacity was seen not to come back bit by bit, and others use a
 * small part: whatever the server counts, it then counts no more than that.
 */
export function ownBackAt(memory: LearnedLimits, nowMs: number): number {
  const { usage, foreign, window, rigidUntilMs, limit = 1 } = memory;
  const share = Math.max(foreign.now, foreign.before);
  if (!window.short || share > MOST_FOREIGN || nowMs >= rigidUntilMs) return NEVER;
  const others = Math.ceil(share * limit) + SPARE;
  return downTo(usage, Math.max(0, units(memory) - others - 1));
}
