/**
 * What a run knows about the platform: the facts that responses prove, and the platform's time. A
 * large difference from our clock is said, and stored until it is over.
 *
 *   our clock and     what happens
 *   its are apart by
 *   five minutes      runs, `check` and `status` say so
 *   an hour           no hold ends, and nobody missing becomes due, by our clock alone
 */
import { isDeepStrictEqual } from 'node:util';
import { type Evidence, type PlatformFacts, withEvidence } from '../../records/platform-facts.ts';
import { type Meta, storedFact } from '../../store/database/meta-table.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import type { AccountReads } from './mirror-context.ts';
import { apartMs, type BothTimes, type Clock, sameClockMs } from '../../domain/clock.ts';
import { isExpected, type Problem } from '../../domain/errors.ts';

const facts = storedFact<PlatformFacts>('platform-facts', 'the facts about the platform');

export function factsIn({ meta }: { meta: Meta }): PlatformFacts {
  return facts.read(meta) ?? { defaults: {} };
}

export type LearnedFacts = ReturnType<typeof createFacts>;

/** Starts with the facts in the snapshot. The run stores what it learns only if it writes. */
export function createFacts(snapshot: Snapshot, writes: boolean) {
  const { meta, transaction } = snapshot;
  let now = factsIn(snapshot);
  return {
    known: (): PlatformFacts => now,
    learn(evidence: Evidence): void {
      // Another run of this process may have stored something in the meantime.
      const before = writes ? factsIn(snapshot) : now;
      now = withEvidence(before, evidence);
      if (writes && !isDeepStrictEqual(now, before)) transaction(() => facts.write(meta, now));
    },
  };
}

interface Clocks {
  clock: Clock;
  platformNow(): number | undefined;
}

/** Returns the later of both clocks' times, because either may be slow or set back. */
export function latestNow({ clock, platformNow }: Clocks): number {
  return Math.max(clock.now(), platformNow() ?? 0);
}

type StoredClocks = Clocks & { snapshot: Snapshot };

const restoredName = 'restored-until';

/**
 * Stores until when the snapshot had not seen what a backup lacks. Call it in a transaction. The
 * newest contact counts, too: the platform's clock may be ahead without telling its time.
 */
export function keepRestored(run: StoredClocks): void {
  const { meta, staging } = run.snapshot;
  meta.set(restoredName, String(Math.max(latestNow(run), staging.newestCreated('contact'))));
}

/** Returns until when a restored backup may lack contacts of ours, by the later clock, or 0. */
export function restoredUntil({ meta }: Snapshot): number {
  return Number(meta.get(restoredName) ?? 0);
}

/** Returns the latest time that the platform's clock may have shown at a time of ours. */
export function latestByPlatform({ clock, platformNow }: Clocks, at: number): number {
  const now = clock.now();
  const ahead = (platformNow() ?? now) - now;
  return at + (Math.abs(ahead) < sameClockMs ? 0 : ahead) + sameClockMs;
}

const minuteMs = 60_000;
const toldMs = 5 * minuteMs;

const difference = storedFact<{ aheadMs: number; since: number }>(
  'clock difference',
  'the difference of the clocks',
);

/** Returns the last difference of over five minutes that was stored, unless it is over. */
export function storedDifference(meta: Meta) {
  return difference.read(meta);
}

/** Returns by how many milliseconds our clock is ahead of the platform's last; null if unknown. */
export function aheadOf(clocks: StoredClocks): number | null {
  const { at, platformAt } = nowByBoth(clocks);
  if (platformAt !== null) return at - platformAt;
  return storedDifference(clocks.snapshot.meta)?.aheadMs ?? null;
}

/** Returns the time by both clocks; the platform's is known from its last response. */
export function nowByBoth({ clock, platformNow }: Clocks): BothTimes {
  const at = platformNow();
  return { at: clock.now(), platformAt: at === undefined ? null : Math.floor(at) };
}

/** Returns the same; while the platform states no time, its last known difference counts. */
export function nowByKnown(clocks: StoredClocks): BothTimes {
  return timesBy(clocks)();
}

/** Returns a function that tells the time as `nowByKnown` does; reads the snapshot only once. */
export function timesBy({ clock, platformNow, snapshot }: StoredClocks): () => BothTimes {
  const aheadMs = storedDifference(snapshot.meta)?.aheadMs;
  return () => {
    const at = clock.now();
    const by = platformNow() ?? (aheadMs === undefined ? undefined : at - aheadMs);
    return { at, platformAt: by === undefined ? null : Math.floor(by) };
  };
}

export function isTold(aheadMs: number | null): aheadMs is number {
  return Math.abs(aheadMs ?? 0) > toldMs;
}

export const clockFix = 'see which of them is wrong, and set this one right (by NTP)';

export function sayDifference(aheadMs: number): { reason: string; fix: string } {
  const minutes = Math.round(Math.abs(aheadMs) / minuteMs);
  const hours = Math.round(minutes / 60);
  const long = hours < 48 ? `${hours} hours` : `${Math.round(hours / 24)} days`;
  const many = minutes < 120 ? `${minutes} minutes` : long;
  const is = aheadMs > 0 ? 'ahead of' : 'behind';
  const so =
    Math.abs(aheadMs) > apartMs ? ', so that nothing that waits becomes due by it alone' : '';
  const reason = `the clock of this machine is ${many} ${is} that of the platform${so}`;
  return { reason, fix: clockFix };
}

/** Returns a note about the difference if it is large. */
export function noteDifference(mirror: StoredClocks): Problem[] {
  const aheadMs = aheadOf(mirror);
  return isTold(aheadMs) ? [{ code: 'note', ...sayDifference(aheadMs) }] : [];
}

/** Stores the difference if it is large, or else that it is over. */
export function storeDifference(mirror: StoredClocks): void {
  const { clock, platformNow, snapshot } = mirror;
  if (platformNow() === undefined) return;
  const { meta, transaction } = snapshot;
  const aheadMs = aheadOf(mirror);
  const before = storedDifference(meta);
  const isOver = !isTold(aheadMs);
  if (isOver ? !before : before && Math.abs(before.aheadMs - aheadMs) < minuteMs) return;
  const next = isOver ? undefined : { aheadMs, since: before?.since ?? clock.now() };
  transaction(() => difference.write(meta, next));
}

/** Returns what asks the platform for its time once. No response is no error. */
export function askOnce({ contacts }: AccountReads, signal: AbortSignal) {
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

type AskingClocks = StoredClocks & { askPlatformTime(): Promise<void> };

/** Asks the platform for its time again if the clocks seem to differ. */
export async function confirmDifference(run: AskingClocks): Promise<void> {
  if (isTold(aheadOf(run))) await run.askPlatformTime();
}

/** Asks the platform for its time unless it is known, and the clocks agree. */
export async function learnTime(run: AskingClocks): Promise<void> {
  if (run.platformNow() === undefined || isTold(aheadOf(run))) await run.askPlatformTime();
}
