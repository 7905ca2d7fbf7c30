/**
 * How much of a long suite is played. `npm test` plays a sample; `npm run test:ci` a draw of the
 * long files and simulations; `npm run test:all` everything. What is sampled and drawn follows from
 * SEED_BASE, which vitest.config.ts takes from the commit: the same commit plays the same, the next
 * one something else.
 */
import { seeded } from '../../src/emulator/shared/seeded-random.ts';

const named = process.env['TEST_EXTENT'];
export const playsAll = named === 'all';
export const playsDraw = named === 'ci';

/** The first seed of what is drawn. */
export const seedBase = Number(process.env['SEED_BASE'] ?? 1);

/** `few` in `npm test` and `npm run test:ci`, `all` in `npm run test:all`. */
export function extent(few: number, all: number): number {
  return playsAll ? all : few;
}

/** Every `nth` of them, beginning with one that the commit draws; in `npm run test:all` each. */
export function sampled<T>(cases: readonly T[], nth: number): readonly T[] {
  const first = seedBase % Math.min(nth, Math.max(cases.length, 1));
  return playsAll ? cases : cases.filter((_, at) => at % nth === first);
}

/** `n` of them, as the commit draws them; in `npm run test:all` each. */
export function drawn<T>(cases: readonly T[], n: number): T[] {
  if (playsAll) return [...cases];
  const random = seeded(seedBase);
  const keyed = cases.map((one) => ({ one, key: random() }));
  return keyed
    .toSorted((a, b) => a.key - b.key)
    .slice(0, n)
    .map(({ one }) => one);
}
