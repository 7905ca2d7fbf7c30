import { namedLike } from './opt-out-names.ts';

/**
 * Returns whether a column, or the last part of a dotted path, is named like an opt-out. Its values
 * are not read by the built-in words of a subscription, because a yes means no mail.
 */
export function isOptOutField(field: string): boolean {
  const names = [field, field.slice(field.lastIndexOf('.') + 1)];
  return names.map(namedLike).some((like) => like !== undefined && like !== 'deletion');
}
