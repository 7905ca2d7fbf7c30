/** Reads the fields of a CRM record, and normalizes their texts for comparison. */

/**
 * Returns a field of a CRM record by its exact name or, if there is none, by its dotted path;
 * undefined if it is absent.
 */
export function fieldAt(value: unknown, field: string): unknown {
  if (isObject(value) && Object.hasOwn(value, field)) return own(value, field);
  return field.split('.').reduce<unknown>((inner, name) => {
    return isObject(inner) && Object.hasOwn(inner, name) ? own(inner, name) : undefined;
  }, value);
}

/**
 * Returns a field as `fieldAt` does. If its dotted path leads through something without fields (a
 * text, or a list with elements), returns an object, which neither looks empty nor has elements.
 */
export function fieldOrEnd(value: unknown, field: string): unknown {
  if (isObject(value) && Object.hasOwn(value, field)) return own(value, field);
  let inner = value;
  for (const name of field.split('.')) {
    if (!isObject(inner) || (Array.isArray(inner) && inner.length > 0)) return { end: inner };
    inner = Object.hasOwn(inner, name) ? own(inner, name) : undefined;
    if (inner === undefined || inner === null) return inner;
  }
  return inner;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function own(value: object, name: string): unknown {
  return Reflect.get(value, name);
}

/**
 * Returns the trimmed text of a CRM record's field, with '' for an empty one; undefined for a list
 * or an object, which has no single value.
 */
export function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value.trim();
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return value === null || value === undefined ? '' : undefined;
}

/**
 * Returns whether a text lost a character on its way from the CRM: U+FFFD stands for bytes that are
 * no text. What it said is unknown, and other texts may look the same.
 */
export function isLossy(value: unknown): boolean {
  return typeof value === 'string' && value.includes('\u{FFFD}');
}

/** Returns a word in the form used for comparison: trimmed, in lower case, in one Unicode form. */
export function wordOf(text: string): string {
  return text.trim().toLowerCase().normalize('NFC');
}
