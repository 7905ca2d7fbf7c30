import type { Operation } from './operation.ts';

export type FoundRoute =
  | { operation: Operation; id: string }
  /** The methods the path does have; none when there is no such path. */
  | { allowed: string[] };

/** The operation that `method` and `path` (without query) name; paths end without a slash. */
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

/** The decoded parameter ('' when the template has none), or undefined when the path differs. */
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
