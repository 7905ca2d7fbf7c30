/** Numbers and truths that came as text, as an environment variable does, and the way back. */

export function numeric(value: unknown): unknown {
  return typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value;
}

export function truth(value: unknown): unknown {
  return value === 'true' || value === 'false' ? value === 'true' : value;
}

/** What a field of a CRM record says, trimmed; undefined: a list or a mapping, no single value. */
export function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value.trim();
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return value === null || value === undefined ? '' : undefined;
}

/** A word as it is compared: trimmed, without case, in one Unicode form. */
export function wordOf(text: string): string {
  return text.trim().toLowerCase().normalize('NFC');
}
