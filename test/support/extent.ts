/**
 * How much of a long suite is played. `npm test` plays a sample of it, which is the same each time;
 * `npm run test:all` sets TEST_EXTENT=all and plays all of it, and the files named *.long.test.ts.
 */
export const playsAll = process.env['TEST_EXTENT'] === 'all';

/** `few` in `npm test`, `all` in `npm run test:all`. */
export function extent(few: number, all: number): number {
  return playsAll ? all : few;
}

/** In `npm test` every `nth` of them, beginning with the first. */
export function sampled<T>(cases: readonly T[], nth: number): readonly T[] {
  return playsAll ? cases : cases.filter((_, at) => at % nth === 0);
}
