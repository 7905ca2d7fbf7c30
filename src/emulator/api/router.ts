import type { Operation } from './operation.ts';

/** The operation of a path and method, or the methods that the path has. */
export type FoundRoute =
  | { operation: Operation; id: string }
  /** The methods of the path; none: there is no such path. */
  | { allowed: string[] };

/** Finds the operation of a method and a path without its query. Paths have no slash at the end. */
export function findOperation(
  operations: readonly Operation[],
  { method, path }: { method: string; path: string },
): FoundRoute {
  const segments = path.split('/');
  const allowed: string[] = [];
  for (const operation of operations) {
    const id = match(operation.path, segments);
    if (id === undefined) continue;
    if (operation.method === method) return { operation, id };
    allowed.push(operation.method);
  }
  return { allowed };
}

/** Returns the decoded parameter ('' if the template has none); undefined if the path differs. */
function match(template: string, segments: readonly string[]): string | undefined {
  const wanted = template.split('/');
  if (wanted.length !== segments.length) return undefined;
  let id: string | undefined = '';
  for (const [index, want] of wanted.entries()) {
    const segment = segments[index] ?? '';
    if (want.startsWith('{')) id = segment === '' ? undefined : decode(segment);
    else if (want !== segment) return undefined;
  }
  return id;
}

function decode(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
