/** Reads the fields of a CRM record, and normalizes their texts for comparison. */

/**
 * Returns a field of a CRM record by its exact name or, if there is none, by its dotted path;
 * undefined if it is absent. `consents[].status` is the list of what its elements have there.
 */
export function fieldAt(value: unknown, field: string): unknown {
  return follow(value, pathOf(value, field), false);
}

/**
 * Returns a field as `fieldAt` does. If its dotted path leads through something without fields (a
 * text, or a list with elements), returns an object, which neither looks empty nor has elements.
 */
export function fieldOrEnd(value: unknown, field: string): unknown {
  return follow(value, pathOf(value, field), true);
}

function pathOf(value: unknown, field: string): string[] {
  return isObject(value) && Object.hasOwn(value, field) ? [field] : field.split('.');
}

function follow(value: unknown, [name, ...rest]: readonly string[], marksEnd: boolean): unknown {
  if (name === undefined) return value;
  if (value === undefined || value === null) return undefined;
  if (!isObject(value) || (marksEnd && Array.isArray(value) && value.length > 0)) {
    return marksEnd ? { end: value } : undefined;
  }
  if (Object.hasOwn(value, name)) {
    const inner: unknown = Reflect.get(value, name);
    return follow(inner, rest, marksEnd);
  }
  const list = name.endsWith('[]') ? follow(value, [name.slice(0, -2)], marksEnd) : undefined;
  return list && [list].flat().flatMap((one) => follow(one, rest, marksEnd));
}

/** Returns whether a value is an object or a list. */
export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** Returns whether a value is an object and no list. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return isObject(value) && !Array.isArray(value);
}

/** Returns the trimmed text of a field, '' if empty; undefined for a list or an object. */
export function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value.trim();
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return value === null || value === undefined ? '' : undefined;
}

/** Returns whether a text lost a character (U+FFFD) on its way, so that what it said is unknown. */
export function isLossy(value: unknown): boolean {
  return typeof value === 'string' && value.includes('\u{FFFD}');
}

/** Returns a word in the form used for comparison: trimmed, in lower case, in one Unicode form. */
export function wordOf(text: string): string {
  return text.trim().toLowerCase().normalize('NFC');
}

const none = ['null', 'nil', 'none', 'nan', 'n/?a', 'undefined', 'nv', 'not set', 'empty', 'leer'];
const marker = new RegExp(String.raw`^(?:\W*(?:${none.join('|')})\W*|\\n|-+|\?+)$`, 'i');

/** Returns whether a value stands for none: `NULL`, `n/a`. */
export function isMarker(text: string): boolean {
  return marker.test(text);
}
