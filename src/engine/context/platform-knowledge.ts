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
import { metaValue } from '../../snapshot/database/meta-table.ts';
import type { Snapshot } from '../../snapshot/snapshot.ts';
import type { Clock } from '../../domain/clock.ts';
import { isExpected } from '../../domain/errors.ts';
import type { Account, Mirror } from './mirror-context.ts';

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

/** Provides the time by the platform's clock. */
export interface PlatformTime {
  /**
   * Requests the platform's time, once in a run. Throws only unexpected errors; a missing response
   * is not an error.
   */
  ask(): Promise<void>;
  /**
   * Returns the platform's current time in whole milliseconds since the epoch; null if it is
   * unknown.
   */
  now(): number | null;
}

/**
 * Reads the time from the `Date` header of a response; from then on our monotonic clock advances
 * it.
 */
export function createPlatformTime(
  { contacts }: Account['platform'],
  clock: Clock,
  stop: AbortSignal,
): PlatformTime {
  let isAsked = false;
  let answer: { date: number; monotonic: number } | undefined;
  return {
    async ask() {
      if (isAsked) return;
      isAsked = true;
      try {
        const { date } = await contacts.list({ page: 1, limit: 1, brief: true }, { signal: stop });
        if (date !== undefined) answer = { date, monotonic: clock.monotonic() };
      } catch (error) {
        if (!isExpected(error)) throw error;
      }
    },
    now: () => {
      if (!answer) return null;
      return Math.floor(answer.date + clock.monotonic() - answer.monotonic);
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
