/**
 * Compares our clock with the platform's, which the `Date` header of its responses shows.
 *
 *   apart by          what happens
 *   five minutes      runs, `check` and `status` say so
 *   an hour           no hold ends, and nobody missing becomes due, by our clock alone
 */
import { z } from 'zod';
import { apartMs } from '../../domain/clock.ts';
import { isExpected, type Problem } from '../../domain/errors.ts';
import type { CanaryTime } from '../../domain/guards/canary.ts';
import { type Meta, metaValue } from '../../store/database/meta-table.ts';
import type { Account, Mirror } from './mirror-context.ts';
import type { RunContext } from './run-context.ts';

const minuteMs = 60_000;
const toldMs = 5 * minuteMs;

const name = 'clock difference';
const difference = z.object({ aheadMs: z.number(), since: z.number() });

type Clocks = Pick<Mirror, 'clock' | 'platformNow' | 'snapshot'>;

/** Returns the last difference of over five minutes that was stored, unless it is over. */
export function storedDifference(meta: Meta): z.infer<typeof difference> | undefined {
  return metaValue(meta, name, difference);
}

/**
 * Returns by how much our clock is ahead of the platform's, in milliseconds: now, or when the
 * platform last stated its time; null if it never did.
 */
export function aheadOf(clocks: Clocks): number | null {
  const { at, platformAt } = nowByBoth(clocks);
  if (platformAt !== null) return at - platformAt;
  return storedDifference(clocks.snapshot.meta)?.aheadMs ?? null;
}

/** Returns the time by both clocks; the platform's is known from its last response. */
export function nowByBoth({ clock, platformNow }: Omit<Clocks, 'snapshot'>): CanaryTime {
  const at = platformNow();
  return { at: clock.now(), platformAt: at === undefined ? null : Math.floor(at) };
}

/** Returns the same; while the platform states no time, its last known difference counts. */
export function nowByKnown(clocks: Clocks): CanaryTime {
  const at = clocks.clock.now();
  const aheadMs = aheadOf(clocks);
  return { at, platformAt: aheadMs === null ? null : Math.floor(at - aheadMs) };
}

/** Returns whether our clock alone proves nothing. */
function areApart(aheadMs: number | null): boolean {
  return Math.abs(aheadMs ?? 0) > apartMs;
}

/** Returns whether a difference is large enough to be said. */
export function isTold(aheadMs: number | null): aheadMs is number {
  return Math.abs(aheadMs ?? 0) > toldMs;
}

/** What to do about clocks that differ. */
export const clockFix = 'see which of them is wrong, and set this one right (by NTP)';

/** Returns the sentence about a difference, and what to do. */
export function sayDifference(aheadMs: number): Omit<Problem, 'code'> {
  const minutes = Math.round(Math.abs(aheadMs) / minuteMs);
  const hours = Math.round(minutes / 60);
  const long = hours < 48 ? `${hours} hours` : `${Math.round(hours / 24)} days`;
  const many = minutes < 120 ? `${minutes} minutes` : long;
  const is = aheadMs > 0 ? 'ahead of' : 'behind';
  const so = areApart(aheadMs) ? ', so that nothing that waits becomes due by it alone' : '';
  const reason = `the clock of this machine is ${many} ${is} that of the platform${so}`;
  return { reason, fix: clockFix };
}

/** Returns a note about the difference if it is large. */
export function noteDifference(mirror: Clocks): Problem[] {
  const aheadMs = aheadOf(mirror);
  return isTold(aheadMs) ? [{ code: 'note', ...sayDifference(aheadMs) }] : [];
}

/** Stores the difference if it is large, or else that it is over. */
export function storeDifference(mirror: Clocks): void {
  const { clock, platformNow, snapshot } = mirror;
  if (platformNow() === undefined) return;
  const { meta, transaction } = snapshot;
  const aheadMs = aheadOf(mirror);
  const before = storedDifference(meta);
  const isOver = !isTold(aheadMs);
  if (isOver ? !before : before && Math.abs(before.aheadMs - aheadMs) < minuteMs) return;
  transaction(() => {
    if (isOver) meta.drop(name);
    else meta.set(name, JSON.stringify({ aheadMs, since: before?.since ?? clock.now() }));
  });
}

/**
 * Returns a function that asks the platform for its time, once in a run. It throws only unexpected
 * errors; a missing response is not an error.
 */
export function askOnce({ contacts }: Account['platform'], signal: AbortSignal) {
  let asked: Promise<void> | undefined;
  const ask = async (): Promise<void> => {
    try {
      await contacts.list({ page: 1, limit: 1, brief: true }, { signal });
    } catch (error) {
      if (!isExpected(error)) throw error;
    }
  };
  return async (): Promise<void> => (asked ??= ask());
}

/** Asks the platform for its time again if the clocks seem to differ. */
export async function confirmDifference(run: RunContext): Promise<void> {
  if (isTold(aheadOf(run))) await run.askPlatformTime();
}
