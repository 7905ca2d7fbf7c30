/**
 * Represents as data why a schema refuses a value: the zod issue carries the reason as its message,
 * and how to fix it as `params.fix`.
 */
import type { Fault } from './record.ts';

export function fault(reason: string, fix: string): Fault {
  return { reason, fix };
}

/** Returns the issue for `context.addIssue`; `path` is relative to the value that is checked. */
function issueOf({ reason, fix }: Fault, path: (string | number)[] = []) {
  return { code: 'custom' as const, path, message: reason, params: { fix } };
}

interface Context {
  addIssue(issue: ReturnType<typeof issueOf>): void;
}

/** Returns what adds a mistake, if there is one, at a path within the value that is checked. */
export function reporter(context: Context) {
  return (path: string | (string | number)[], what: string | Fault | undefined, fix = ''): void => {
    const mistake = typeof what === 'string' ? fault(what, fix) : what;
    if (mistake) context.addIssue(issueOf(mistake, [path].flat()));
  };
}

/** Requires one of two fields that exclude each other; `what` has them. */
export function requireOne<K extends string>(
  context: Context,
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
export function told({ reason, fix }: Fault): (issue: object) => string {
  return (issue) => {
    Object.assign(issue, { params: { fix } });
    return reason;
  };
}

/** Returns the parameters of a check that fails with this reason and fix. */
export function says(reason: string, fix: string): { error: (issue: object) => string } {
  return { error: told({ reason, fix }) };
}

/** Returns the fix that an issue carries, if any. */
export function fixOf(issue: object): string | undefined {
  const params: unknown = 'params' in issue ? issue.params : undefined;
  if (typeof params !== 'object' || params === null || !('fix' in params)) return undefined;
  return typeof params.fix === 'string' ? params.fix : undefined;
}
