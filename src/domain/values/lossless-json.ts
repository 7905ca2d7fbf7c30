/**
 * Returns the value of a JSON text, or undefined if the text is not JSON. A whole number that a
 * double cannot represent remains text, so that two ids never become equal.
 */
export function parseJson(text: string): unknown {
  try {
    if (!/\d{16}/.test(text)) return JSON.parse(text);
    return JSON.parse(text, (_, value: unknown, context?: { source?: string }) => {
      const isRounded = typeof value === 'number' && !Number.isSafeInteger(value);
      return isRounded && /^-?\d+$/.test(context?.source ?? '') ? context?.source : value;
    });
  } catch {
    return undefined;
  }
}

/** The maximum depth of lists and objects that is accepted. No useful value is deeper. */
export const mostLevels = 500;

/** Returns whether a value is nested deeper than that, which would overflow recursive code. */
export function isTooDeep(value: unknown): boolean {
  let level: object[] = isNested(value) ? [value] : [];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth === mostLevels) return true;
    level = level.flatMap((one) => Object.values(one).filter(isNested));
  }
  return false;
}

function isNested(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
