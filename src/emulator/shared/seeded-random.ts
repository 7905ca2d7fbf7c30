import type { Random } from '../../domain/clock.ts';

/** Returns a generator with the same numbers for the same seed (mulberry32, modulo 2^32). */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The state from which the next ids are generated. It is stored with the world. */
export interface Draws {
  readonly id: 'draws';
  start: number;
  count: number;
}

export function startDraws(random: Random): Draws {
  return { id: 'draws', start: Math.floor(random() * 2 ** 32), count: 0 };
}

/** Creates ids such as `con_4k2m9x1q000b`, which are random and always unique. */
export type Ids = (prefix: string) => string;

/** Creates an id generator. It counts in `draws`, and calls `drawn` each time. */
export function createIds(draws: Draws, drawn: () => void): Ids {
  return (prefix) => {
    draws.count += 1;
    drawn();
    const chance = seeded(draws.start + Math.imul(draws.count, 0x9e3779b9));
    return `${prefix}_${letters(chance)}${draws.count.toString(36).padStart(4, '0')}`;
  };
}

/** Returns eight random letters and digits. */
export function letters(random: Random): string {
  return Math.floor(random() * 36 ** 8)
    .toString(36)
    .padStart(8, '0');
}
