
const composites = new WeakMap<AbortSignal, WeakMap<AbortSignal, AbortSignal>>();

/**
 * Returns one abort signal for two, of which either may be missing. The same two give the same
 * signal: making one for every request would take a tenth of the request's time.
 */
export function anySignal(
  one: AbortSignal | undefined,
  other: AbortSignal | undefined,
): AbortSignal | undefined {
  if (!one || !other || one === other) return one ?? other;
  const withOne = composites.get(one) ?? new WeakMap<AbortSignal, AbortSignal>();
  composites.set(one, withOne);
  const both = withOne.get(other) ?? AbortSignal.any([one, other]);
  withOne.set(other, both);
  return both;
}
