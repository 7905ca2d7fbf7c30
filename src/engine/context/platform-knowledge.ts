/** Keeps what a run knows of the platform: facts that its answers prove, and its time of day. */
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

/** Returns the facts about the platform that the snapshot keeps. */
export function factsIn({ meta }: Pick<Snapshot, 'meta'>): PlatformFacts {
  return metaValue(meta, name, platformFacts) ?? platformFacts.parse({});
}

/** The facts that one run knows of the platform. */
export interface LearnedFacts {
  known(): PlatformFacts;
  learn(evidence: Evidence): void;
}

/** Begins with what the snapshot keeps. A run stores what it learns if it writes. */
export function createFacts(
  { meta, transaction }: Pick<Snapshot, 'meta' | 'transaction'>,
  writes: boolean,
): LearnedFacts {
  let now = factsIn({ meta });
  return {
    known: () => now,
    learn(evidence) {
      // Another run of this process may have stored something since.
      now = withEvidence(writes ? factsIn({ meta }) : now, evidence);
      const text = canonicalJson(now);
      if (writes && text !== meta.get(name)) transaction(() => meta.set(name, text));
    },
  };
}

/** Tells the time by the platform's clock. */
export interface PlatformTime {
  /** Asks the platform for its time, once in a run. Throws bugs only: it need not answer. */
  ask(): Promise<void>;
  /** Returns its time now, in whole milliseconds since the epoch; null if it is not known. */
  now(): number | null;
}

/** Reads the time from the `Date` of an answer; from then on our monotonic clock carries it on. */
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

/** Returns the latest time that it may be: either clock may be slow, or was set back. */
export function latestNow({ clock, platformNow }: Pick<Mirror, 'clock' | 'platformNow'>): number {
  return Math.max(clock.now(), platformNow() ?? 0);
}
