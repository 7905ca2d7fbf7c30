
/**
 * Returns the number that a text holds; any other value as it is. Environment variables come as
 * text.
 */
export function numeric(value: unknown): unknown {
  return typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value;
}

/** Returns the boolean that the text true or false stands for; any other value as it is. */
export function truth(value: unknown): unknown {
  return value === 'true' || value === 'false' ? value === 'true' : value;
}

/**
 * Returns the trimmed text of a field of a CRM record, '' when it is empty; undefined for a list or
 * an object, which has no single value.
 */
export function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value.trim();
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return value === null || value === undefined ? '' : undefined;
}

/**
 * Returns a word in the form in which words are compared: trimmed, in lower case, in one Unicode
 * form.
 */
export function wordOf(text: string): string {
  return text.trim().toLowerCase().normalize('NFC');
}
