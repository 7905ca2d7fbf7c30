/**
 * The basic fields of the schemas of a configuration, and, as data, why a schema refuses a value:
 * the zod issue carries the reason as its message, and how to fix it as `params.fix`.
 */
import { z } from 'zod';
import type { Fault } from './record.ts';
import { numeric, truth } from './values/config-value.ts';

export const text = (what: string) => z.string().min(1).describe(what);

export const flag = (what: string) => z.preprocess(truth, z.boolean()).describe(what);

export const number = (min: number, max: number, what: string) =>
  z.preprocess(numeric, z.number().min(min).max(max)).describe(what);

export const whole = (min: number, max: number, what: string) =>
  z.preprocess(numeric, z.number().int().min(min).max(max)).describe(what);

/** One of some words, the standard one unless another is given. */
export const choice = <const Word extends string>(
  words: readonly Word[],
  standard: NoInfer<Word>,
  what: string,
) => z.enum(words).default(standard).describe(what);

/** Returns whether a text can be sent in an HTTP header and holds only characters of keys. */
export function isHeaderText(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}

export function fault(reason: string, fix: string): Fault {
  return { reason, fix };
}

/** Returns what adds a mistake, if there is one, at a path within the value that is checked. */
export function reporter(context: z.core.$RefinementCtx) {
  return (path: string | (string | number)[], what: string | Fault | undefined, fix = ''): void => {
    const mistake = typeof what === 'string' ? { reason: what, fix } : what;
    if (!mistake) return;
    const params = { fix: mistake.fix };
    context.addIssue({ code: 'custom', path: [path].flat(), message: mistake.reason, params });
  };
}

/** Requires one of two fields that exclude each other; `what` has them. */
export function requireOne<K extends string>(
  context: z.core.$RefinementCtx,
  what: Partial<Record<K, unknown>>,
  field: K,
  other: K,
): void {
  const wrong = reporter(context);
  const isGiven = what[field] !== undefined;
  if (!isGiven && what[other] === undefined) wrong(field, 'is missing', `add it, or ${other}`);
  if (isGiven && what[other] !== undefined)
    wrong(other, `stands beside ${field}`, 'keep one of the two');
}

/** Returns the `error` of a check, such as `regex`. Zod copies the issue after calling it. */
export function told({ reason, fix }: Fault) {
  return (issue: object): string => {
    Object.assign(issue, { params: { fix } });
    return reason;
  };
}

/** Returns the parameters of a check that fails with this reason and fix. */
export function says(reason: string, fix: string) {
  return { error: told({ reason, fix }) };
}

/** Returns the fix that an issue carries, if any. */
export function fixOf(issue: object): string | undefined {
  const params: unknown = 'params' in issue ? issue.params : undefined;
  if (typeof params !== 'object' || params === null || !('fix' in params)) return undefined;
  return typeof params.fix === 'string' ? params.fix : undefined;
}
