/**
 * Represents as data why a schema refuses a value: the zod issue carries the reason as its message,
 * and how to fix it as `params.fix`.
 */
import type { Fault } from './record.ts';

export function fault(reason: string, fix: string): Fault {
  return { reason, fix };
}

/** Returns the issue for `context.addIssue`; `path` is relative to the value that is checked. */
export function issueOf({ reason, fix }: Fault, path: (string | number)[] = []) {
  return { code: 'custom' as const, path, message: reason, params: { fix } };
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
