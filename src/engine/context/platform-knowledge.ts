/**
 * Provides what a run knows about the platform: the facts that responses prove, and the platform's
 * time.
 */
import {
  type Evidence,
  platformFacts,
  type PlatformFacts,
  withEvidence,
} from '../../records/platform-facts.ts';
import { canonicalJson } from '../../domain/record.ts';
import { metaValue } from '../../store/database/meta-table.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import type { Mirror } from './mirror-context.ts';

const name = 'platform-facts';

/** Returns the facts about the platform that the snapshot holds. */
export function factsIn({ meta }: Pick<Snapshot, 'meta'>): PlatformFacts {
  return metaValue(meta, name, platformFacts) ?? platformFacts.parse({});
}

/** The facts that one run knows about the platform. */
export interface LearnedFacts {
  known(): PlatformFacts;
  learn(evidence: Evidence): void;
}

/** Starts with the facts in the snapshot. The run stores what it learns only if it writes. */
export function createFacts(
  { meta, transaction }: Pick<Snapshot, 'meta' | 'transaction'>,
  writes: boolean,
): LearnedFacts {
  let now = factsIn({ meta });
  return {
    known: () => now,
    learn(evidence) {
      // Another run of this process may have stored something in the meantime.
      now = withEvidence(writes ? factsIn({ meta }) : now, evidence);
      const text = canonicalJson(now);
      if (writes && text !== meta.get(name)) transaction(() => meta.set(name, text));
    },
  };
}

/**
 * Returns the later of the two clocks' times, because either clock may be slow or may have been set
 * back.
 */
export function latestNow({ clock, platformNow }: Pick<Mirror, 'clock' | 'platformNow'>): number {
  return Math.max(clock.now(), platformNow() ?? 0);
}

const restoredName = 'restored-until';

/** Stores until when the snapshot had not seen what a backup lacks. Call it in a transaction. */
export function keepRestored(run: Pick<Mirror, 'clock' | 'platformNow' | 'snapshot'>): void {
  run.snapshot.meta.set(restoredName, String(latestNow(run)));
}

/**
 * Returns until when a backup that was put back may lack contacts of ours, by the later of both
 * clocks in milliseconds since the epoch; 0 if none ever was.
 */
export function restoredUntil({ meta }: Mirror['snapshot']): number {
  return Number(meta.get(restoredName) ?? 0);
}

/** Smaller differences between the clocks may come from the resolution and the way of a `Date`. */
const sameClockMs = 2_000;

/** Returns the latest time that the platform's clock may have shown at a time of ours. */
export function latestByPlatform(
  { clock, platformNow }: Pick<Mirror, 'clock' | 'platformNow'>,
  at: number,
): number {
  const now = clock.now();
  const ahead = (platformNow() ?? now) - now;
  return at + (Math.abs(ahead) < sameClockMs ? 0 : ahead) + sameClockMs;
}
