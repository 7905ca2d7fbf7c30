/** Ways to draw that several parts of a story share. */
import fc from 'fast-check';

/** In one of `weight + 10` times `weight`; else undefined. */
export function sometimes<T>(arbitrary: fc.Arbitrary<T>, weight = 1): fc.Arbitrary<T | undefined> {
  return fc.oneof({ weight: 10, arbitrary: fc.constant(undefined) }, { weight, arbitrary });
}

export function pick<const T>(values: readonly T[]): fc.Arbitrary<T> {
  return fc.constantFrom(...values);
}
