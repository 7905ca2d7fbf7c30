import type { Clock } from '../../domain/clock.ts';

const HOLDS_MS = 15 * 60_000;

/**
 * Which reading was the last one, and for how long it counts: of a source that cannot be asked
 * whether it is still what was read.
 */
export function holding(clock: Clock): {
  keep(reading: string): void;
  still(reading: string): boolean;
} {
  let latest: { reading: string; at: number } | undefined;
  return {
    keep: (reading) => void (latest = { reading, at: clock.now() }),
    still(reading) {
      if (latest?.reading !== reading) return false;
      const ageMs = clock.now() - latest.at;
      return ageMs >= 0 && ageMs < HOLDS_MS;
    },
  };
}
