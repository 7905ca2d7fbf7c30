import { holdsOptOutTerm, namedLike } from './opt-out-names.ts';

/**
 * Returns whether a column, or the last part of a dotted path, is named like an opt-out. Its values
 * are not read by the built-in words of a subscription, because a yes means no mail. Any term of
 * opting out counts, also in "Opt-out page" or "not unsubscribed": the user says what a yes means.
 */
export function isOptOutField(field: string): boolean {
  const names = [field, field.slice(field.lastIndexOf('.') + 1)];
  return names.some((name) => {
    const like = namedLike(name);
    return holdsOptOutTerm(name) || (like !== undefined && like !== 'deletion');
  });
}
