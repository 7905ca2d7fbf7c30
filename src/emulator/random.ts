import type { Random } from '../model/clock.ts';

/** The same numbers for the same seed, every time (mulberry32; seeds are taken modulo 2^32). */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Makes identifiers such as `con_4k2m9x1q000b`: drawn from `random`, unique whatever it gives. */
export type Ids = (prefix: string) => string;

export function createIds(random: Random): Ids {
  let count = 0;
  return (prefix) => {
    count += 1;
    return `${prefix}_${letters(random)}${count.toString(36).padStart(4, '0')}`;
  };
}

/** Eight letters and digits. */
export function letters(random: Random): string {
  return Math.floor(random() * 36 ** 8)
    .toString(36)
    .padStart(8, '0');
}
